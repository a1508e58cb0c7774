"""Trainings that start from the trained model of another variant (`train.starts_from`)."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from synthbench.base.errors import did_you_mean
from synthbench.config.experiment import RunConfig, Start, Variant
from synthbench.config.problems import Problems
from synthbench.config.rows import ExperimentRow, RowProblems
from synthbench.training.settings import TrainingSettings

KEY = ("train", "starts_from")


def with_starts(rows: Sequence[ExperimentRow], names: Sequence[str]) -> list[ExperimentRow]:
    """Return the rows of these variants and of those that they start from, all without names."""
    wanted, before = set(names), set[str]()
    while wanted != before:
        before = set(wanted)
        wanted |= {_named(row) for row in rows if row.name in wanted} - {""}
    return [row for row in rows if not names or row.name in wanted]


def _named(row: ExperimentRow) -> str:
    train = row.document.data.get("train")
    name = train.get("starts_from") if isinstance(train, dict) else None
    return name if isinstance(name, str) else ""


def what_starts(variants: Sequence[Variant]) -> Iterator[str]:
    """Yield a note on each variant that starts from another: its data are not all that its model learned."""
    found = {
        (variant.name, candidate.config.starts_from)
        for variant in variants
        for candidate in variant.candidates
        if candidate.config.start is not None
    }
    for name, first in sorted(found):
        yield (
            f"{name} starts from the trained model of {first}, whose data are not counted as its own: neither"
            " what an LLM cost nor test sentences in them."
        )


class StartLinker:
    """Gives each variant the trainings that its own start from; notes faults for the rows that have them."""

    def __init__(
        self, variants: Sequence[Variant], rows: Sequence[ExperimentRow], problems: RowProblems
    ) -> None:
        self._variants = {each.label: each for each in variants}
        self._rows = {row.label: row for row in rows}
        self._names = tuple(dict.fromkeys(row.name for row in rows))
        self._problems = problems

    def linked(self) -> list[Variant]:
        """Return the variants; one with a fault stays as it was."""
        return [self._linked(variant, ()) for variant in self._variants.values()]

    def _linked(self, variant: Variant, behind: tuple[str, ...]) -> Variant:
        """Return a variant whose candidates have their starts; the variants `behind` start from it."""
        chain = (*behind, variant.name)
        candidates = tuple(
            replace(each, config=self._started(variant, each.config, chain)) for each in variant.candidates
        )
        return replace(variant, candidates=candidates)

    def _started(self, variant: Variant, config: RunConfig, chain: tuple[str, ...]) -> RunConfig:
        name = config.starts_from
        if not name:
            return config
        if name in chain:
            # Each variant of a circle says so of itself.
            if name == chain[0]:
                self._add(variant, f"a circle: {' starts from '.join((*chain, name))}")
            return config
        if name not in self._names:
            self._add(variant, f"no variant is called '{name}'{did_you_mean(name, self._names)}")
            return config
        first = next((each for each in self._variants.values() if _is_at(each, name, variant.axes)), None)
        if first is None:
            # It has faults of its own.
            return config
        if len(chain) == 1 and (fault := _fault(config, first)):
            self._add(variant, fault)
        start = self._linked(first, chain)
        return replace(config, start=Start(start.label, start.candidates))

    def _add(self, variant: Variant, fault: str) -> None:
        row, problems = self._rows[variant.label], Problems()
        problems.add(row.document, KEY, fault)
        self._problems.add(row, problems)


def _is_at(variant: Variant, name: str, axes: Mapping[str, str]) -> bool:
    return variant.name == name and variant.axes == axes


def _fault(config: RunConfig, first: Variant) -> str:
    """Return why a training can't start from the model of a variant, "" if it can."""
    trainer = config.trainer
    if not isinstance(trainer, TrainingSettings):
        return f"trainer '{config.trainer_name}' starts from no trained model"
    if fault := trainer.why_no_start():
        return fault
    for candidate in first.candidates:
        other = candidate.config.trainer
        if not isinstance(other, TrainingSettings):
            return f"'{first.name}' trains no model"
        if other.model_kind is not trainer.model_kind:
            theirs = candidate.config.trainer_name
            return f"'{first.name}' trains a model of another kind (trainer '{theirs}')"
        if other.base != trainer.base:
            return f"train.base must be that of '{first.name}', whose model goes on"
    return ""
