"""Collect an endpoint's finished batches; give an open batch up."""

import tempfile
from collections.abc import Callable, Iterable
from contextlib import closing
from pathlib import Path
from typing import IO

from synthbench.base.errors import UserError
from synthbench.data.answer_kinds import AnswerKind
from synthbench.llm.answers import Answer
from synthbench.llm.batch_api import BatchService, ResultLine, lines_in, read_line
from synthbench.llm.cache import FILE, AnswerCache
from synthbench.llm.database import BatchTable, Database, OpenBatch
from synthbench.llm.endpoint import Endpoint, price_of
from synthbench.llm.retries import FailedAttemptError, FailureKind, is_final_answer

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
