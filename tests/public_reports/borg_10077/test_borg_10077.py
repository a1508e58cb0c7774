"""borgbackup/borg #10077: a client whose clock is ahead kills a living lock, and removes what is in use.

Here a cleaner removes nothing before it has watched a lease for its whole time without any change.
"""

import json
from pathlib import Path

from synthbench.engine.objects import FolderObjects
from synthbench.engine.patience import PatientObjects
from synthbench.engine.shared_leases import SharedLeases, Watch

KEY = "leases/run-1/00000000"


def test_a_run_that_renews_its_lease_late_counts_as_alive(tmp_path: Path) -> None:
    objects, now = PatientObjects(FolderObjects(tmp_path)), [1e9]

    def write(count: int) -> None:
        holder = {"pid": 7, "host": "x", "since": 0, "place": "there", "renewed": count}
        objects.write(KEY, json.dumps(holder).encode())

    def sleep(seconds: float) -> None:
        now[0] += seconds
        if now[0] >= 1e9 + 55:
            write(1)

    write(0)
    leases = SharedLeases(objects, "here", 60, Watch(clock=lambda: now[0], sleep=sleep))
    assert leases.worker(lambda _: None).startswith("process 7 on x")
    assert objects.read(KEY)
