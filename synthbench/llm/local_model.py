"""A chat model of transformers that answers in this process, many requests in one batch."""

import asyncio
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from threading import Event
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from synthbench.errors import UserError, in_one_line
from synthbench.generation.language_model import CausalModel
from synthbench.generation.sampling import uniforms
from synthbench.llm.cache import Answer, key_of
from synthbench.llm.connection import FailedAttemptError, Kind
from synthbench.llm.endpoint import Endpoint
from synthbench.llm.replies import opening_tag
from synthbench.llm.requests import ChatRequest
from synthbench.llm.token_sampling import Parameters, Picker, Row
from synthbench.runtime import use_threads

if TYPE_CHECKING:
    from torch import Tensor

    from synthbench.runtime import Progress, Runtime

Messages = list[dict[str, str]]


@dataclass(frozen=True)
class Prompt:
    """A request as the model reads it: at most `room` tokens of an answer are written."""

    place: int
    tokens: Sequence[int]
    room: int
    parameters: Parameters
    key: str
    opens: str = ""
    """The tag with which the template begins the model's thoughts."""


class LocalModel:
    """Answers batches of requests, one thread at a time; the model is loaded when the first one needs it.

    An answer is a function of the model and the request's key in the cache, which decides the random numbers:
    what else is in a batch makes no difference, but for roundings. If the device has too little memory for a
    batch, it is halved.
    """

    def __init__(self, endpoint: Endpoint, runtime: "Runtime", progress: "Progress") -> None:
        if endpoint.local is None:
            raise ValueError("an endpoint elsewhere")
        self._chat = endpoint.local
        self._endpoint = endpoint
        self._runtime = runtime
        self._progress = progress
        self._batch_size = endpoint.local.batch_size

    def answers(
        self, requests: Sequence[ChatRequest], stop: Event
    ) -> Iterator[tuple[int, Answer | FailedAttemptError]]:
        """Yield the place of each request with its answer, longest prompts first, until `stop` is set.

        Raises UserError if the model can't be loaded, has no chat template, or no request can succeed.
        """
        # The number of threads is one of the thread that computes.
        use_threads(self._runtime)
        prompts: list[Prompt] = []
        for place, request in enumerate(requests):
            try:
                prompts.append(self._prompt(place, request))
            except FailedAttemptError as error:
                yield place, error
        prompts.sort(key=lambda prompt: (-len(prompt.tokens), prompt.place))
        while prompts and not stop.is_set():
            batch = prompts[: self._batch_size]
            found = self._written(batch, stop)
            if stop.is_set():
                return
            if found is None:
                if len(batch) == 1:
                    reason = "the device's memory does not hold its answer"
                    yield prompts.pop(0).place, FailedAttemptError(Kind.REFUSED, reason)
                else:
                    self._halve(len(batch))
                continue
            prompts = prompts[len(batch) :]
            yield from ((prompt.place, answer) for prompt, answer in zip(batch, found, strict=True))

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
        # What the checkpoint recommends (top_k, repetition_penalty ...) is no part of the request.
        settings: Any = GenerationConfig
        found.model.generation_config = settings(eos_token_id=sorted(ends) or None)
        return found

    @cached_property
    def _context_length(self) -> int | None:
        return getattr(self._causal.model.config.get_text_config(), "max_position_embeddings", None)

    @property
    def _ends(self) -> Sequence[int]:
        return self._causal.model.generation_config.eos_token_id or ()

    def _prompt(self, place: int, request: ChatRequest) -> Prompt:
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
                raise FailedAttemptError(Kind.REFUSED, reason)
            room = min(room, left)
        key = key_of(self._endpoint, request)
        return Prompt(place, tokens, room, parameters, key, opening_tag(text))

    def _rendered(self, messages: Messages) -> str:
        from jinja2 import TemplateError

        try:
            return self._in_template(messages)
        except TemplateError as error:
            refused = error
        try:
            # Some templates know no system messages.
            return self._in_template(_without_system(messages))
        except TemplateError:
            reason = f"the model's chat template refuses it: {in_one_line(refused)}"
            raise FailedAttemptError(Kind.REFUSED, reason) from None

    def _in_template(self, messages: Messages) -> str:
        text: Any = self._causal.tokenizer.apply_chat_template(
            messages, tokenize=False, add_generation_prompt=True
        )
        return str(text)

    def _written(self, batch: Sequence[Prompt], stop: Event) -> list[Answer] | None:
        """Return an answer to each prompt, None if the memory does not hold them."""
        import torch

        try:
            written = self._generate(batch, stop)
        except torch.OutOfMemoryError:
            return None
        except FloatingPointError:
            raise UserError(
                f"{self._endpoint.model}: its numbers are too large for {self._chat.language_model.dtype};"
                " take another llm.dtype"
            ) from None
        return [self._answer(prompt, row) for prompt, row in zip(batch, written, strict=True)]

    def _generate(self, batch: Sequence[Prompt], stop: Event) -> list[list[int]]:
        import torch
        from transformers import LogitsProcessorList, StoppingCriteriaList

        device = self._causal.device
        width = max(len(prompt.tokens) for prompt in batch)
        paddings = [width - len(prompt.tokens) for prompt in batch]
        rows = [Row(prompt.parameters, uniforms(prompt.room, prompt.key).tolist()) for prompt in batch]
        picker = Picker(rows, width, device)

        def are_over(tokens: "Tensor", scores: object) -> "Tensor":
            return picker.are_full(tokens) | stop.is_set()

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
            logits_processor=LogitsProcessorList([picker]),
            stopping_criteria=StoppingCriteriaList([are_over]),
        )
        return [list(map(int, row)) for row in written[:, width:].tolist()]

    @property
    def _pad(self) -> int:
        tokenizer = self._causal.tokenizer
        return next((token for token in (tokenizer.pad_token_id, *self._ends) if token is not None), 0)

    def _answer(self, prompt: Prompt, row: Sequence[int]) -> Answer:
        ends = [place for place, token in enumerate(row) if token in self._ends]
        length = min([prompt.room, len(row), *(place + 1 for place in ends)])
        text = self._causal.tokenizer.decode(list(row[:length]), skip_special_tokens=True)
        return Answer(prompt.opens + str(text), "", len(prompt.tokens), length)

    def _halve(self, tried: int) -> None:
        import torch

        self._batch_size = tried // 2
        self._progress.say(f"out of memory: going on with {self._batch_size} answers at a time")
        if torch.cuda.is_available():
            torch.cuda.empty_cache()


