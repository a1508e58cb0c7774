"""An S3 server on loopback."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

SECRET = "a-secret-that-nobody-may-see"
BUCKET = "laboratory"


@contextmanager
def s3_server() -> Iterator[str]:
    """Run moto's S3 server on a free port; yield its address."""
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    try:
        yield f"http://{host}:{port}"
    finally:
        server.stop()


def log_in(monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    """Set the variables that name the server and the key."""
    for name, value in {
        "AWS_ENDPOINT_URL": address,
        "AWS_ACCESS_KEY_ID": "somebody",
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_REGION": "us-east-1",
    }.items():
        monkeypatch.setenv(name, value)


def make_bucket(address: str) -> None:
    """Make the bucket, if there is none."""
    import boto3

    client = boto3.client(
        "s3", endpoint_url=address, aws_access_key_id="a", aws_secret_access_key="b", region_name="us-east-1"
    )
    client.create_bucket(Bucket=BUCKET)
