"""Asking in batches: what can be answered is, the rest is submitted and collected on another day."""

import tempfile
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from synthbench.errors import PendingError, UserError
from synthbench.generation.chat.batch_book import Batch, BatchBook, new_token
from synthbench.generation.chat.batch_collecting import Collector
from synthbench.generation.chat.batch_lines import request_line
from synthbench.generation.chat.batch_service import BatchService, MayBeThereError
from synthbench.generation.chat.budget import Budget
from synthbench.generation.chat.cache import FILE, AnswerCache, Cost, OverBudgetError, Say, key_of
from synthbench.generation.chat.connection import CONTENT_FILTER, FailedAttemptError
from synthbench.generation.chat.database import Database
from synthbench.generation.chat.endpoint import Account, Endpoint
from synthbench.generation.chat.failures import FailureWatch
from synthbench.generation.chat.replies import answered
from synthbench.generation.chat.requests import ChatAnswer, ChatRequest
from synthbench.generation.chat.spool import Spool

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
