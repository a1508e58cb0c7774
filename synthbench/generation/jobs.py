"""What is to be written, what was written, and what it costs."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from synthbench.generation.language_model import LanguageModel
from synthbench.generation.sampling import Sampling
from synthbench.models.work import BYTES, FORWARD, Expected, Shape, Work, shape_of
from synthbench.runtime import SEQUENCES

Outcome = Literal["kept", "identical", "duplicate", "newline", "unclosed", "empty"]


@dataclass(frozen=True)
class Amounts:
    """How many usable texts are wanted of each input and label, and how often to try at most."""

    samples: int
    tries: int


@dataclass(frozen=True)
class WritingTask:
    """How texts are written: what each label is debiased against, how tokens are drawn, how many texts."""

    counterlabels: Mapping[str, Sequence[str]]
    sampling: Sampling
    amounts: Amounts
    seed: int

    def prompts_of(self, label: str) -> tuple[str, ...]:
        """Return the labels whose prompts a text of this label is written from, its own first."""
        return (label, *self.counterlabels.get(label, ())) if self.sampling.decay else (label,)

    @property
    def largest_row(self) -> int:
        """The most sequences that one text takes."""
        return max((len(self.prompts_of(label)) for label in self.counterlabels), default=1)


@dataclass(frozen=True)
class Job:
    """One input: its prompt for each label, all of them; those in `labels` are written (None: all).

    `key` names the input, and enters the random numbers. A text in `unwanted` is not usable.
    """

    key: str
    prompts: Mapping[str, str]
    unwanted: frozenset[str] = frozenset()
    labels: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Attempt:
    """One try: its number, from 0; the tokens; the text before the closing mark; and what became of it."""

    label: str
    number: int
    text: str
    tokens: tuple[int, ...]
    outcome: Outcome


@dataclass(frozen=True)
class Written:
    """All attempts at one label of one input, in order; none if a prompt is too long for the model."""

    job: Job
    label: str
    attempts: tuple[Attempt, ...]

    @property
    def texts(self) -> tuple[str, ...]:
        """The usable texts, in order."""
        return tuple(attempt.text for attempt in self.attempts if attempt.outcome == "kept")


PROMPT_TOKENS = 45
"""Assumed of one prompt: an instruction of DINO around a sentence of a similarity task."""


@dataclass(frozen=True)
class WritingCost:
    """The cost of `num_inputs` inputs, for each of which texts of all `labels` are written."""

    model: LanguageModel
    task: WritingTask
    num_inputs: int
    labels: tuple[str, ...]

    @property
    def num_texts(self) -> int:
        """Texts wanted."""
        return self.num_inputs * len(self.labels) * self.task.amounts.samples

    @property
    def num_tokens(self) -> int:
        """Most tokens decoded, those after counter prompts too, if no text needs a second try."""
        sequences = sum(len(self.task.prompts_of(label)) for label in self.labels)
        texts = self.num_inputs * self.task.amounts.samples
        return texts * sequences * self.task.sampling.max_new_tokens

    @property
    def num_prompt_tokens(self) -> int:
        """Tokens of all prompts, each read once, if they are of the usual length."""
        prompts = {name for label in self.labels for name in self.task.prompts_of(label)}
        return self.num_inputs * len(prompts) * PROMPT_TOKENS

    def expected(self) -> Expected:
        """Return the texts, the operations and the tokens."""
        shape = self._shape
        tokens = self.num_tokens + self.num_prompt_tokens
        operations = None if shape is None else FORWARD * shape.num_parameters * tokens
        return Expected(self.num_texts, Work(self.model.model, operations, self.num_tokens), self.num_tokens)

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
        size = BYTES[self.model.dtype]
        weights = shape.num_parameters * size
        one = shape.keys_per_token * size * (PROMPT_TOKENS + self.task.sampling.max_new_tokens)
        kept = ", ".join(
            f"{_bytes(number * one)} ({number:,} sequences at a time, as on {device})"
            for device, number in (("a CPU", SEQUENCES["cpu"]), ("a GPU", SEQUENCES["cuda"]))
        )
        return f"{_bytes(weights)} of weights; keys and values {kept}"


def _bytes(number: float) -> str:
    return f"{number / 1e9:,.1f} GB" if number >= 1e8 else f"{number / 1e6:,.1f} MB"
