"""Answer each request from the cache, or by as many attempts as it takes, in an event loop's own thread."""

import asyncio
import queue
import threading
from collections import deque
from concurrent.futures import Future
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

from synthbench.errors import UserError
from synthbench.llm.cache import Answer, AnswerCache, Cost, Say, key_of
from synthbench.llm.connection import (
    CONTENT_FILTER,
    Connection,
    FailedAttemptError,
    Kind,
    gone,
)
from synthbench.llm.database import BatchBook
from synthbench.llm.endpoint import Account, Endpoint
from synthbench.llm.limits import AdaptiveLimit, Budget, FailureWatch, Rate
from synthbench.llm.local_model import LocalBackend, LocalModel
from synthbench.llm.replies import answered
from synthbench.llm.requests import ChatAnswer, ChatRequest


class Backend(Protocol):
    """Asked by one event loop, many requests at a time; leaving it ends what is under way."""

    async def __aenter__(self) -> Self:
        """Get ready."""

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End what is under way."""

    async def ask(self, request: ChatRequest, attempt: str) -> Answer:
        """Return the answer; `attempt` is what nobody else's attempt is called.

        Raises FailedAttemptError, or UserError if no request can succeed.
        """


SECONDS_BETWEEN_LOOKS = 0.2


@dataclass(frozen=True)
class Outcome:
    """An answer; if `is_final` the same on another day; none yet if it `is_pending`, in a batch."""

    answer: ChatAnswer
    is_final: bool = True
    is_pending: bool = False


class StoppedError(Exception):
    """The run stops for a reason that another request has given."""


class Asker:
    """Answers requests, many at a time, within the endpoint's limits; used by one event loop.

    Once a request finds that no other can succeed, those that have not left do not leave any more, and those
    that have are waited for, so that nothing is lost that may have to be paid.
    """

    def __init__(self, endpoint: Endpoint, cache: AnswerCache, backend: Backend | None) -> None:
        self._endpoint = endpoint
        self._cache = cache
        self._backend = backend
        self._book = BatchBook(cache.database)
        self._budget = Budget(endpoint, cache)
        self._limit = AdaptiveLimit(endpoint.pacing.concurrency)
        self._requests = Rate(endpoint.pacing.requests_per_minute)
        self._tokens = Rate(endpoint.pacing.tokens_per_minute)
        self._watch = FailureWatch(endpoint.name, endpoint.pacing.max_failure_rate)
        self._asking: dict[str, asyncio.Event] = {}
        self._bought_in_vain: list[str] = []
        self._stopped = asyncio.Event()

    def stop(self) -> None:
        """Let no request leave any more."""
        self._stopped.set()

    async def answer(self, request: ChatRequest) -> Outcome:
        """Return the answer, or that there will be none.

        Raises UserError if no request can succeed any more, StoppedError if another one has found that.
        """
        key = key_of(self._endpoint, request)
        try:
            while True:
                found = self._cache.find(key)
                if found is not None:
                    return Outcome(answered(request, found))
                outcome = await self._ask_alone(key, request)
                if outcome is not None:
                    return outcome
        except Exception:
            self._stopped.set()
            raise

    async def _ask_alone(self, key: str, request: ChatRequest) -> Outcome | None:
        """Ask, unless somebody is at it: then wait for that and return None."""
        if key in self._asking:
            await self._asking[key].wait()
            return None
        self._asking[key] = asyncio.Event()
        try:
            outcome = await self._ask(key, request)
            if outcome is None and self._book.holder_of(key) is not None:
                return Outcome(ChatAnswer(request, None), is_pending=True)
            if outcome is None:
                await self._sleep(SECONDS_BETWEEN_LOOKS)
            return outcome
        finally:
            self._asking.pop(key).set()

    async def _ask(self, key: str, request: ChatRequest) -> Outcome | None:
        """Ask as often as it takes; None if another process is at it."""
        num_tries = 0
        while True:
            num_tries += 1
            try:
                answer = await self._attempt(key, request)
            except FailedAttemptError as error:
                if not error.can_pass(num_tries, self._endpoint.pacing.tries):
                    return self._failed(key, request, error, num_tries)
                await self._sleep(error.pause(num_tries))
                continue
            if answer is None:
                return None
            self._watch.succeeded(request)
            return Outcome(answered(request, answer))

    def _failed(self, key: str, request: ChatRequest, error: FailedAttemptError, num_tries: int) -> Outcome:
        if error.kind is Kind.UNREACHABLE:
            raise gone(self._endpoint, error.reason)
        if error.reason == CONTENT_FILTER:
            self._watch.succeeded(request)
            return Outcome(ChatAnswer(request, None, CONTENT_FILTER))
        try:
            self._watch.failed(request, error.reason)
        except UserError:
            # The endpoint is broken rather than single requests: once it is mended, it may answer these.
            self._cache.forget(self._bought_in_vain)
            raise
        tries = "" if num_tries == 1 else f", given up after {num_tries} tries"
        if error.is_bought:
            cost = self._budget.expected(request)
            tokens = (cost.prompt_tokens, cost.completion_tokens)
            self._cache.keep(key, Answer(None, error.reason + tries, *tokens))
            self._bought_in_vain.append(key)
        return Outcome(ChatAnswer(request, None, error.reason + tries), is_final=False)

    async def _attempt(self, key: str, request: ChatRequest) -> Answer | None:
        if self._backend is None:
            raise UserError(
                f"llm.offline: the cache has no answer of '{self._endpoint.name}' ({self._endpoint.model}) to"
                f" the request {request.key}; run once without `offline`"
            )
        async with self._limit:
            expected = self._budget.expected(request)
            await self._requests.wait(1, self._sleep)
            await self._tokens.wait(expected.prompt_tokens + expected.completion_tokens, self._sleep)
            attempt = await self._budget.send(key, expected, self._go_on)
            if attempt is None:
                return None
            try:
                answer = await self._send(self._backend, attempt, key, request)
            finally:
                self._budget.settle()
            self._account_for(request, expected, answer)
            return answer

    async def _send(self, backend: Backend, attempt: int, key: str, request: ChatRequest) -> Answer:
        left_at = asyncio.get_running_loop().time()
        try:
            answer = await backend.ask(request, self._cache.name_of(attempt))
        except FailedAttemptError as error:
            if error.is_in_doubt:
                self._cache.doubted(attempt, error.reason)
            else:
                self._cache.refused(attempt, error.reason)
            if error.kind is Kind.BUSY:
                self._limit.refused(left_at)
            raise
        except UserError as error:
            self._cache.refused(attempt, str(error))
            raise
        usd = self._budget.usd(answer.prompt_tokens, answer.completion_tokens)
        self._cache.answered(attempt, key, answer, usd)
        return answer

    def _account_for(self, request: ChatRequest, expected: Cost, answer: Answer) -> None:
        self._limit.succeeded()
        self._budget.learn(request, answer)
        surplus = expected.prompt_tokens - answer.prompt_tokens
        self._tokens.correct(surplus + expected.completion_tokens - answer.completion_tokens)

    async def _sleep(self, seconds: float) -> None:
        """Sleep; raises StoppedError if the run stops meanwhile."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._stopped.wait(), seconds)
        self._go_on()

    def _go_on(self) -> None:
        if self._stopped.is_set():
            raise StoppedError


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
