"""Single texts, written from scratch: first texts of pairs, or texts of given classes."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ClassVar

from pydantic import Field, model_validator

from synthbench.api import (
    Expected,
    GenerationContext,
    Job,
    Method,
    RecordKind,
    Sentence,
    SyntheticDataset,
    Unit,
    Written,
)
from synthbench_dino.tasks import TextLabel, TextTask, counterlabels
from synthbench_dino.writing import Tally, WritingSettings, dropped, failure


class DINOTexts(WritingSettings, Method):
    """Sentences from scratch, equally many for each label's instruction; `label` says which it was."""

    version = 1
    record_kind = RecordKind.SENTENCE
    source_roles: ClassVar[Mapping[str, RecordKind]] = {}

    labels: dict[str, TextLabel] = Field(min_length=1, description="label -> what is told the language model")
    size: int = Field(ge=1, description="number of texts, equally many for each label")

    @model_validator(mode="after")
    def _labels_fit(self) -> "DINOTexts":
        TextTask(labels=self.labels)
        return self

    def cost(self, num_records: Mapping[str, int]) -> Iterable[str]:
        """Tell texts, tokens, memory and time."""
        num_inputs = -(-self.size // len(self.labels))
        return self.writing_cost(counterlabels(self.labels), 1, num_inputs).lines()

    def expected(self, num_records: Mapping[str, int]) -> Expected:
        """Return the texts and the writing."""
        num_inputs = -(-self.size // len(self.labels))
        return self.writing_cost(counterlabels(self.labels), 1, num_inputs).expected()

    def generate(self, sources: Mapping[str, SyntheticDataset], context: GenerationContext) -> Iterator[Unit]:
        """Yield one unit for each text."""
        with Tally(context, "writing texts", self.size, "texts") as tally:
            written = self.write(self._jobs(context), counterlabels(self.labels), 1, context)
            for unit in map(self._unit, written):
                tally.count(unit)
                yield unit

    def _jobs(self, context: GenerationContext) -> Iterator[Job]:
        names = list(self.labels)
        prompts = {name: label.instruction for name, label in self.labels.items()}
        for index in range(self.size):
            if str(index) not in context.finished_units:
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
