"""Ask in batches: what can be answered is, the rest is submitted now and collected on another day."""

import json
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from synthbench.errors import PendingError, UserError
from synthbench.llm.batch_api import (
    BatchService,
    MayBeThereError,
    RemoteBatch,
    ResultLine,
    lines_in,
    read_line,
    request_line,
)
from synthbench.llm.cache import FILE, Answer, AnswerCache, Cost, OverBudgetError, Say, key_of
from synthbench.llm.connection import CONTENT_FILTER, FailedAttemptError
from synthbench.llm.database import Batch, BatchBook, Database, new_token
from synthbench.llm.endpoint import Account, Endpoint, price_of
from synthbench.llm.limits import Budget, FailureWatch
from synthbench.llm.replies import answered
from synthbench.llm.requests import ChatAnswer, ChatRequest


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


_FREE = ("failed", "expired", "cancelled")
"""How a batch ended of which what has no answer was not carried out."""


class Collector:
    """Collects the batches of an endpoint that are done; used by one thread.

    `failures` are the reasons, by the requests' keys in the cache, of those that failed for good; `pending`
    has a line for each batch that is not done.
    """

    def __init__(self, endpoint: Endpoint, cache: AnswerCache, service: BatchService) -> None:
        self._endpoint = endpoint
        self._cache = cache
        self._service = service
        self._book = BatchBook(cache.database)
        self._price = price_of(endpoint)
        self.failures: dict[str, str] = {}
        self.pending: list[str] = []

    def collect(self, tokens: Iterable[str]) -> None:
        """Look at each batch, and collect what is done.

        Raises UserError, when all that can be kept is kept, if the service refused a batch as a whole or says
        that no request can succeed.
        """
        messages: dict[str, None] = {}
        for token in tokens:
            with self._book.holding(token):
                batch = self._arrived(token)
                if batch is not None:
                    messages.update(dict.fromkeys(self._collect(batch)))
        if messages:
            raise UserError(*messages)

    def say_submitted(self, batch: Batch) -> None:
        """Note a batch that has just left."""
        self._say(batch, f"{self._book.num_open(batch.token):,} requests submitted")

    def _say(self, batch: Batch, how_far: str) -> None:
        self.pending.append(
            f"batch {batch.id} of '{self._endpoint.name}': {how_far}; the same command collects it"
        )

    def _arrived(self, token: str) -> Batch | None:
        """Return the batch with its id, None if it is closed, or never arrived."""
        batch = self._book.find(token)
        if batch is None or batch.id:
            return batch
        if not batch.sent:
            self._book.close(token, "ended before it left", is_free=True)
            return None
        found = self._service.find(batch)
        if found is None:
            self._book.close(token, "ended before its batch arrived", is_free=False)
            return None
        self._book.submitted(token, found)
        return self._book.find(token)

    def _collect(self, batch: Batch) -> tuple[str, ...]:
        """Collect one batch; return what the user must know before anything is asked again."""
        remote = self._service.look(batch)
        if remote.is_under_way:
            self._say(batch, f"{remote.num_done:,} of {self._book.num_open(batch.token):,} requests done")
            return ()
        messages: dict[str, None] = {}
        for name in remote.files:
            with tempfile.TemporaryFile(dir=self._cache.database.file.parent) as file:
                self._service.fetch(batch, name, file)
                messages.update(dict.fromkeys(self._read(batch, file)))
        self._book.close(batch.token, f"{remote.state} without it", is_free=remote.state in _FREE)
        return (*messages, *self._refused(batch, remote))

    def _refused(self, batch: Batch, remote: RemoteBatch) -> tuple[str, ...]:
        if remote.state != "failed":
            return ()
        said = remote.said or "no reason given"
        return (f"the LLM '{self._endpoint.name}' refused batch {batch.id}, which costs nothing: {said}",)

    def _read(self, batch: Batch, file: IO[bytes]) -> tuple[str, ...]:
        messages: dict[str, None] = {}
        file.seek(0)
        for line in lines_in(file):
            found = read_line(line)
            booked = found and self._book.attempt(batch.token, found.key)
            if found and booked:
                messages.update(dict.fromkeys(self._settle(found, *booked)))
        return tuple(messages)

    def _settle(self, line: ResultLine, attempt: int, prompt_tokens: int) -> tuple[str, ...]:
        try:
            answer = line.answer(self._service.refusals, prompt_tokens)
        except FailedAttemptError as error:
            self._fail(line.key, attempt, error, prompt_tokens)
            return ()
        except UserError as error:
            self._cache.refused(attempt, str(error))
            return error.messages
        tokens = (answer.prompt_tokens, answer.completion_tokens)
        usd = self._price.usd(*tokens, is_batch=True) if self._price else 0.0
        self._cache.answered(attempt, line.key, answer, usd)
        return ()

    def _fail(self, key: str, attempt: int, error: FailedAttemptError, prompt_tokens: int) -> None:
        if error.is_in_doubt:
            self._cache.doubted(attempt, error.reason)
        else:
            self._cache.refused(attempt, error.reason)
        num_tries = self._book.num_in_vain(key)
        if not error.can_pass(num_tries, self._endpoint.pacing.tries):
            is_plain = num_tries == 1 or error.reason == CONTENT_FILTER
            self.failures[key] = error.reason + ("" if is_plain else f", given up after {num_tries} batches")
            if error.is_bought:
                self._cache.keep(key, Answer(None, self.failures[key], prompt_tokens, 0))


