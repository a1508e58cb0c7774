"""Answers by a server that the run starts at the first request which the cache does not answer."""

import asyncio
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import Self

from synthbench.llm.answers import Answer
from synthbench.llm.connection import Connection
from synthbench.llm.endpoint import Endpoint
from synthbench.llm.requests import ChatRequest
from synthbench.llm.server_door import RunningServer, ServerDoor

POLL_SECONDS = 0.2


class ServedBackend:
    """Sends requests to a server, once it answers; for one event loop."""

    def __init__(self, endpoint: Endpoint, door: ServerDoor) -> None:
        self._endpoint = endpoint
        self._door = door
        self._stack = AsyncExitStack()
        self._starting = asyncio.Lock()
        self._connection: Connection | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._stack.aclose()

    async def ask(self, request: ChatRequest, attempt: str) -> Answer:
        """Return the answer; raises FailedAttemptError, or UserError if no request can succeed."""
        async with self._starting:
            if self._connection is None:
                server = await self._server()
                there = _at(server, self._endpoint)
                self._connection = await self._stack.enter_async_context(Connection(there))
        return await self._connection.ask(request, attempt)

    async def _server(self) -> RunningServer:
        while (server := self._door.server_if_ready()) is None:
            await asyncio.sleep(POLL_SECONDS)
        return server


def _at(server: RunningServer, endpoint: Endpoint) -> Endpoint:
    """Return the endpoint with the server's address, and with the keys that its program needs in requests."""
    options = dict(endpoint.options)
    if endpoint.served is not None and endpoint.served.body:
        options["extra_body"] = {**endpoint.served.body, **options.get("extra_body", {})}
    return replace(endpoint, base_url=server.base_url, model=server.model_id, options=options)
