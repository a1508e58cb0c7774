"""A Ray cluster of fake nodes on this machine, for commands and for tests that lose nodes."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psutil

NODE = {"object_store_memory": 80_000_000, "memory": 8_000_000_000}


@contextmanager
def fake_cluster(num_nodes: int, num_cpus: int = 1, **options: Any) -> Iterator[Any]:
    """Run a cluster of several nodes, including the head; yield Ray's handle of the cluster."""
    os.environ.setdefault("RAY_ENABLE_UV_RUN_RUNTIME_ENV", "0")
    from ray.cluster_utils import Cluster

    of_node = {**NODE, "num_cpus": num_cpus, **options}
    cluster = Cluster(
        initialize_head=True, connect=False, head_node_args={**of_node, "include_dashboard": False}
    )
    try:
        for _ in range(num_nodes - 1):
            cluster.add_node(**of_node)
        cluster.wait_for_nodes()
        yield cluster
    finally:
        cluster.shutdown()


def busy_workers() -> list[psutil.Process]:
    """Return the processes of Ray that run a stage: Ray names them by the task."""
    kinds = ("ray::train", "ray::generate", "ray::evaluate", "ray::prepare")
    found = psutil.process_iter(["cmdline"])
    return [each for each in found if (each.info["cmdline"] or [""])[0].startswith(kinds)]


def add_node(cluster: Any) -> None:
    """Add a node of one core."""
    cluster.add_node(**NODE, num_cpus=1)
