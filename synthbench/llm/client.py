"""Send many requests to a chat model at once."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from synthbench.base.errors import PendingError
from synthbench.llm.cache import Say
from synthbench.llm.endpoint import Account, Endpoint
from synthbench.llm.requests import ChatAnswer, ChatRequest

REQUESTS_PER_SLOT = 4
"""Requests submitted per allowed concurrent request, so that some are ready while the caller is busy."""


@dataclass(frozen=True)
class ChatClient:
    """Sends requests to an endpoint; the cache in `folder` answers those of earlier runs."""

    endpoint: Endpoint
    folder: Path
    account: Account = field(default_factory=Account)
    say: Say = print
    """Reports damaged cached answers."""

    def answers(self, requests: Iterable[ChatRequest]) -> Iterator[ChatAnswer]:
        """Yield an answer to each request, in order of completion.

        Requests are read, in the caller's thread, only as fast as they are answered. Failures that another
        run may mend come last, once the run as a whole has succeeded.

        Raises UserError if no request can succeed (no key, wrong key, unknown model, unreachable), too many
        failed, the budget is spent, or an answer is not cached and `offline` is set; PendingError at the end
        if answers are in an unfinished batch.
        """
        from synthbench.llm.batches import answers_in_batches

        if self.endpoint.pacing.batch and not self.endpoint.pacing.offline:
            yield from answers_in_batches(self.endpoint, self.folder, self.account, requests, self.say)
        else:
            yield from self._directly(requests)

    def _directly(self, requests: Iterable[ChatRequest]) -> Iterator[ChatAnswer]:
        from synthbench.llm.batches import collect_batches
        from synthbench.llm.dispatcher import AsyncBridge

        pending = collect_batches(self.endpoint, self.folder, self.account, self.say)
        num_pending = 0
        waiting = iter(requests)
        window = REQUESTS_PER_SLOT * self.endpoint.pacing.concurrency
        failed: list[ChatAnswer] = []
        error: BaseException | None = None
        with AsyncBridge(self.endpoint, self.folder, self.account, self.say) as bridge:
            num_open = 0
            while True:
                batch = islice(waiting, window - num_open) if error is None else ()
                for request in batch:
                    bridge.submit(request)
                    num_open += 1
                if not num_open:
                    break
                outcome = bridge.next()
                num_open -= 1
                if isinstance(outcome, BaseException):
                    error = _worse(error, outcome)
                elif outcome.is_pending:
                    num_pending += 1
                elif not outcome.is_final:
                    failed.append(outcome.answer)
                elif error is None:
                    yield outcome.answer
        if error is not None:
            raise error
        yield from failed
        if num_pending:
            name = self.endpoint.name
            raise PendingError(*pending or (f"{num_pending:,} requests to '{name}' are in another's batch",))


def _worse(known: BaseException | None, new: BaseException) -> BaseException:
    """Return the first error that is not merely the consequence of another."""
    from synthbench.llm.dispatcher import StoppedError

    return new if known is None or isinstance(known, StoppedError) else known
