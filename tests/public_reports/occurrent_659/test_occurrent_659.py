"""johanhaleby/occurrent #659: a lease's expiry is judged by another clock than the one that wrote it.

Here no two clocks are compared: who waits measures, by its own, for how long nothing changed.
"""

import json
import os
from pathlib import Path

import pytest

from synthbench.engine.objects import FolderObjects
from synthbench.engine.patience import PatientObjects
from synthbench.engine.shared_leases import SharedLeases, Watch


@pytest.mark.parametrize("hours", [-24, -1, 1, 24])
def test_clocks_that_differ_by_hours_make_no_lease_longer_or_shorter(tmp_path: Path, hours: int) -> None:
    objects, now = PatientObjects(FolderObjects(tmp_path)), [0.0]
    key = "leases/run-1/00000000"
    objects.write(key, json.dumps({"pid": 1, "host": "x", "since": hours * 3600, "place": "there"}).encode())
    os.utime(tmp_path / key, (hours * 3600 + 1e9, hours * 3600 + 1e9))
    leases = SharedLeases(objects, "here", 60, Watch(clock=lambda: now[0]))
    assert leases.holder("run-1")
    now[0] = 59.0
    assert leases.holder("run-1")
    now[0] = 61.0
    assert not leases.holder("run-1")
