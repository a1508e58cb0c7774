"""Answer requests from the cache and from finished batches, and submit the others in new batches."""

import json
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from synthbench.base.errors import PendingError, UserError
from synthbench.data.answer_kinds import AnswerKind
from synthbench.llm.accounts import Cost
from synthbench.llm.answers import Answer
from synthbench.llm.batch_api import BatchService, MaybeSubmittedError, request_line
from synthbench.llm.cache import AnswerCache, OverBudgetError, key_of
from synthbench.llm.database import BatchTable, OpenBatch, new_token
from synthbench.llm.dispatcher import taken
from synthbench.llm.endpoint import Endpoint
from synthbench.llm.finished_batches import Collector
from synthbench.llm.limits import Budget, CircuitBreaker
from synthbench.llm.requests import ChatAnswer, ChatRequest
from synthbench.llm.retries import FailedAttemptError


class Spool(AbstractContextManager["Spool"]):
    """A queue of requests in an unnamed file, which vanishes with the process."""

    def __init__(self, folder: Path) -> None:
        self._file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 - the spool is the context manager

    def __exit__(self, *error: object) -> None:
        self._file.close()

    def add(self, request: ChatRequest) -> None:
        """Add a request."""
        messages = [dict(message) for message in request.messages]
        row = [request.key, messages, dict(request.sampling), request.sample, request.logprobs]
        self._file.write(json.dumps(row).encode() + b"\n")

    def __iter__(self) -> Iterator[ChatRequest]:
        self._file.seek(0)
        for line in self._file:
            key, messages, *rest = json.loads(line)
            yield ChatRequest(key, tuple(messages), *rest)


MAX_REQUESTS = 50_000
MAX_BYTES = 100_000_000
"""A batch is closed after the request that exceeds this; services accept about twice as much."""


def answers_in_batches(
    opened: Callable[[], AnswerCache], endpoint: Endpoint, requests: Iterable[ChatRequest]
) -> Iterator[ChatAnswer]:
    """Yield answers from the cache and finished batches; submit the other requests.

    Raises PendingError at the end if anything is in flight, and UserError as ChatClient.answers does.
    """
    with BatchService(endpoint) as service, opened() as cache:
        yield from _Batches(endpoint, cache, service).answers(requests)


@dataclass(frozen=True)
class _Limit:
    """Why nothing more can be submitted; `error` is raised unless open batches will make room."""

    why: str
    error: UserError | None


