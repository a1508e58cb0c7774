"""A chat server that needs almost no CPU; `python benchmarks/chat_server.py LATENCY` prints its port."""

import asyncio
import json
import sys
from functools import partial

_BODY = json.dumps(
    {
        "choices": [
            {"message": {"role": "assistant", "content": "A dog runs over a field."}, "finish_reason": "stop"}
        ],
        "usage": {"prompt_tokens": 50, "completion_tokens": 8},
    }
).encode()
_REPLY = (
    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(_BODY) + _BODY
)
_LENGTH = b"content-length:"


class _Protocol(asyncio.Protocol):
    def __init__(self, latency: float) -> None:
        self._latency = latency
        self._received = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._received += data
        while (end := self._received.find(b"\r\n\r\n")) >= 0:
            head = self._received[:end].lower()
            length = int(head[head.find(_LENGTH) + len(_LENGTH) :].split(b"\r\n")[0])
            if len(self._received) < end + 4 + length:
                return
            self._received = self._received[end + 4 + length :]
            asyncio.get_running_loop().call_later(self._latency, self._transport.write, _REPLY)


async def main(latency: float) -> None:
    """Serve until the process ends."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(partial(_Protocol, latency), "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(float(sys.argv[1])))
