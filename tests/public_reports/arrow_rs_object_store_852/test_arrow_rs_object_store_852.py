"""apache/arrow-rs-object-store #852: S3's 409 at a conditional put comes out as "exists", and nobody commits.

Here an object that "exists" is read: if it is not there, the put is sent again.
"""

import pytest
from faulty_s3 import faulty_s3
from s3 import BUCKET, log_in, make_bucket, s3_server

from synthbench.engine import cloud_objects
from synthbench.engine.cloud_objects import CloudObjects
from synthbench.engine.patience import Patience, PatientObjects


def test_a_conflict_without_another_writer_ends_in_a_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cloud_objects, "RETRIES", 0)
    with s3_server() as address, faulty_s3(address) as faults:
        make_bucket(address)
        log_in(monkeypatch, faults.address)
        objects = PatientObjects(CloudObjects(f"s3://{BUCKET}/852"), Patience(sleep=lambda _: None))
        faults.next("PUT", "commit", "409", "409")
        assert objects.create("commit", b"ours")
        assert objects.read("commit") == b"ours"
        faults.next("PUT", "commit", "409")
        assert not objects.create("commit", b"theirs")
