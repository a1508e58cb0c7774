"""What is to be written, and what was."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from synthbench.generation.endings import Outcome
from synthbench.generation.sampling import Sampling


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
