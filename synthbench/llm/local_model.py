"""Answer requests with a local transformers chat model, many in one batch."""

import asyncio
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from threading import Event
from typing import TYPE_CHECKING, Any, Self

from synthbench.base.errors import UserError, in_one_line
from synthbench.base.runtime import use_threads
from synthbench.generation.language_model import CausalModel
from synthbench.generation.memory import is_exhausted, release
from synthbench.generation.sampling import uniforms
from synthbench.llm.answers import Answer
from synthbench.llm.cache import key_of
from synthbench.llm.connection import FailedAttemptError, FailureKind
from synthbench.llm.endpoint import Endpoint
from synthbench.llm.replies import as_kind, opening_tag
from synthbench.llm.requests import ChatRequest
from synthbench.llm.token_sampling import AnswerRow, Parameters, TokenSampler

if TYPE_CHECKING:
    from torch import Tensor

    from synthbench.base.runtime import Progress, Runtime

Messages = list[dict[str, str]]


@dataclass(frozen=True)
class Prompt:
    """A tokenized request at index `index`; its answer has at most `room` tokens."""

    index: int
    tokens: Sequence[int]
    room: int
    parameters: Parameters
    key: str
    opens: str = ""
    """The tag by which the chat template opens the model's thoughts."""


class LocalModel:
    """Answers batches of requests, one thread at a time; loads the model at the first one.

    An answer depends on the model and the request's cache key, which seeds the random numbers; other requests
    of its batch matter only by rounding. Out of memory, it halves the batch.
    """

    def __init__(self, endpoint: Endpoint, runtime: "Runtime", progress: "Progress") -> None:
        if endpoint.local is None:
            raise ValueError("not a local endpoint")
        self._chat = endpoint.local
        self._endpoint = endpoint
        self._runtime = runtime
        self._progress = progress
        self._batch_size = endpoint.local.batch_size

    def answers(
        self, requests: Sequence[ChatRequest], stop: Event
    ) -> Iterator[tuple[int, Answer | FailedAttemptError]]:
        """Yield each request's index with its answer, longest prompts first, until `stop` is set.

        Raises UserError if the model can't be loaded, has no chat template, or no request can succeed.
        """
        # torch keeps the number of threads per thread, so set it in the one that computes.
        use_threads(self._runtime)
        prompts: list[Prompt] = []
        for index, request in enumerate(requests):
            try:
                prompts.append(self._prompt(index, request))
            except FailedAttemptError as error:
                yield index, error
        prompts.sort(key=lambda prompt: (-len(prompt.tokens), prompt.index))
        while prompts and not stop.is_set():
            batch = prompts[: self._batch_size]
            found = self._written(batch, stop)
            if stop.is_set():
                return
            if found is None:
                if len(batch) == 1:
                    reason = "the device's memory does not hold its answer"
                    yield prompts.pop(0).index, FailedAttemptError(FailureKind.REFUSED, reason)
                else:
                    self._halve(len(batch))
                continue
            prompts = prompts[len(batch) :]
            yield from ((prompt.index, answer) for prompt, answer in zip(batch, found, strict=True))

    @cached_property
    def _causal(self) -> CausalModel:
        from transformers import GenerationConfig

        found = self._chat.language_model.load(self._runtime)
        if found.tokenizer.chat_template is None:
            raise UserError(
                f"{self._endpoint.model}: its tokenizer has no chat template; a model that follows"
                " instructions (-Instruct, -Chat, -it) has one"
            )
        ends = {*found.end_of_text, found.tokenizer.eos_token_id} - {None}
        # Drop the checkpoint's own settings (top_k, repetition_penalty ...): they are not in the request.
        settings: Any = GenerationConfig
        found.model.generation_config = settings(eos_token_id=sorted(ends) or None)
        return found

    @cached_property
    def _context_length(self) -> int | None:
        return getattr(self._causal.model.config.get_text_config(), "max_position_embeddings", None)

    @property
    def _ends(self) -> Sequence[int]:
        return self._causal.model.generation_config.eos_token_id or ()

    def _prompt(self, index: int, request: ChatRequest) -> Prompt:
        parameters = Parameters.of(request.sampling)
        text = self._rendered([dict(message) for message in request.messages])
        tokens = self._causal.tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"]
        room = parameters.max_tokens or self._chat.max_new_tokens
        if self._context_length is not None:
            left = self._context_length - len(tokens)
            if left < 1:
                reason = (
                    f"a prompt of {len(tokens):,} tokens, of {self._context_length:,} that the model reads"
                )
                raise FailedAttemptError(FailureKind.REFUSED, reason)
            room = min(room, left)
        key = key_of(self._endpoint, request)
        return Prompt(index, tokens, room, parameters, key, opening_tag(text))

    def _rendered(self, messages: Messages) -> str:
        from jinja2 import TemplateError

        try:
            return self._in_template(messages)
        except TemplateError as error:
            refused = error
        try:
            # Some templates do not support system messages.
            return self._in_template(_without_system(messages))
        except TemplateError:
            reason = f"the model's chat template rejects it: {in_one_line(refused)}"
            raise FailedAttemptError(FailureKind.REFUSED, reason) from None

    def _in_template(self, messages: Messages) -> str:
        text: Any = self._causal.tokenizer.apply_chat_template(
            messages, tokenize=False, add_generation_prompt=True
        )
        return str(text)

    def _written(self, batch: Sequence[Prompt], stop: Event) -> list[Answer] | None:
        """Return an answer to each prompt, None if out of memory."""
        try:
            written = self._generate(batch, stop)
        except FloatingPointError:
            raise UserError(
                f"{self._endpoint.model}: its numbers overflow {self._chat.language_model.dtype};"
                f" set another {self._endpoint.section}.dtype"
            ) from None
        except RuntimeError as error:
            if not is_exhausted(error):
                raise
            return None
        return [self._answer(prompt, row) for prompt, row in zip(batch, written, strict=True)]

    def _generate(self, batch: Sequence[Prompt], stop: Event) -> list[list[int]]:
        import torch
        from transformers import LogitsProcessorList, StoppingCriteriaList

        device = self._causal.device
        width = max(len(prompt.tokens) for prompt in batch)
        paddings = [width - len(prompt.tokens) for prompt in batch]
        rows = [AnswerRow(prompt.parameters, uniforms(prompt.room, prompt.key).tolist()) for prompt in batch]
        sampler = TokenSampler(rows, width, device)

        def are_over(tokens: "Tensor", scores: object) -> "Tensor":
            return sampler.are_full(tokens) | stop.is_set()

        written: Tensor = self._causal.model.generate(
            torch.tensor(
                [
                    [self._pad] * num + list(prompt.tokens)
                    for num, prompt in zip(paddings, batch, strict=True)
                ],
                device=device,
            ),
            attention_mask=torch.tensor([[0] * num + [1] * (width - num) for num in paddings], device=device),
            max_new_tokens=max(prompt.room for prompt in batch),
            do_sample=False,
            pad_token_id=self._pad,
            logits_processor=LogitsProcessorList([sampler]),
            stopping_criteria=StoppingCriteriaList([are_over]),
        )
        return [list(map(int, row)) for row in written[:, width:].tolist()]

    @property
    def _pad(self) -> int:
        tokenizer = self._causal.tokenizer
        return next((token for token in (tokenizer.pad_token_id, *self._ends) if token is not None), 0)

    def _answer(self, prompt: Prompt, row: Sequence[int]) -> Answer:
        ends = [index for index, token in enumerate(row) if token in self._ends]
        length = min([prompt.room, len(row), *(index + 1 for index in ends)])
        text = self._causal.tokenizer.decode(list(row[:length]), skip_special_tokens=True)
        answer = Answer(prompt.opens + str(text), "", len(prompt.tokens), length)
        return as_kind(answer, is_cut_off=not ends or ends[0] >= length)

    def _halve(self, tried: int) -> None:
        self._batch_size = tried // 2
        self._progress.say(f"out of memory: continuing with {self._batch_size} answers at a time")
        release(self._causal.device)


