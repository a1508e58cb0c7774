"""Send many requests to a chat model at once."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Protocol

from synthbench.base.errors import PendingError, UserError
from synthbench.base.runtime import Progress, not_shared, progress_task
from synthbench.data.records import Failure
from synthbench.llm.answered import why_unusable
from synthbench.llm.asking import hashed_number
from synthbench.llm.cache import AnswerCache, Say
from synthbench.llm.endpoint import Account, Endpoint
from synthbench.llm.requests import ChatAnswer, ChatRequest

REQUESTS_PER_SLOT = 4
"""Requests submitted per allowed concurrent request, so that some are ready while the caller is busy."""


class Answering(Protocol):
    """Anything that answers chat requests."""

    def answers(self, requests: Iterable[ChatRequest]) -> Iterator[ChatAnswer]:
        """Yield an answer to each request, in order of completion."""


@dataclass(frozen=True)
class LLM:
    """The experiment's LLM for a method or step; every answer is cached, so that it is paid once.

    `name` is its name in the experiment, `model` the requested model. Its address and key are not exposed.
    """

    name: str
    model: str
    _client: Answering = field(repr=False)
    _progress: Progress | None = field(default=None, repr=False)
    _times: Counter[str] = field(default_factory=Counter, repr=False)
    failures: list[Failure] = field(default_factory=list, repr=False)
    """A record, with the reason, for each prompt that `ask` answered with None."""

    def answers(self, requests: Iterable[ChatRequest]) -> Iterator[ChatAnswer]:
        """Yield an answer to each request, in order of completion. Callers must not catch its UserErrors."""
        return self._client.answers(requests)

    def ask(
        self, prompts: Iterable[str | Sequence[Mapping[str, str]]], *, seed: int = 0, **sampling: float
    ) -> Iterator[str | None]:
        """Yield the LLM's text for each prompt, in order; None without a usable text, or for a refusal.

        A prompt is a text, or a list of messages (role, content). `sampling`: parameters by the API's names,
        such as `temperature=0.7`. Repeating a prompt in a run samples a new answer; so does another
        `seed`.

        Raises UserError if `prompts` is one text, and what `answers` raises.
        """
        if isinstance(prompts, str):  # each letter would be a prompt
            raise UserError("llm.ask: takes a list of prompts, not one text")
        waiting: dict[str, ChatAnswer] = {}
        due = 0
        requests = (self._request(index, prompt, seed, sampling) for index, prompt in enumerate(prompts))
        total = len(prompts) if isinstance(prompts, Sized) else 0
        with progress_task(self._progress if total else None, "asking the LLM", total) as bar:
            for answer in self.answers(requests):
                waiting[answer.request.key] = answer
                bar.advance()
                while (answered := waiting.pop(str(due), None)) is not None:
                    yield self._text(answered)
                    due += 1

    def _request(
        self,
        index: int,
        prompt: str | Sequence[Mapping[str, str]],
        seed: int,
        sampling: Mapping[str, float],
    ) -> ChatRequest:
        messages = ({"role": "user", "content": prompt},) if isinstance(prompt, str) else tuple(prompt)
        before = self._times[str(messages)]
        self._times[str(messages)] += 1
        sample = hashed_number(seed, before) if seed or before else 0
        return ChatRequest(str(index), messages, sampling, sample)

    def _text(self, answer: ChatAnswer) -> str | None:
        reason = answer.failure if answer.text is None else why_unusable(answer.text, ())
        if not reason:
            return answer.text
        self.failures.append(Failure(reason=reason, raw_text=answer.text or "", generator=self.model))
        return None


@dataclass(frozen=True)
class ChatClient:
    """Sends requests to an endpoint; the cache in `folder` answers requests that earlier runs have sent."""

    endpoint: Endpoint
    folder: Path
    account: Account = field(default_factory=Account)
    say: Say = print
    """Prints messages: a cached answer is damaged, a server starts or fails."""
    share: Callable[[], None] = not_shared
    """Sends this cache's changes to the other machines of a shared store; does nothing without one."""

    def answers(self, requests: Iterable[ChatRequest]) -> Iterator[ChatAnswer]:
        """Yield an answer to each request, in order of completion.

        Requests are read in the caller's thread: with the Batch API all of them first, otherwise only as fast
        as they are answered. Failures that a retry may mend come last, and only if no error is raised before.

        Raises UserError if no request can succeed (no key, wrong key, unknown model, unreachable), too many
        failed, the budget is spent, or an answer is not cached and `offline` is set. Raises PendingError at
        the end if requests are in an unfinished batch or, with the Batch API, in flight in another process.
        """
        from synthbench.llm.batches import answers_in_batches

        if self.endpoint.pacing.batch and not self.endpoint.pacing.offline:
            yield from answers_in_batches(self._cache, self.endpoint, requests)
        else:
            yield from self._directly(requests)

    def _directly(self, requests: Iterable[ChatRequest]) -> Iterator[ChatAnswer]:
        from synthbench.llm.dispatcher import AsyncBridge
        from synthbench.llm.finished_batches import collect_batches

        pending = collect_batches(self._cache, self.endpoint)
        num_pending = 0
        waiting = iter(requests)
        window = REQUESTS_PER_SLOT * self.endpoint.pacing.concurrency
        failed: list[ChatAnswer] = []
        error: BaseException | None = None
        with AsyncBridge(self._cache, self.endpoint, self.say) as bridge:
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

    def _cache(self) -> AnswerCache:
        """Open a session of the cache."""
        return AnswerCache(self.folder, self.endpoint, self.account, self.say, self.share)


def _worse(known: BaseException | None, new: BaseException) -> BaseException:
    """Return the error to raise: `known`, or `new` if `known` is None or a StoppedError.

    A StoppedError only follows from another error.
    """
    from synthbench.llm.dispatcher import StoppedError

    return new if known is None or isinstance(known, StoppedError) else known
