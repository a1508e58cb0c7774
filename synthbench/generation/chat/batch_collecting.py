"""What has become of batches: answers into the cache, the rest to be asked again."""

import tempfile
from collections.abc import Iterable
from typing import IO

from synthbench.errors import UserError
from synthbench.generation.chat.batch_book import Batch, BatchBook
from synthbench.generation.chat.batch_lines import ResultLine, lines_in, read_line
from synthbench.generation.chat.batch_service import BatchService, RemoteBatch
from synthbench.generation.chat.cache import Answer, AnswerCache
from synthbench.generation.chat.connection import CONTENT_FILTER, FailedAttemptError
from synthbench.generation.chat.endpoint import Endpoint
from synthbench.generation.chat.prices import price_of

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
