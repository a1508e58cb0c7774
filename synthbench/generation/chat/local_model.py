"""A chat model of transformers that answers in this process, many requests in one batch."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from threading import Event
from typing import TYPE_CHECKING, Any

from synthbench.errors import UserError, in_one_line
from synthbench.generation.chat.cache import Answer, key_of
from synthbench.generation.chat.connection import FailedAttemptError, Kind
from synthbench.generation.chat.endpoint import Endpoint
from synthbench.generation.chat.picking import Parameters, Picker, Row
from synthbench.generation.chat.requests import ChatRequest
from synthbench.generation.chat.thoughts import opening_tag
from synthbench.generation.language_model import CausalModel
from synthbench.generation.randomness import uniforms
from synthbench.models.device import use_threads

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
