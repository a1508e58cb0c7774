"""Requests that wait on disk, so that memory does not grow with their number."""

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

from synthbench.generation.chat.requests import ChatRequest


class Spool:
    """Requests in the order in which they were added, in a file without a name: a kill leaves none behind."""

    def __init__(self, folder: Path) -> None:
        self._file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 - the spool is the context manager

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def add(self, request: ChatRequest) -> None:
        """Add a request."""
        messages = [dict(message) for message in request.messages]
        row = [request.key, messages, dict(request.sampling), request.sample]
        self._file.write(json.dumps(row).encode() + b"\n")

    def __iter__(self) -> Iterator[ChatRequest]:
        self._file.seek(0)
        for line in self._file:
            key, messages, sampling, sample = json.loads(line)
            yield ChatRequest(key, tuple(messages), sampling, sample)
