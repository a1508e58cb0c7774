"""What `dino` and `dino-texts` share: settings of the language model, progress, and records of failures."""

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Annotated, Any, ClassVar, Self

from pydantic import Field

from synthbench.api import (
    Amounts,
    Component,
    Failure,
    GenerationContext,
    Job,
    LanguageModel,
    Sampling,
    Unit,
    Writer,
    WritingCost,
    WritingTask,
    Written,
)
from synthbench_dino.tasks import TextLabel

SECONDS_BETWEEN_LINES = 30.0
TopK = Annotated[
    int, Field(ge=0, description="draw among the k most probable tokens, before top_p; 0: no limit")
]
TopP = Annotated[
    float, Field(gt=0, le=1, description="top-p: keep the most probable tokens that hold this share; 1: all")
]


class WritingSettings(Component):
    """Settings of the language model that writes; defaults as in Schick & Schütze 2021, section 4."""

    is_shardable: ClassVar[bool] = True
    language_model: LanguageModel = Field(description="the causal language model that writes")
    decay: float = Field(
        100.0,
        ge=0,
        le=1e6,
        description="the paper's lambda: strength of the debiasing against counterlabels; 0: none",
    )
    top_k: TopK = 5
    top_p: TopP = 0.9
    max_new_tokens: int = Field(
        40, ge=1, le=4096, description="maximum length of a text in tokens, closing mark included"
    )
    tries: int = Field(
        5, ge=1, le=100, description="maximum number of attempts per prompt, for all samples together"
    )
    seed: int = Field(0, ge=0, lt=2**32, description="seed of all draws")

    def revisions(self) -> Mapping[str, str]:
        """Return the content hash or commit of the language model."""
        return self.language_model.fingerprint()

    def table_notes(self) -> tuple[str, ...]:
        """Return a note that rounding may change texts; none for fp32."""
        return self.language_model.rounding_notes("DINO's texts")

    def write(
        self,
        jobs: Iterable[Job],
        labels: Mapping[str, TextLabel],
        num_samples: int,
        context: GenerationContext,
    ) -> Iterator[Written]:
        """Load the language model, if there are jobs, and yield the texts."""
        jobs = iter(jobs)
        first = next(jobs, None)
        if first is None:
            return
        causal = self.language_model.load(context.runtime)
        writer = Writer(
            causal,
            self._task(labels, num_samples),
            sequences=context.runtime.num_sequences(causal.device.type),
            say=context.progress.say,
        )
        yield from writer.write(chain([first], jobs))

    def writing_cost(self, labels: Mapping[str, TextLabel], num_samples: int, num_inputs: int) -> WritingCost:
        """Return the cost of writing texts of every label for `num_inputs` inputs."""
        task = self._task(labels, num_samples)
        return WritingCost(self.language_model, task, num_inputs, tuple(labels))

    def _task(self, labels: Mapping[str, TextLabel], num_samples: int) -> WritingTask:
        sampling = Sampling(
            decay=self.decay,
            top_k=self.top_k or None,
            top_p=self.top_p if self.top_p < 1 else None,
            max_new_tokens=self.max_new_tokens,
        )
        counterlabels = {name: label.counterlabels for name, label in labels.items()}
        return WritingTask(counterlabels, sampling, Amounts(num_samples, self.tries), self.seed)


class Tally:
    """A progress bar that also reports, every 30 seconds, texts per second and drops by reason."""

    def __init__(self, context: GenerationContext, description: str, total: int, what: str) -> None:
        self._context = context
        self._task = context.progress.task(description, total)
        self._what = what
        self._started = self._reported = time.monotonic()
        self._num_kept = 0
        self._dropped: Counter[str] = Counter()

    def __enter__(self) -> Self:
        self._bar = self._task.__enter__()
        self._bar.advance(len(self._context.finished_units))
        return self

    def __exit__(self, *raised: Any) -> None:  # noqa: ANN401 - as the protocol of context managers has it
        self._report()
        self._task.__exit__(*raised)

    def count(self, unit: Unit) -> None:
        """Advance the bar by one unit and count its texts and drops."""
        self._bar.advance()
        self._num_kept += sum(not isinstance(record, Failure) for record in unit.records)
        self._dropped.update(unit.dropped)
        if time.monotonic() - self._reported > SECONDS_BETWEEN_LINES:
            self._report()

    def _report(self) -> None:
        self._reported = time.monotonic()
        rate = self._num_kept / max(self._reported - self._started, 1e-9)
        counts = ", ".join(f"{count:,} {reason}" for reason, count in self._dropped.most_common())
        self._context.progress.say(
            f"  {self._num_kept:,} {self._what}, {rate:,.1f} per second; dropped: {counts or 'none'}"
        )


def dropped(written: Written) -> dict[str, int]:
    """Return the number of failed attempts by reason."""
    return dict(Counter(attempt.outcome for attempt in written.attempts if attempt.outcome != "kept"))


def failure(written: Written, num_wanted: int, **provenance: Any) -> tuple[Failure, ...]:  # noqa: ANN401 - columns of a record
    """Return a failure record if there are fewer usable texts than `num_wanted`."""
    if len(written.texts) >= num_wanted:
        return ()
    counts = Counter(attempt.outcome for attempt in written.attempts)
    outcomes = ", ".join(f"{count} {outcome}" for outcome, count in counts.items())
    reason = outcomes or "prompt and max_new_tokens together are longer than the model's context"
    raw = next((each.text for each in reversed(written.attempts) if each.outcome != "kept"), "")
    return (Failure(reason=reason, attempts=len(written.attempts), raw_text=raw, **provenance),)
