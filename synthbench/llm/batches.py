"""Answer requests from the cache, submit the others in batches, and collect these in a later run."""

import json
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from synthbench.base.errors import PendingError, UserError
from synthbench.data.answer_kinds import AnswerKind
from synthbench.llm.accounts import Cost
from synthbench.llm.answers import Answer
from synthbench.llm.batch_api import (
    BatchService,
    MaybeSubmittedError,
    ResultLine,
    lines_in,
    read_line,
    request_line,
)
from synthbench.llm.cache import FILE, AnswerCache, OverBudgetError, key_of
from synthbench.llm.database import BatchTable, Database, OpenBatch, new_token
from synthbench.llm.dispatcher import taken
from synthbench.llm.endpoint import Endpoint, price_of
from synthbench.llm.limits import Budget, CircuitBreaker
from synthbench.llm.requests import ChatAnswer, ChatRequest
from synthbench.llm.retries import FailedAttemptError, FailureKind, is_final_answer


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


_UNBILLED_STATES = ("failed", "expired", "cancelled")
"""Final states of a batch whose unanswered requests were not run."""


class Collector:
    """Collects an endpoint's finished batches; used by one thread.

    `failures`: cache key -> reason and kind, for requests that failed for good. `unusable`: cache keys of
    newly cached answers that are empty or faulty. `pending` has a line for each batch that was submitted or
    checked, and is still open.
    """

    def __init__(self, endpoint: Endpoint, cache: AnswerCache, service: BatchService) -> None:
        self._endpoint = endpoint
        self._cache = cache
        self._service = service
        self._batches = BatchTable(cache.database)
        self._price = price_of(endpoint)
        self._messages: dict[str, None] = {}
        self.failures: dict[str, tuple[str, AnswerKind]] = {}
        self.unusable: list[str] = []
        self.pending: list[str] = []

    def collect(self, tokens: Iterable[str]) -> None:
        """Check each batch, and collect the finished ones.

        Raises UserError at once if a batch can't be retrieved. Raises UserError after caching all answers if
        the service refused a whole batch, or if a result shows that no request can succeed.
        """
        for token in tokens:
            with self._batches.locked(token):
                try:
                    batch = self._arrived(token)
                    if batch is not None:
                        self._collect(batch)
                except UserError as error:
                    if not self._messages:
                        raise
                    # A refused batch is closed by now: a later command could not tell its reason.
                    raise UserError(*self._messages, *error.messages) from error
        if self._messages:
            raise UserError(*self._messages)

    def say_submitted(self, batch: OpenBatch) -> None:
        """Add a line to `pending` on a batch that was just submitted."""
        self._say(batch, f"{self._batches.num_open(batch.token):,} requests submitted")

    def _say(self, batch: OpenBatch, how_far: str) -> None:
        self.pending.append(
            f"batch {batch.id} of '{self._endpoint.name}': {how_far}; run the same command again to collect"
            " it"
        )

    def _arrived(self, token: str) -> OpenBatch | None:
        """Return the batch with its id, None if it is closed; close it if the service never got it."""
        batch = self._batches.find(token)
        if batch is None or batch.id:
            return batch
        if not batch.sent:
            self._batches.close(token, "ended before it was sent", is_free=True)
            return None
        found = self._service.find(batch)
        if found is None:
            self._batches.close(token, "ended before its batch was confirmed", is_free=False)
            return None
        self._batches.set_id(token, found)
        return self._batches.find(token)

    def _collect(self, batch: OpenBatch) -> None:
        """Collect one batch; add errors that only the user can fix to `_messages`."""
        remote = self._service.state_of(batch)
        if remote.is_under_way:
            state = f", in the unknown state '{remote.unknown_state}'" if remote.unknown_state else ""
            num_open = self._batches.num_open(batch.token)
            self._say(batch, f"{remote.num_done:,} of {num_open:,} requests done{state}")
            return
        for name in remote.files:
            with tempfile.TemporaryFile(dir=self._cache.database.file.parent) as file:
                self._service.fetch(batch, name, file)
                self._read(batch, file)
        self._batches.close(
            batch.token, f"{remote.state} without it", is_free=remote.state in _UNBILLED_STATES
        )
        if remote.state == "failed":
            said = remote.said or "no reason given"
            name = self._endpoint.name
            self._messages[f"the LLM '{name}' refused batch {batch.id}, which costs nothing: {said}"] = None

    def _read(self, batch: OpenBatch, file: IO[bytes]) -> None:
        file.seek(0)
        for line in lines_in(file):
            found = read_line(line)
            booked = found and self._batches.attempt(batch.token, found.key)
            if found and booked:
                self._settle(found, *booked)

    def _settle(self, line: ResultLine, attempt: int, prompt_tokens: int) -> None:
        try:
            answer = line.answer(self._service.errors, prompt_tokens)
        except FailedAttemptError as error:
            self._fail(line.key, attempt, error, prompt_tokens)
        except UserError as error:
            self._cache.record_failure(attempt, str(error))
            self._messages.update(dict.fromkeys(error.messages))
        else:
            self._note(line.key, attempt, answer)

    def _note(self, key: str, attempt: int, answer: Answer) -> None:
        """Cache an answer that is final; otherwise record its cost, and a failure after the last try."""
        tokens = (answer.prompt_tokens, answer.completion_tokens)
        cached = answer.details.cached_tokens
        usd = self._price.usd(*tokens, cached_tokens=cached, is_batch=True) if self._price else 0.0
        num_tries = self._batches.num_failures(key) + 1
        # An expired batch gave no answer, so it uses up no try of requests with empty answers.
        if is_final_answer(answer, self._cache.num_unfinished(key) + 1, self._endpoint.pacing.tries):
            self._cache.record_answer(attempt, key, answer, usd)
            if answer.kind in (AnswerKind.EMPTY, AnswerKind.FAULTY):
                self.unusable.append(key)
            return
        self._cache.record_unfinished(attempt, answer, usd)
        error = FailedAttemptError(FailureKind.UNFINISHED, answer.failure, answer_kind=answer.kind)
        if not error.can_pass(num_tries, self._endpoint.pacing.tries):
            self.failures[key] = (error.failure(num_tries, "batches"), answer.kind)

    def _fail(self, key: str, attempt: int, error: FailedAttemptError, prompt_tokens: int) -> None:
        self._cache.record_failure(attempt, error.reason, error.answer_kind, in_doubt=error.rule.in_doubt)
        num_tries = self._batches.num_failures(key)
        if not error.can_pass(num_tries, self._endpoint.pacing.tries):
            told = 1 if error.answer_kind is AnswerKind.REFUSED else num_tries
            self.failures[key] = (error.failure(told, "batches"), error.answer_kind)
            if error.rule.is_billed:
                failure = error.reason_after(num_tries, "batches")
                self._cache.store(key, Answer(None, failure, prompt_tokens, 0))
                self.unusable.append(key)


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


