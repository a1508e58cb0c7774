"""Answer requests from the cache or by repeated attempts, in a thread with an event loop."""

import asyncio
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from typing import Protocol, Self

from synthbench.base.errors import UserError
from synthbench.base.runtime import not_shared
from synthbench.data.answer_kinds import AnswerKind
from synthbench.llm.answers import Answer
from synthbench.llm.cache import AnswerCache, Say, key_of
from synthbench.llm.connection import Connection, no_logprobs_error, unreachable_error
from synthbench.llm.database import BatchTable
from synthbench.llm.endpoint import Endpoint
from synthbench.llm.limits import Budget, CircuitBreaker, ConcurrencyLimit, RateLimit
from synthbench.llm.replies import to_chat_answer
from synthbench.llm.requests import ChatAnswer, ChatRequest
from synthbench.llm.retries import FailedAttemptError, FailureKind, is_final_answer
from synthbench.llm.server import ServedBackend


class Backend(Protocol):
    """Answers many requests at a time; leaving the context ends those in flight. For one event loop."""

    async def __aenter__(self) -> Self:
        """Return this backend, ready for requests."""

    async def __aexit__(self, *error: object) -> None:
        """End the requests in flight."""

    async def ask(self, request: ChatRequest, attempt: str) -> Answer:
        """Return the answer; `attempt` is a globally unique attempt id.

        Raises UserError if no request can succeed, FailedAttemptError if this attempt gets no answer.
        """


POLL_SECONDS = 0.2


@dataclass(frozen=True)
class RequestOutcome:
    """The outcome of a request.

    is_final: a retry cannot change the outcome. is_pending: the request is in a batch, without an answer yet.
    """

    answer: ChatAnswer
    is_final: bool = True
    is_pending: bool = False


class StoppedError(Exception):
    """The dispatcher was stopped: another request showed that none can succeed, or the caller left."""


def taken(endpoint: Endpoint, cache: AnswerCache, request: ChatRequest, found: Answer) -> ChatAnswer:
    """Convert a new or cached answer into the caller's ChatAnswer.

    Raises UserError if the answer lacks requested log-probabilities. The cache then drops the answer, since
    another server of the same model may give log-probabilities. The answer's cost stays recorded.
    """
    if request.logprobs is not None and found.logprobs is None and found.text and not found.failure:
        cache.withdraw([key_of(endpoint, request)])
        raise no_logprobs_error(endpoint, "its answer has none")
    return to_chat_answer(request, found, takes_cut_off=endpoint.takes_cut_off)


