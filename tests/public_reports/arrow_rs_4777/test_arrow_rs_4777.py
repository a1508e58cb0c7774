"""apache/arrow-rs #4777: a store says 409, "please try again", to an ordinary put, and the client gives up.

Here 409 is asked again, whatever the request.
"""

from pathlib import Path

import pytest
from faulty_s3 import faulty_s3
from s3 import BUCKET, log_in, make_bucket, s3_server

from synthbench.engine import cloud_objects
from synthbench.engine.cloud_objects import CloudObjects
from synthbench.engine.patience import Patience, PatientObjects


def test_a_conflict_is_retried_at_every_request(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(cloud_objects, "RETRIES", 0)
    file = tmp_path / "file"
    file.write_bytes(b"content")
    with s3_server() as address, faulty_s3(address) as faults:
        make_bucket(address)
        log_in(monkeypatch, faults.address)
        objects = PatientObjects(CloudObjects(f"s3://{BUCKET}/4777"), Patience(sleep=lambda _: None))
        for request in (
            lambda: objects.write("key", b"content"),
            lambda: objects.write("key", file),
            lambda: objects.read("key"),
            lambda: objects.digest("key"),
            lambda: objects.download("key", file, 7),
            lambda: list(objects.list("")),
            lambda: objects.delete(["key"]),
        ):
            faults.next("", "", "409", "409")
            request()
        assert faults.counts()["409"] == 14
