"""Jobs of text generation, their results and their cost."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from synthbench.base.runtime import SEQUENCES
from synthbench.generation.language_model import LanguageModel
from synthbench.generation.memory import SPARE_LENGTH, bytes_per_sequence
from synthbench.generation.sampling import Sampling
from synthbench.models.work import BYTES, FORWARD, Expected, Shape, Work, shape_of

Outcome = Literal["kept", "identical", "duplicate", "newline", "unclosed", "empty"]


@dataclass(frozen=True)
class Amounts:
    """Usable texts wanted per input and label, and the maximum number of attempts."""

    samples: int
    tries: int


@dataclass(frozen=True)
class WritingTask:
    """Settings of text generation.

    `counterlabels`: for each label, the labels that its texts must not fit (for self-debiasing).
    """

    counterlabels: Mapping[str, Sequence[str]]
    sampling: Sampling
    amounts: Amounts
    seed: int

    def prompts_of(self, label: str) -> tuple[str, ...]:
        """Return the labels whose prompts the text needs: its own and, for debiasing, its counterlabels."""
        return (label, *self.counterlabels.get(label, ())) if self.sampling.decay else (label,)

    @property
    def largest_row(self) -> int:
        """The largest number of sequences that one text needs."""
        return max((len(self.prompts_of(label)) for label in self.counterlabels), default=1)


@dataclass(frozen=True)
class Job:
    """One input with its prompt for every label; texts are written for `labels` (None: all).

    `key` names the input and seeds its random numbers. A text in `unwanted` is not usable.
    """

    key: str
    prompts: Mapping[str, str]
    unwanted: frozenset[str] = frozenset()
    labels: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Attempt:
    """One attempt: its number from 0, its tokens, the text before the closing mark, and its outcome."""

    label: str
    number: int
    text: str
    tokens: tuple[int, ...]
    outcome: Outcome


@dataclass(frozen=True)
class Written:
    """All attempts at one label of one input, in order.

    `attempts` is empty if a prompt and a text of maximum length together exceed the model's limit.
    """

    job: Job
    label: str
    attempts: tuple[Attempt, ...]

    @property
    def texts(self) -> tuple[str, ...]:
        """The usable texts, in order."""
        return tuple(attempt.text for attempt in self.attempts if attempt.outcome == "kept")


PROMPT_TOKENS = 45
"""Assumed prompt length in tokens: a DINO instruction with a sentence of a similarity task."""


@dataclass(frozen=True)
class WritingCost:
    """The cost of writing texts of all `labels` for `num_inputs` inputs, estimated before the run."""

    model: LanguageModel
    task: WritingTask
    num_inputs: int
    labels: tuple[str, ...]

    @property
    def num_texts(self) -> int:
        """Number of texts wanted."""
        return self.num_inputs * len(self.labels) * self.task.amounts.samples

    @property
    def num_tokens(self) -> int:
        """Upper bound of decoded tokens, counter sequences included, if every first attempt is usable."""
        sequences = sum(len(self.task.prompts_of(label)) for label in self.labels)
        texts = self.num_inputs * self.task.amounts.samples
        return texts * sequences * self.task.sampling.max_new_tokens

    @property
    def num_prompt_tokens(self) -> int:
        """Tokens of all prompts, each read once, at the assumed length."""
        prompts = {name for label in self.labels for name in self.task.prompts_of(label)}
        return self.num_inputs * len(prompts) * PROMPT_TOKENS

    def expected(self) -> Expected:
        """Return the expected number of texts, computation, tokens, and maximum tries per text.

        If the model's size is unknown, `operations` of the computation is None, and its bytes are 0.
        """
        shape, most = self._shape, SEQUENCES["cuda"]
        work = Work(self.model.model, None, self.num_tokens, self.model.dtype)
        if shape is not None:
            operations = FORWARD * shape.num_parameters * (self.num_tokens + self.num_prompt_tokens)
            weights, sequence = self._bytes(shape)
            # A step reads the weights, and of each sequence the prompt and half of the text on average.
            attended = shape.keys_per_token * BYTES[self.model.dtype] * self._mean_length
            work = replace(
                work,
                operations=operations,
                weights=weights,
                kept=most * sequence,
                read=self.num_tokens / most * (weights + most * attended),
            )
        amounts = self.task.amounts
        return Expected(self.num_texts, work, self.num_tokens, amounts.tries / amounts.samples)

    def _bytes(self, shape: Shape) -> tuple[int, int]:
        """Return the bytes of the weights, and the bytes of memory planned for each sequence."""
        size, length = BYTES[self.model.dtype], PROMPT_TOKENS + self.task.sampling.max_new_tokens
        each = bytes_per_sequence(
            shape.keys_per_token * size, shape.num_layers, int(SPARE_LENGTH * length), shape.vocabulary
        )
        return shape.num_parameters * size, each

    @property
    def _mean_length(self) -> float:
        return PROMPT_TOKENS + self.task.sampling.max_new_tokens / 2

    @property
    def _shape(self) -> Shape | None:
        return shape_of(self.model.model, self.model.revision)

    def lines(self) -> Iterator[str]:
        """Yield texts, tokens and memory, each in one line."""
        tries = self.num_inputs * len(self.labels) * self.task.amounts.tries
        yield f"texts: {self.num_texts:,} from {self.num_inputs:,} inputs, in at most {tries:,} tries"
        yield (
            f"tokens: up to {self.num_tokens:,} decoded, those of counter prompts included, if no text needs"
            f" another try; about {self.num_prompt_tokens:,} of prompts"
        )
        shape = self._shape
        if shape is None:
            yield f"memory: unknown until {self.model.model}'s config.json has been downloaded"
            return
        yield f"memory: {self._memory(shape)}"

    def _memory(self, shape: Shape) -> str:
        weights, one = self._bytes(shape)
        kept = ", ".join(
            f"{_bytes(number * one)} ({number:,} sequences at a time, as on {device})"
            for device, number in (("a CPU", SEQUENCES["cpu"]), ("a GPU", SEQUENCES["cuda"]))
        )
        return f"{_bytes(weights)} of weights; a batch's keys, values and logits {kept}"


def _bytes(number: float) -> str:
    return f"{number / 1e9:,.1f} GB" if number >= 1e8 else f"{number / 1e6:,.1f} MB"
