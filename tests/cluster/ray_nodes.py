"""A Ray cluster of fake nodes on this machine, for commands and for tests that lose nodes."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def fake_cluster(num_nodes: int, num_cpus: int = 1, **options: Any) -> Iterator[Any]:
    """Run a cluster of so many nodes, the head among them; yield Ray's own handle of it."""
    os.environ.setdefault("RAY_ENABLE_UV_RUN_RUNTIME_ENV", "0")
    from ray.cluster_utils import Cluster

    of_node = {"num_cpus": num_cpus, "object_store_memory": 80_000_000, "memory": 8_000_000_000, **options}
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
