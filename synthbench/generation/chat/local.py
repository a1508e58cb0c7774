"""A local chat model as a backend: requests that come together are answered together."""

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from threading import Event
from types import TracebackType
from typing import Self

from synthbench.generation.chat.cache import Answer
from synthbench.generation.chat.local_model import LocalModel
from synthbench.generation.chat.requests import ChatRequest

SECONDS_OF_QUIET = 0.02
"""Nobody else comes to a batch after so long without a newcomer."""


@dataclass(frozen=True)
class _Asked:
    request: ChatRequest
    answer: "asyncio.Future[Answer]"

    def settle(self, found: Answer | Exception) -> None:
        """Hand over the answer, unless nobody waits for it any more."""
        if self.answer.done():
            return
        if isinstance(found, Answer):
            self.answer.set_result(found)
        else:
            self.answer.set_exception(found)


class LocalBackend:
    """Lets a model answer, in a thread of its own."""

    def __init__(self, model: LocalModel) -> None:
        self._model = model
        self._waiting: list[_Asked] = []
        self._arrival = asyncio.Event()
        self._stop = Event()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="synthbench-local-chat")

    async def __aenter__(self) -> Self:
        self._work = asyncio.create_task(self._answer_all())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._work.cancel()
        await asyncio.gather(self._work, return_exceptions=True)
        self._thread.shutdown()

    async def ask(self, request: ChatRequest, attempt: str) -> Answer:
        """Return the answer; raises FailedAttemptError, or UserError if no request can succeed."""
        asked = _Asked(request, asyncio.get_running_loop().create_future())
        self._waiting.append(asked)
        self._arrival.set()
        return await asked.answer

    async def _answer_all(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await self._arrival.wait()
            await self._until_quiet()
            together, self._waiting = self._waiting, []
            self._arrival.clear()
            try:
                await loop.run_in_executor(self._thread, self._answer, together, loop)
            except Exception as error:  # noqa: BLE001 - whoever asked raises it
                for asked in together:
                    asked.settle(error)

    async def _until_quiet(self) -> None:
        num_waiting = 0
        while len(self._waiting) > num_waiting:
            num_waiting = len(self._waiting)
            await asyncio.sleep(SECONDS_OF_QUIET)

    def _answer(self, together: Sequence[_Asked], loop: asyncio.AbstractEventLoop) -> None:
        requests = [asked.request for asked in together]
        for place, found in self._model.answers(requests, self._stop):
            loop.call_soon_threadsafe(together[place].settle, found)
