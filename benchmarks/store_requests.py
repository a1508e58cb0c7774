"""The requests of a shared store: each stage's, their price, and what a store's size adds to a small plan.

    python benchmarks/store_requests.py [--others 20 3000]

An S3 server on loopback, with a proxy that counts. A run of 20 stages in a row is computed, then run again
on another machine; then one cached stage is run in stores of 20 and of 3,000 other artifacts. Prices are of
Amazon S3 Standard in us-east-1: $0.005 for 1,000 requests that write or list, $0.0004 for 1,000 that read.
Exit code 1 if a cached stage takes more than two requests.
"""

import argparse
import logging
import resource
import sys
import time
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

sys.path.append(str(Path(__file__).parents[1] / "tests"))

import pytest
from fake_stages import carry_out, stage
from faulty_s3 import Faults, faulty_s3
from s3 import BUCKET, log_in, make_bucket, s3_server
from shared_stores import on_machine

from synthbench.engine.stage import Stage
from synthbench.engine.store import Store

STAGES = 20
GOAL = 2.0
"""Most requests of a cached stage."""
PRICES = {"write or list": 0.005 / 1000, "read": 0.0004 / 1000, "delete": 0.0}
"""US dollars a request."""


def sort(method: str, path: str) -> str:
    """Return what S3 charges a request as."""
    if method == "DELETE" or "?delete" in path:
        return "delete"
    is_read = method in ("GET", "HEAD") and "list-type" not in path
    return "read" if is_read else "write or list"


def show(title: str, faults: Faults, num_stages: int, seconds: float) -> float:
    """Print the requests since the last call, per stage, and their price; return the requests per stage."""
    sorts = Counter(sort(method, path) for method, path, _ in faults.log)
    dollars = sum(PRICES[name] * number for name, number in sorts.items())
    counts = ", ".join(f"{number / num_stages:.1f} {name}" for name, number in sorted(sorts.items()))
    per_stage = len(faults.log) / num_stages
    print(
        f"{title}: {per_stage:.1f} requests a stage ({counts}), "
        f"${1000 * dollars / num_stages:.4f} for 1,000 stages; {seconds:.2f} s of CPU",
        flush=True,
    )
    faults.log.clear()
    return per_stage


def fill(store: Store, number: int) -> None:
    """Commit artifacts that no plan needs."""
    for identity in (f"{index:064x}" for index in range(number)):
        (store.workspace(identity) / "output" / "data").write_bytes(b"x")
        store.commit(identity, {"label": "other", "spec": {"kind": "other"}, "seconds": 0.0})


def timed(title: str, faults: Faults, store: Store, end: Stage, num_stages: int) -> float:
    """Run a plan, and print what it asked; return the requests per stage."""
    faults.log.clear()
    before, started = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
    carry_out(store, end)
    after = resource.getrusage(resource.RUSAGE_SELF)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return show(f"{title}, {time.perf_counter() - started:.2f} s", faults, num_stages, used)


def main() -> int:
    """Print the requests of computed and cached stages."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--others", type=int, nargs="+", default=(20, 3_000), help="artifacts in the store")
    given = parser.parse_args()
    logging.getLogger("werkzeug").setLevel(logging.ERROR)  # the server's line for each request
    with (
        TemporaryDirectory() as folder,
        s3_server() as address,
        faulty_s3(address) as faults,
        pytest.MonkeyPatch.context() as patch,
    ):
        make_bucket(address)
        log_in(patch, faults.address)
        end = stage("0")
        for number in range(1, STAGES):
            end = stage(str(number), end)
        name = f"s3://{BUCKET}/row"
        timed("computed in a row", faults, on_machine(name, Path(folder) / "here"), end, STAGES)
        cached = [timed("cached", faults, on_machine(name, Path(folder) / "there"), end, STAGES)]
        for number in given.others:
            name = f"s3://{BUCKET}/{number}"
            store = on_machine(name, Path(folder) / f"a{number}")
            fill(store, number)
            carry_out(store, stage("one"))
            other = on_machine(name, Path(folder) / f"b{number}")
            title = f"one cached stage beside {number:,} artifacts"
            cached.append(timed(title, faults, other, stage("one"), 1))
    return int(max(cached) > GOAL)


if __name__ == "__main__":
    sys.exit(main())