class _Batches:
    """One session's requests; used by one thread."""

    def __init__(self, endpoint: Endpoint, cache: AnswerCache, service: BatchService) -> None:
        self._endpoint = endpoint
        self._cache = cache
        self._service = service
        self._folder = cache.database.file.parent
        self._batches = BatchTable(cache.database)
        self._budget = Budget(endpoint, cache)
        self._collector = Collector(endpoint, cache, service)
        self._breaker = CircuitBreaker(endpoint)
        self._failed: list[ChatAnswer] = []
        self._num_tokens = 0
        self._limit: _Limit | None = None

    def answers(self, requests: Iterable[ChatRequest]) -> Iterator[ChatAnswer]:
        """Yield answers, as `answers_in_batches` does."""
        with Spool(self._folder) as new, Spool(self._folder) as in_batches, Spool(self._folder) as others:
            yield from self._known(requests, new, in_batches)
            yield from self._collected(in_batches, new)
            self._submit(new, others)
            num_elsewhere = 0
            for request in others:
                found = self._cache.find(self._key(request))
                num_elsewhere += found is None
                if found is not None:
                    yield self._taken(request, found)
        yield from self._failed
        if num_elsewhere and not self._collector.pending:
            name = self._endpoint.name
            raise PendingError(f"{num_elsewhere:,} requests to '{name}' are in flight in another process")
        if self._collector.pending:
            raise PendingError(*self._collector.pending)

    def _key(self, request: ChatRequest) -> str:
        return key_of(self._endpoint, request)

    def _taken(self, request: ChatRequest, found: Answer) -> ChatAnswer:
        return taken(self._endpoint, self._cache, request, found)

    def _known(self, requests: Iterable[ChatRequest], new: Spool, in_batches: Spool) -> Iterator[ChatAnswer]:
        """Yield cached answers; sort the other requests into `in_batches` and `new`.

        `in_batches` gets the requests of open batches, which are collected at the end.
        """
        tokens: dict[str, None] = {}
        for request in requests:
            key = self._key(request)
            found = self._cache.find(key)
            token = None if found is not None else self._batches.batch_of(key)
            if found is not None:
                self._budget.learn(request, found)
                yield self._taken(request, found)
            elif token is not None:
                tokens[token] = None
                in_batches.add(request)
            else:
                new.add(request)
        self._collector.collect(tokens)

    def _collected(self, in_batches: Spool, new: Spool) -> Iterator[ChatAnswer]:
        """Yield collected answers; note failures; requests left unanswered by a closed batch go to `new`."""
        for request in in_batches:
            key = self._key(request)
            found = self._cache.find(key)
            if key in self._collector.failures:
                self._fail(ChatAnswer(request, None, *self._collector.failures[key]))
            elif found is not None:
                self._budget.learn(request, found)
                answer = self._taken(request, found)
                self._note(answer)
                yield answer
            elif self._batches.batch_of(key) is None:
                new.add(request)

    def _fail(self, failed: ChatAnswer) -> None:
        self._failed.append(failed)
        self._note(failed)

    def _note(self, answer: ChatAnswer) -> None:
        """Report an answer to the circuit breaker: no text is a failure, unless the LLM refused."""
        if answer.text is not None or answer.kind is AnswerKind.REFUSED:
            self._breaker.succeeded(answer.request)
            return
        try:
            self._breaker.failed(answer.request, answer.failure)
        except UserError:
            # The endpoint is broken, not single requests: it may answer these once it is fixed.
            self._cache.withdraw(self._collector.unusable)
            raise

    def _submit(self, new: Spool, others: Spool) -> None:
        """Submit what the limits allow; raises UserError if they allow nothing and no batch is open."""
        waiting = iter(new)
        self._num_tokens = self._batches.num_tokens(self._endpoint)
        while self._limit is None and self._submit_one(waiting, others):
            pass
        if self._limit is None:
            return
        if self._limit.error is not None and not self._collector.pending:
            raise self._limit.error
        self._collector.pending.append(
            f"{1 + sum(1 for _ in waiting):,} more requests to '{self._endpoint.name}' {self._limit.why};"
            " run the same command again once batches are finished"
        )

    def _submit_one(self, waiting: Iterator[ChatRequest], others: Spool) -> bool:
        """Submit one batch; return False if there was nothing to submit."""
        token = new_token()
        with self._batches.locked(token), tempfile.TemporaryFile(dir=self._folder) as file:
            self._batches.insert(token, self._endpoint)
            if self._write(token, waiting, others, file):
                self._send(self._batches.mark_sent(token), file)
                return True
            self._batches.close(token, "", is_free=True)
            return False

    def _send(self, batch: OpenBatch, file: IO[bytes]) -> None:
        try:
            self._cache.share()
            batch_id = self._service.submit(file, batch.token)
        except MaybeSubmittedError:
            raise
        except UserError as error:
            self._batches.close(batch.token, str(error), is_free=True)
            raise
        self._batches.set_id(batch.token, batch_id)
        self._collector.say_submitted(OpenBatch(batch.token, batch.sent, batch_id))

    def _write(self, token: str, waiting: Iterator[ChatRequest], others: Spool, file: IO[bytes]) -> int:
        """Record a batch's requests and write its file; return their number."""
        num_requests = 0
        for request in waiting:
            num_requests += self._add(token, request, others, file)
            if self._limit or num_requests == MAX_REQUESTS or file.tell() >= MAX_BYTES:
                break
        return num_requests

    def _add(self, token: str, request: ChatRequest, others: Spool, file: IO[bytes]) -> bool:
        """Add a request to the batch; return whether it was added.

        If a limit prevents this, notes the limit; if the text is not valid Unicode, notes a failure.
        `others` takes requests that are in flight or answered by now.
        """
        key, cost, pacing = self._key(request), self._budget.expected(request), self._endpoint.pacing
        if (
            pacing.enqueued_tokens is not None
            and self._num_tokens + cost.prompt_tokens > pacing.enqueued_tokens
        ):
            self._limit = _too_many_tokens(self._endpoint, cost, is_empty=not self._num_tokens)
            return False
        try:
            line = request_line(self._endpoint, key, request)
            attempt = self._cache.begin_attempt(key, cost, token)
        except FailedAttemptError as error:
            self._fail(ChatAnswer(request, None, error.reason))
            return False
        except OverBudgetError as error:
            budget = f"{self._endpoint.section}.{error.key} ({self._budget.most(error.key)})"
            why = f"may cost more than {budget} leaves"
            self._limit = _Limit(why, self._budget.budget_error(error, cost))
            return False
        if attempt is None:
            others.add(request)
            return False
        self._num_tokens += cost.prompt_tokens
        file.write(line)
        return True


def _too_many_tokens(endpoint: Endpoint, cost: Cost, *, is_empty: bool) -> _Limit:
    key, most = f"{endpoint.section}.enqueued_tokens", endpoint.pacing.enqueued_tokens
    error = UserError(f"{key}: {most:,}: the next request alone may need {cost.prompt_tokens:,}")
    return _Limit(f"have more tokens than {key} ({most:,}) leaves", error if is_empty else None)