class Dispatcher:
    """Answers requests, many at a time, within the endpoint's limits; for one event loop.

    Once a request shows that none can succeed, the dispatcher sends no more. It awaits requests in flight,
    which may be billed.
    """

    def __init__(self, endpoint: Endpoint, cache: AnswerCache, backend: Backend | None) -> None:
        self._endpoint = endpoint
        self._cache = cache
        self._backend = backend
        self._batches = BatchTable(cache.database)
        self._budget = Budget(endpoint, cache)
        self._limit = ConcurrencyLimit(endpoint.pacing.concurrency)
        self._requests = RateLimit(endpoint.pacing.requests_per_minute)
        self._tokens = RateLimit(endpoint.pacing.tokens_per_minute)
        self._breaker = CircuitBreaker(endpoint)
        self._in_flight: dict[str, asyncio.Event] = {}
        self._sharing = Sharing(cache.share)
        self._unusable: list[str] = []
        """Cache keys of this run's failures; the cache drops them if the endpoint itself is broken."""
        self._stopped = asyncio.Event()

    def stop(self) -> None:
        """Send no more requests."""
        self._stopped.set()

    async def answer(self, request: ChatRequest) -> RequestOutcome:
        """Return a request's outcome.

        Raises UserError if no further request can be sent or succeed, StoppedError once the dispatcher is
        stopped.
        """
        key = key_of(self._endpoint, request)
        try:
            while True:
                found = self._cache.find(key)
                if found is not None:
                    return RequestOutcome(taken(self._endpoint, self._cache, request, found))
                outcome = await self._ask_alone(key, request)
                if outcome is not None:
                    return outcome
        except BaseException:
            self._stopped.set()
            raise

    async def _ask_alone(self, key: str, request: ChatRequest) -> RequestOutcome | None:
        """Return the request's outcome; None if the caller should look in the cache again.

        If this dispatcher has an equal request in flight, wait until that request has ended, and return None.
        The outcome is pending if the request is in an open batch.
        """
        if key in self._in_flight:
            await self._in_flight[key].wait()
            return None
        self._in_flight[key] = asyncio.Event()
        try:
            outcome = await self._ask(key, request)
            if outcome is None and self._batches.batch_of(key) is not None:
                return RequestOutcome(ChatAnswer(request, None), is_pending=True)
            if outcome is None:
                await self._sleep(POLL_SECONDS)
            return outcome
        finally:
            self._in_flight.pop(key).set()

    async def _ask(self, key: str, request: ChatRequest) -> RequestOutcome | None:
        """Attempt and retry; return the outcome.

        None if an answer has arrived meanwhile, or if the request is in flight elsewhere.
        """
        num_tries = 0
        while True:
            num_tries += 1
            try:
                answer = await self._attempt(key, request, num_tries)
            except FailedAttemptError as error:
                if not error.can_pass(num_tries, self._endpoint.pacing.tries):
                    return self._failed(key, request, error, num_tries)
                await self._sleep(error.pause(num_tries))
                continue
            return None if answer is None else RequestOutcome(self._kept(key, request, answer))

    def _kept(self, key: str, request: ChatRequest, answer: Answer) -> ChatAnswer:
        """Convert a new answer for the caller, and count it as a success or a failure.

        An answer is a success if it has a text or was refused.
        """
        found = taken(self._endpoint, self._cache, request, answer)
        if found.text is not None or found.kind is AnswerKind.REFUSED:
            self._breaker.succeeded(request)
            return found
        if found.kind is not AnswerKind.CUT_OFF:
            self._unusable.append(key)
        self._note_failure(request, found.failure)
        return found

    def _note_failure(self, request: ChatRequest, reason: str) -> None:
        try:
            self._breaker.failed(request, reason)
        except UserError:
            # The endpoint is broken, not single requests: it may answer these once it is fixed.
            self._cache.withdraw(self._unusable)
            raise

    def _failed(
        self, key: str, request: ChatRequest, error: FailedAttemptError, num_tries: int
    ) -> RequestOutcome:
        if error.kind is FailureKind.UNREACHABLE:
            raise unreachable_error(self._endpoint, error.reason)
        if error.answer_kind is AnswerKind.REFUSED:
            self._breaker.succeeded(request)
            return RequestOutcome(ChatAnswer(request, None, error.failure(), AnswerKind.REFUSED))
        self._note_failure(request, error.failure())
        if error.rule.is_billed:
            cost = self._budget.expected(request)
            tokens = (cost.prompt_tokens, cost.completion_tokens)
            self._cache.store(key, Answer(None, error.reason_after(num_tries), *tokens))
            self._unusable.append(key)
        answer = ChatAnswer(request, None, error.failure(num_tries), error.answer_kind)
        return RequestOutcome(answer, is_final=False)

    async def _attempt(self, key: str, request: ChatRequest, num_tries: int) -> Answer | None:
        if self._backend is None:
            raise UserError(
                f"{self._endpoint.section}.offline: '{self._endpoint.name}' ({self._endpoint.model}) has no"
                f" cached answer to request {request.key}; run once without `offline`"
            )
        if self._cache.is_in_flight(key):
            # Waiting for another process's answer must not use up the rate.
            return None
        async with self._limit.slots:
            expected = self._budget.expected(request)
            await self._requests.wait(1, self._sleep)
            await self._tokens.wait(expected.prompt_tokens + expected.completion_tokens, self._sleep)
            attempt = await self._budget.begin_attempt(key, expected, self._go_on)
            if attempt is None:
                return None
            try:
                await self._share(attempt)
                answer = await self._send(self._backend, attempt, key, request, num_tries)
            finally:
                self._budget.settle()
            self._limit.succeeded()
            self._budget.learn(request, answer)
            surplus = expected.prompt_tokens - answer.prompt_tokens
            self._tokens.correct(surplus + expected.completion_tokens - answer.completion_tokens)
            return answer

    async def _share(self, attempt: int) -> None:
        """Let other machines know of the attempt before its request is sent.

        If that fails, record the attempt as not sent and raise UserError.
        """
        try:
            await self._sharing()
        except UserError as error:
            self._cache.record_failure(attempt, f"not sent: {error}")
            raise

    async def _send(
        self, backend: Backend, attempt: int, key: str, request: ChatRequest, num_tries: int
    ) -> Answer:
        left_at = asyncio.get_running_loop().time()
        try:
            answer = await backend.ask(request, self._cache.attempt_id(attempt))
        except FailedAttemptError as error:
            in_doubt = error.rule.in_doubt
            self._cache.record_failure(attempt, error.reason, error.answer_kind, in_doubt=in_doubt)
            if error.rule.slows:
                self._limit.refused(left_at)
            raise
        except UserError as error:
            self._cache.record_failure(attempt, str(error))
            raise
        cached = answer.details.cached_tokens
        usd = self._budget.usd(answer.prompt_tokens, answer.completion_tokens, cached)
        # Attempts paid by earlier runs count, so a resumed run asks no more often than an uninterrupted one.
        num_paid = max(num_tries, self._cache.num_unfinished(key) + 1)
        if not is_final_answer(answer, num_paid, self._endpoint.pacing.tries):
            self._cache.record_unfinished(attempt, answer, usd)
            raise FailedAttemptError(FailureKind.UNFINISHED, answer.failure, answer_kind=answer.kind)
        self._cache.record_answer(attempt, key, answer, usd)
        return answer

    async def _sleep(self, seconds: float) -> None:
        """Sleep; raise StoppedError if the dispatcher is stopped meanwhile."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._stopped.wait(), seconds)
        self._go_on()

    def _go_on(self) -> None:
        if self._stopped.is_set():
            raise StoppedError


class Sharing:
    """Calls `share` in a thread; one later call serves all tasks that ask meanwhile. For one event loop."""

    def __init__(self, share: Callable[[], None]) -> None:
        self._share = share
        self._turn = asyncio.Lock()
        self._num_asked = self._num_done = 0

    async def __call__(self) -> None:
        """Wait for a call of `share` that starts after this call; raises its errors.

        Does nothing without a shared store.
        """
        if self._share is not_shared:
            return
        self._num_asked += 1
        ours = self._num_asked
        async with self._turn:
            if self._num_done < ours:
                asked = self._num_asked
                await asyncio.to_thread(self._share)
                self._num_done = asked


class AsyncBridge:
    """Accepts requests in one thread and answers them in another thread's event loop, as they complete.

    Leaving the context waits for requests in flight, since services may bill them. Requests to a model that
    the run serves are cancelled. Entering raises UserError without a key or a usable cache.
    """

    def __init__(self, opened: Callable[[], AnswerCache], endpoint: Endpoint, say: Say) -> None:
        self._opened = opened
        self._endpoint = endpoint
        self._say = say
        self._ready: Future[None] = Future()
        self._outcomes: queue.SimpleQueue[RequestOutcome | BaseException] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="synthbench-chat", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        self._ready.result()
        return self

    def __exit__(self, *error: object) -> None:
        self._put(None)
        self._thread.join()

    def submit(self, request: ChatRequest) -> None:
        """Start to answer a request."""
        self._put(request)

    def _put(self, request: ChatRequest | None) -> None:
        self._loop.call_soon_threadsafe(self._inbox.put_nowait, request)

    def next(self) -> RequestOutcome | BaseException:
        """Wait for the next request to end, and return its outcome, or the error to raise."""
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
            backend: Backend | None = None
            if not self._endpoint.pacing.offline:
                backend = await stack.enter_async_context(self._backend())
            cache = stack.enter_context(self._opened())
            dispatcher = Dispatcher(self._endpoint, cache, backend)
            self._loop = asyncio.get_running_loop()
            self._inbox: asyncio.Queue[ChatRequest | None] = asyncio.Queue()
            self._ready.set_result(None)
            await self._ask_all(dispatcher)

    def _backend(self) -> Backend:
        if self._endpoint.door is not None:
            return ServedBackend(self._endpoint, self._say)
        return Connection(self._endpoint)

    async def _ask_all(self, dispatcher: Dispatcher) -> None:
        tasks: set[asyncio.Task[None]] = set()
        while (request := await self._inbox.get()) is not None:
            task = asyncio.create_task(self._ask(dispatcher, request))
            tasks.add(task)
            task.add_done_callback(tasks.discard)
        dispatcher.stop()
        if self._endpoint.served is not None:
            for task in tasks:
                task.cancel()
        # Services may bill requests that they have received, so wait for them.
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _ask(self, dispatcher: Dispatcher, request: ChatRequest) -> None:
        try:
            self._outcomes.put(await dispatcher.answer(request))
        except BaseException as error:  # noqa: BLE001 - the caller's thread raises it
            self._outcomes.put(error)