MAX_REQUESTS = 50_000
MAX_BYTES = 100_000_000
"""A batch ends with the request that passes this; services take about twice as much."""


def answers_in_batches(
    endpoint: Endpoint, folder: Path, account: Account, requests: Iterable[ChatRequest], say: Say
) -> Iterator[ChatAnswer]:
    """Yield what the cache has or a batch has brought, submit the rest.

    Raises PendingError in the end if anything is under way, and UserError as ChatClient.answers does.
    """
    with BatchService(endpoint) as service, AnswerCache(folder, endpoint, account, say) as cache:
        yield from _Batches(endpoint, cache, service).answers(requests)


def collect_batches(endpoint: Endpoint, folder: Path, account: Account, say: Say) -> tuple[str, ...]:
    """Collect what is done of the endpoint's batches, and return a line for each that is not.

    Nobody is asked where there is none, or the endpoint is not to be asked.

    Raises UserError as ChatClient.answers does.
    """
    if endpoint.pacing.offline or not endpoint.base_url:
        return ()
    with AnswerCache(folder, endpoint, account, say) as cache:
        tokens = BatchBook(cache.database).open_at(endpoint)
        if not tokens:
            return ()
        with BatchService(endpoint) as service:
            collector = Collector(endpoint, cache, service)
            collector.collect(tokens)
            return tuple(collector.pending)


def give_up_batch(folder: Path, name: str) -> int:
    """Wait no more for a batch, whose requests are in doubt from now on; return how many.

    Raises UserError if no batch of this name (its id, or our token) is under way.
    """
    with closing(Database(folder / FILE)) as database:
        book = BatchBook(database)
        found = {batch.id or batch.token: batch for batch in book.all_open()}
        if name not in found:
            raise UserError(f"no batch '{name}' is under way; there are: {', '.join(found) or 'none'}")
        token = found[name].token
        with book.holding(token):
            num_requests = book.num_open(token)
            book.close(token, "given up", is_free=False)
    return num_requests


@dataclass(frozen=True)
class _Limit:
    """Why no more can be submitted now; with `error` unless something is under way that makes room."""

    why: str
    error: UserError | None


