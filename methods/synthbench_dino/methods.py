"""DINO's methods: pairs of a first text with second texts of every label, and single texts."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from synthbench.api import (
    Expected,
    Failure,
    GeneratedData,
    GenerationContext,
    Job,
    Method,
    Need,
    RecordKind,
    ScoredPair,
    Sentence,
    SyntheticDataset,
    Unit,
    UserError,
    WritingCost,
    Written,
)
from synthbench_dino.tasks import PLACEHOLDER, ShippedOrOwn, TextLabel, check_counterlabels
from synthbench_dino.writing import Tally, TopK, TopP, WritingSettings, dropped, failure

FIRST_TEXTS = "x1"


class DINOTexts(WritingSettings, Method):
    """Texts written from scratch, equally many by each label's instruction; `label` is that label."""

    version = 1
    record_kind = RecordKind.SENTENCE
    source_roles: ClassVar[Mapping[str, RecordKind]] = {}

    labels: dict[str, TextLabel] = Field(min_length=1, description="label -> instruction and counterlabels")
    size: int = Field(ge=1, description="number of texts, equally many per label")

    @model_validator(mode="after")
    def _labels_fit(self) -> "DINOTexts":
        check_counterlabels(self.labels)
        for name, label in self.labels.items():
            if PLACEHOLDER in label.instruction:
                raise ValueError(
                    f"label '{name}': {PLACEHOLDER} stands for a given text, and here there is none; leave it"
                    " out"
                )
        return self

    def cost(self, num_records: Mapping[str, int]) -> Iterable[str]:
        """Return lines on texts, tokens, memory and time."""
        return self._cost().lines()

    def expected(self, num_records: Mapping[str, int]) -> Expected:
        """Return the expected number of texts, and the amount of computation."""
        return self._cost().expected()

    def _cost(self) -> WritingCost:
        return self.writing_cost(self.labels, 1, -(-self.size // len(self.labels)))

    def generate(self, sources: Mapping[str, SyntheticDataset], context: GenerationContext) -> Iterator[Unit]:
        """Yield one unit per text."""
        num_mine = sum(map(context.is_mine, range(self.size)))
        with Tally(context, "writing texts", num_mine, "texts") as tally:
            written = self.write(self._jobs(context), self.labels, 1, context)
            for unit in map(self._unit, written):
                tally.count(unit)
                yield unit

    def _jobs(self, context: GenerationContext) -> Iterator[Job]:
        names = list(self.labels)
        prompts = {name: label.instruction for name, label in self.labels.items()}
        for index in range(self.size):
            if context.is_mine(index) and str(index) not in context.finished_units:
                yield Job(str(index), prompts, labels=(names[index % len(names)],))

    def _unit(self, written: Written) -> Unit:
        provenance: dict[str, Any] = {
            "label": written.label,
            "source_id": written.job.key,
            "method": "dino-texts",
            "generator": self.language_model.model,
            "instruction": self.labels[written.label].description,
            "seed": self.seed,
        }
        texts = tuple(Sentence(sentence=text, **provenance) for text in written.texts)
        records = (*texts, *failure(written, 1, **provenance))
        return Unit(written.job.key, int(written.job.key), records, dropped(written))


class FirstTexts(BaseModel):
    """Settings for writing first texts, if no source gives them (the paper's STS-dino-x1x2)."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    size: int = Field(ge=1, description="number of first texts, equally many per label's prompt")
    top_k: TopK = 0
    top_p: TopP = 0.9


class DINO(WritingSettings, Method):
    """Second texts for given first texts, or, with `x1:`, for first texts that the model also writes.

    A pair's score is its label as a similarity. Prepare steps can smooth, limit and augment the pairs.
    """

    version = 1
    record_kind = RecordKind.SCORED_PAIR
    optional_source_roles: ClassVar[Mapping[str, RecordKind]] = {FIRST_TEXTS: RecordKind.SENTENCE}

    task: ShippedOrOwn = Field(description="the instructions: a shipped task, or `labels:`")
    samples: int = Field(2, ge=1, description="usable second texts per first text and label")
    x1: FirstTexts | None = Field(
        None, description="let the language model write the first texts; null: take them from source role x1"
    )

    @model_validator(mode="after")
    def _can_be_written(self) -> Self:
        if self.samples > self.tries:
            raise ValueError(f"{self.tries} tries never make {self.samples} samples; raise `tries`")
        if self.x1 is not None:
            self.task.check_first_texts()
        return self

    def check_sources(self, given: Collection[str]) -> None:
        """Raise UserError unless first texts come either from the role x1 or from `x1:`, not from both."""
        if self.x1 is None and FIRST_TEXTS not in given:
            raise UserError(
                f"no first texts: give a source of sentences as the role {FIRST_TEXTS}, or have them written"
                " with `x1: {size: ...}`"
            )
        if self.x1 is not None and FIRST_TEXTS in given:
            raise UserError(
                f"the role {FIRST_TEXTS} gives the first texts, and `x1:` has them written; leave one out"
            )

    def needs(self) -> Mapping[str, Need]:
        """Return the data set of first texts, if the model writes them."""
        if self.x1 is None:
            return {}
        settings = self.model_dump(
            mode="json", include={"language_model", "max_new_tokens", "tries", "seed"}, exclude_none=True
        )
        own = self.x1.model_dump(mode="json")
        config: dict[str, Any] = {
            **settings,
            **own,
            "decay": 0.0,
            "labels": {name: text.model_dump(mode="json") for name, text in self.task.first_texts().items()},
        }
        return {FIRST_TEXTS: GeneratedData(method="dino-texts", config=config, sources={})}

    def cost(self, num_records: Mapping[str, int]) -> Iterable[str]:
        """Return lines on texts, tokens, memory and time."""
        cost = self._cost(num_records)
        if cost is None:
            return ("texts and tokens: unknown until the first texts are read",)
        return cost.lines()

    def expected(self, num_records: Mapping[str, int]) -> Expected:
        """Return the expected number of pairs, and the amount of computation."""
        cost = self._cost(num_records)
        return Expected() if cost is None else cost.expected()

    def _cost(self, num_records: Mapping[str, int]) -> WritingCost | None:
        num_inputs = num_records.get(FIRST_TEXTS) if self.x1 is None else self.x1.size
        if num_inputs is None:
            return None
        return self.writing_cost(self.task.labels, self.samples, num_inputs)

    def generate(self, sources: Mapping[str, SyntheticDataset], context: GenerationContext) -> Iterator[Unit]:
        """Yield one unit per first text and label."""
        self.check_sources(sources)
        given = sources[FIRST_TEXTS] if self.x1 is None else context.dataset(FIRST_TEXTS)
        texts = [record for record in given if isinstance(record, Sentence)]
        indices = {text.id: index for index, text in enumerate(texts)}
        texts = [text for index, text in enumerate(texts) if context.is_mine(index)]
        with Tally(context, "writing pairs", len(texts) * len(self.task.labels), "pairs") as tally:
            for unit in self._units(texts, indices, context):
                tally.count(unit)
                yield unit

    def _units(
        self, texts: Sequence[Sentence], indices: Mapping[str, int], context: GenerationContext
    ) -> Iterator[Unit]:
        by_id = {text.id: text for text in texts}
        yield from (unit for text in texts for unit in self._unfit(text, indices, context))
        jobs = (job for text in texts if is_one_line(text) for job in self._jobs(text, context))
        for written in self.write(jobs, self.task.labels, self.samples, context):
            yield self._unit(by_id[written.job.key], written, indices)

    def _jobs(self, text: Sentence, context: GenerationContext) -> Iterator[Job]:
        """Yield the unfinished labels of one text as a job."""
        left = tuple(name for name in self.task.labels if _key(text, name) not in context.finished_units)
        if left:
            yield Job(text.id, self.task.prompts(text.sentence), frozenset({text.sentence}), left)

    def _unit(self, text: Sentence, written: Written, indices: Mapping[str, int]) -> Unit:
        label, provenance = written.label, self._provenance(text, written.label)
        score = self.task.score(label)
        pairs = (
            ScoredPair(sentence1=text.sentence, sentence2=second, score=score, **provenance)
            for second in written.texts
        )
        records = (*pairs, *failure(written, self.samples, **provenance))
        return Unit(_key(text, label), self._position(text, label, indices), records, dropped(written))

    def _unfit(
        self, text: Sentence, indices: Mapping[str, int], context: GenerationContext
    ) -> Iterator[Unit]:
        """Yield one failure per label for a first text with a line break, which no prompt can hold."""
        if is_one_line(text):
            return
        for label in self.task.labels:
            if _key(text, label) not in context.finished_units:
                reason = "the first text holds a line break"
                failed = Failure(reason=reason, attempts=0, **self._provenance(text, label))
                yield Unit(_key(text, label), self._position(text, label, indices), (failed,))

    def _position(self, text: Sentence, label: str, indices: Mapping[str, int]) -> int:
        return indices[text.id] * len(self.task.labels) + list(self.task.labels).index(label)

    def _provenance(self, text: Sentence, label: str) -> dict[str, Any]:
        return {
            "label": label,
            "source_id": text.id,
            "method": "dino",
            "generator": self.language_model.model,
            "instruction": self.task.labels[label].description,
            "seed": self.seed,
        }


def is_one_line(text: Sentence) -> bool:
    """Return whether a text is one line, since a line break would end it in a prompt."""
    return text.sentence.splitlines() == [text.sentence]


def _key(text: Sentence, label: str) -> str:
    return f"{text.id}|{label}"
