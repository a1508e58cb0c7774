"""The guard's look at a server: whatever answers on the port, it is healthy or not."""

from socketserver import BaseRequestHandler

import pytest
from loopback import serving

from synthbench.llm import server_guard


@pytest.mark.parametrize("reply", [b"", b"SSH-2.0-OpenSSH\r\n", b"HTTP/1.1 200 OK\r\n" + b"X" * 70_000])
def test_a_server_that_does_not_speak_http_is_not_healthy(reply: bytes) -> None:
    class Strange(BaseRequestHandler):
        def handle(self) -> None:
            self.request.recv(1000)
            self.request.sendall(reply)

    with serving(Strange) as address:  # type: ignore[arg-type]
        assert not server_guard._is_healthy(f"{address}/v1")
