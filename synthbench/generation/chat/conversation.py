"""The thread in which an event loop asks, and the two queues between it and the caller."""

import asyncio
import queue
import threading
from collections import deque
from concurrent.futures import Future
from contextlib import AsyncExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

from synthbench.generation.chat.asking import Asker, Outcome
from synthbench.generation.chat.backend import Backend
from synthbench.generation.chat.cache import AnswerCache, Say
from synthbench.generation.chat.connection import Connection
from synthbench.generation.chat.endpoint import Account, Endpoint
from synthbench.generation.chat.local import LocalBackend
from synthbench.generation.chat.local_model import LocalModel
from synthbench.generation.chat.requests import ChatRequest


class _Inbox:
    """Requests for an event loop from another thread; all that come together wake it once."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._requests: deque[ChatRequest | None] = deque()
        self._arrival = asyncio.Event()
        self._is_waking = False

    def put(self, request: ChatRequest | None) -> None:
        """Hand over a request, None after the last; called by the other thread."""
        self._requests.append(request)
        if not self._is_waking:
            self._is_waking = True
            self._loop.call_soon_threadsafe(self._wake)

    async def get(self) -> ChatRequest | None:
        """Wait for the next request."""
        while not self._requests:
            self._arrival.clear()
            await self._arrival.wait()
        return self._requests.popleft()

    def _wake(self) -> None:
        # Before the arrival is told: what is put from now on wakes the loop again.
        self._is_waking = False
        self._arrival.set()


class Conversation:
    """Takes requests and gives outcomes, in the order of completion.

    Leaving it waits for the answers under way, which may have to be paid; a local model's it ends.

    Entering raises UserError if there is no key, or the cache can't be used.
    """

    def __init__(
        self, endpoint: Endpoint, folder: Path, account: Account, local: LocalModel | None, say: Say
    ) -> None:
        self._endpoint = endpoint
        self._folder = folder
        self._account = account
        self._local = local
        self._say = say
        self._ready: Future[_Inbox] = Future()
        self._outcomes: queue.SimpleQueue[Outcome | BaseException] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="synthbench-chat", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        self._inbox = self._ready.result()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._inbox.put(None)
        self._thread.join()

    def submit(self, request: ChatRequest) -> None:
        """Hand over a request."""
        self._inbox.put(request)

    def next(self) -> Outcome | BaseException:
        """Wait for what has become of one of the requests."""
        return self._outcomes.get()

    def _work(self) -> None:
        try:
            asyncio.run(self._serve())
        except BaseException as error:  # noqa: BLE001 - the caller's thread raises it
            if not self._ready.done():
                self._ready.set_exception(error)
            else:
                self._outcomes.put(error)

    async def _serve(self) -> None:
        async with AsyncExitStack() as stack:
            backend = None
            if not self._endpoint.pacing.offline:
                backend = await stack.enter_async_context(self._backend())
            cache = stack.enter_context(AnswerCache(self._folder, self._endpoint, self._account, self._say))
            asker = Asker(self._endpoint, cache, backend)
            inbox = _Inbox()
            self._ready.set_result(inbox)
            await self._ask_all(asker, inbox)

    def _backend(self) -> Backend:
        return Connection(self._endpoint) if self._local is None else LocalBackend(self._local)

    async def _ask_all(self, asker: Asker, inbox: _Inbox) -> None:
        tasks: set[asyncio.Task[None]] = set()
        while (request := await inbox.get()) is not None:
            task = asyncio.create_task(self._ask(asker, request))
            tasks.add(task)
            task.add_done_callback(tasks.discard)
        asker.stop()
        if self._local is not None:
            for task in tasks:
                task.cancel()
        # What has left for a service may have to be paid, and is waited for.
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _ask(self, asker: Asker, request: ChatRequest) -> None:
        try:
            self._outcomes.put(await asker.answer(request))
        except Exception as error:  # noqa: BLE001 - the caller's thread raises it
            self._outcomes.put(error)