def _without_system(messages: Messages) -> Messages:
    """Put a system message at the head of the user's message that follows."""
    if len(messages) < 2 or messages[0]["role"] != "system":
        return messages
    system, first, *others = messages
    return [{**first, "content": f"{system['content']}\n\n{first['content']}"}, *others]


SECONDS_OF_QUIET = 0.02
"""Nobody else comes to a batch after so long without a newcomer."""


@dataclass(frozen=True)
class _Asked:
    request: ChatRequest
    answer: "asyncio.Future[Answer]"

    def settle(self, found: Answer | Exception) -> None:
        """Hand over the answer, unless nobody waits for it any more."""
        if self.answer.done():
            return
        if isinstance(found, Answer):
            self.answer.set_result(found)
        else:
            self.answer.set_exception(found)


class LocalBackend:
    """Lets a model answer, in a thread of its own."""

    def __init__(self, model: LocalModel) -> None:
        self._model = model
        self._waiting: list[_Asked] = []
        self._arrival = asyncio.Event()
        self._stop = Event()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="synthbench-local-chat")

    async def __aenter__(self) -> Self:
        self._work = asyncio.create_task(self._answer_all())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._work.cancel()
        await asyncio.gather(self._work, return_exceptions=True)
        self._thread.shutdown()

    async def ask(self, request: ChatRequest, attempt: str) -> Answer:
        """Return the answer; raises FailedAttemptError, or UserError if no request can succeed."""
        asked = _Asked(request, asyncio.get_running_loop().create_future())
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
            await asyncio.sleep(SECONDS_OF_QUIET)

    def _answer(self, together: Sequence[_Asked], loop: asyncio.AbstractEventLoop) -> None:
        requests = [asked.request for asked in together]
        for place, found in self._model.answers(requests, self._stop):
            loop.call_soon_threadsafe(together[place].settle, found)
