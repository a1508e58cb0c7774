"""Getting the answer to a request: from the cache, or by as many attempts as it takes."""

import asyncio
from contextlib import suppress
from dataclasses import dataclass

from synthbench.errors import UserError
from synthbench.generation.chat.backend import Backend
from synthbench.generation.chat.batch_book import BatchBook
from synthbench.generation.chat.budget import Budget
from synthbench.generation.chat.cache import Answer, AnswerCache, Cost, key_of
from synthbench.generation.chat.connection import (
    CONTENT_FILTER,
    FailedAttemptError,
    Kind,
    gone,
)
from synthbench.generation.chat.endpoint import Endpoint
from synthbench.generation.chat.failures import FailureWatch
from synthbench.generation.chat.replies import answered
from synthbench.generation.chat.requests import ChatAnswer, ChatRequest
from synthbench.generation.chat.traffic import AdaptiveLimit, Rate

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