def collect_batches(opened: Callable[[], AnswerCache], endpoint: Endpoint) -> tuple[str, ...]:
    """Collect the endpoint's finished batches, and return a line for each unfinished one.

    Sends nothing if there are no batches, the endpoint is offline, or the run serves the model.

    Raises UserError as ChatClient.answers does.
    """
    if endpoint.pacing.offline or not endpoint.base_url:
        return ()
    with opened() as cache:
        tokens = BatchTable(cache.database).open_tokens(endpoint)
        if not tokens:
            return ()
        with BatchService(endpoint) as service:
            collector = Collector(endpoint, cache, service)
            collector.collect(tokens)
            return tuple(collector.pending)


def give_up_batch(folder: Path, name: str) -> int:
    """Close an open batch, marking its requests as in doubt; return their number.

    `name` is the batch's id, or our token if it has no id yet. Raises UserError if no open batch
    has this name.
    """
    with closing(Database(folder / FILE)) as database:
        batches = BatchTable(database)
        found = {batch.id or batch.token: batch for batch in batches.all_open()}
        if name not in found:
            raise UserError(f"no batch '{name}' is open; open batches: {', '.join(found) or 'none'}")
        token = found[name].token
        with batches.locked(token):
            num_requests = batches.num_open(token)
            batches.close(token, "given up", is_free=False)
    return num_requests


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