def _without_system(messages: Messages) -> Messages:
    """Move a system message to the start of the user message that follows."""
    if len(messages) < 2 or messages[0]["role"] != "system":
        return messages
    system, first, *others = messages
    return [{**first, "content": f"{system['content']}\n\n{first['content']}"}, *others]


QUIET_SECONDS = 0.02
"""A batch is closed after this long without a new request."""


@dataclass(frozen=True)
class _Pending:
    request: ChatRequest
    answer: "asyncio.Future[Answer]"

    def settle(self, found: Answer | Exception) -> None:
        """Set the answer or error, unless the caller was cancelled."""
        if self.answer.done():
            return
        if isinstance(found, Answer):
            self.answer.set_result(found)
        else:
            self.answer.set_exception(found)


class LocalBackend:
    """Runs a local model in a thread of its own."""

    def __init__(self, model: LocalModel) -> None:
        self._model = model
        self._waiting: list[_Pending] = []
        self._arrival = asyncio.Event()
        self._stop = Event()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="synthbench-local-chat")

    async def __aenter__(self) -> Self:
        self._work = asyncio.create_task(self._answer_all())
        return self

    async def __aexit__(self, *error: object) -> None:
        self._stop.set()
        self._work.cancel()
        await asyncio.gather(self._work, return_exceptions=True)
        self._thread.shutdown()

    async def ask(self, request: ChatRequest, attempt: str) -> Answer:
        """Return the answer; raises FailedAttemptError, or UserError if no request can succeed."""
        asked = _Pending(request, asyncio.get_running_loop().create_future())
        self._waiting.append(asked)
        self._arrival.set()
        return await asked.answer

    async def _answer_all(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await self._arrival.wait()
            await self._until_quiet()
            together, self._waiting = self._waiting, []
            self._arrival.clear()
            try:
                await loop.run_in_executor(self._thread, self._answer, together, loop)
            except Exception as error:  # noqa: BLE001 - whoever asked raises it
                for asked in together:
                    asked.settle(error)

    async def _until_quiet(self) -> None:
        num_waiting = 0
        while len(self._waiting) > num_waiting:
            num_waiting = len(self._waiting)
            await asyncio.sleep(QUIET_SECONDS)

    def _answer(self, together: Sequence[_Pending], loop: asyncio.AbstractEventLoop) -> None:
        requests = [asked.request for asked in together]
        for index, found in self._model.answers(requests, self._stop):
            loop.call_soon_threadsafe(together[index].settle, found)