class _Batches:
    """The requests of one session; used by one thread."""

    def __init__(self, endpoint: Endpoint, cache: AnswerCache, service: BatchService) -> None:
        self._endpoint = endpoint
        self._cache = cache
        self._service = service
        self._folder = cache.database.file.parent
        self._book = BatchBook(cache.database)
        self._budget = Budget(endpoint, cache)
        self._collector = Collector(endpoint, cache, service)
        self._watch = FailureWatch(endpoint.name, endpoint.pacing.max_failure_rate)
        self._failed: list[ChatAnswer] = []
        self._num_tokens = 0
        self._limit: _Limit | None = None

    def answers(self, requests: Iterable[ChatRequest]) -> Iterator[ChatAnswer]:
        """Do as `answers_in_batches`."""
        with Spool(self._folder) as new, Spool(self._folder) as waited_for, Spool(self._folder) as others:
            yield from self._known(requests, new, waited_for)
            yield from self._collected(waited_for, new)
            self._submit(new, others)
            num_elsewhere = 0
            for request in others:
                found = self._cache.find(self._key(request))
                num_elsewhere += found is None
                if found is not None:
                    yield answered(request, found)
        yield from self._failed
        if num_elsewhere and not self._collector.pending:
            name = self._endpoint.name
            raise PendingError(f"{num_elsewhere:,} requests to '{name}' are under way in another process")
        if self._collector.pending:
            raise PendingError(*self._collector.pending)

    def _key(self, request: ChatRequest) -> str:
        return key_of(self._endpoint, request)

    def _known(self, requests: Iterable[ChatRequest], new: Spool, waited_for: Spool) -> Iterator[ChatAnswer]:
        """Yield what the cache has, divide the rest, and collect the batches in which there is any of it."""
        tokens: dict[str, None] = {}
        for request in requests:
            key = self._key(request)
            found = self._cache.find(key)
            token = None if found is not None else self._book.holder_of(key)
            if found is not None:
                self._budget.learn(request, found)
                yield answered(request, found)
            elif token is not None:
                tokens[token] = None
                waited_for.add(request)
            else:
                new.add(request)
        self._collector.collect(tokens)

    def _collected(self, waited_for: Spool, new: Spool) -> Iterator[ChatAnswer]:
        """Yield what has come; what was turned away joins the new."""
        for request in waited_for:
            key = self._key(request)
            found = self._cache.find(key)
            if key in self._collector.failures:
                self._fail(request, self._collector.failures[key])
            elif found is not None:
                self._budget.learn(request, found)
                self._watch.succeeded(request)
                yield answered(request, found)
            elif self._book.holder_of(key) is None:
                new.add(request)

    def _fail(self, request: ChatRequest, reason: str) -> None:
        self._failed.append(ChatAnswer(request, None, reason))
        if reason == CONTENT_FILTER:
            self._watch.succeeded(request)
        else:
            self._watch.failed(request, reason)

    def _submit(self, new: Spool, others: Spool) -> None:
        """Submit what the limits allow; raises UserError if that is nothing, and nothing is under way."""
        waiting = iter(new)
        self._num_tokens = self._book.num_tokens(self._endpoint)
        while self._limit is None and self._submit_one(waiting, others):
            pass
        if self._limit is None:
            return
        if self._limit.error is not None and not self._collector.pending:
            raise self._limit.error
        self._collector.pending.append(
            f"{1 + sum(1 for _ in waiting):,} more requests to '{self._endpoint.name}' {self._limit.why}; the"
            " same command submits what fits once batches are done"
        )

    def _submit_one(self, waiting: Iterator[ChatRequest], others: Spool) -> bool:
        """Submit one batch of what waits; return False if there was nothing to submit."""
        token = new_token()
        with self._book.holding(token), tempfile.TemporaryFile(dir=self._folder) as file:
            self._book.begin(token, self._endpoint)
            if self._write(token, waiting, others, file):
                self._send(self._book.leaves(token), file)
                return True
            self._book.close(token, "", is_free=True)
            return False

    def _send(self, batch: Batch, file: IO[bytes]) -> None:
        try:
            batch_id = self._service.submit(file, batch.token)
        except MayBeThereError:
            raise
        except UserError as error:
            self._book.close(batch.token, str(error), is_free=True)
            raise
        self._book.submitted(batch.token, batch_id)
        self._collector.say_submitted(Batch(batch.token, batch.sent, batch_id))

    def _write(self, token: str, waiting: Iterator[ChatRequest], others: Spool, file: IO[bytes]) -> int:
        """Note the requests of a batch and write its file; return how many there are."""
        num_requests = 0
        for request in waiting:
            num_requests += self._note(token, request, others, file)
            if self._limit or num_requests == MAX_REQUESTS or file.tell() >= MAX_BYTES:
                break
        return num_requests

    def _note(self, token: str, request: ChatRequest, others: Spool, file: IO[bytes]) -> bool:
        """Tell whether a request is in the batch now; `others` are under way elsewhere, or answered."""
        key, cost, pacing = self._key(request), self._budget.expected(request), self._endpoint.pacing
        if (
            pacing.enqueued_tokens is not None
            and self._num_tokens + cost.prompt_tokens > pacing.enqueued_tokens
        ):
            self._limit = _too_many_tokens(pacing.enqueued_tokens, cost, is_empty=not self._num_tokens)
            return False
        try:
            line = request_line(self._endpoint, key, request)
            attempt = self._cache.send(key, cost, pacing.budget_usd, token)
        except FailedAttemptError as error:
            self._fail(request, error.reason)
            return False
        except OverBudgetError as error:
            why = f"may cost more than llm.budget_usd ({pacing.budget_usd:g} US dollars) leaves"
            self._limit = _Limit(why, self._budget.no_money(error.spent, cost))
            return False
        if attempt is None:
            others.add(request)
            return False
        self._num_tokens += cost.prompt_tokens
        file.write(line)
        return True


def _too_many_tokens(most: int, cost: Cost, *, is_empty: bool) -> _Limit:
    error = UserError(
        f"llm.enqueued_tokens: {most:,}: the next request alone may have {cost.prompt_tokens:,}"
    )
    return _Limit(f"have more tokens than llm.enqueued_tokens ({most:,}) leaves", error if is_empty else None)
