"""The stages of an experiment, and the runs whose results they give."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from synthbench.config.experiment import (
    Experiment,
    Variant,
)
from synthbench.pipeline.engine.stage import Stage


@dataclass(frozen=True)
class PlannedRun:
    """One variant with one seed, and the stages that its results are read from.

    `data` has the parts of each candidate by the identity of its model, of a run without one under "".
    """

    variant: Variant
    seed: int
    data: Mapping[str, Mapping[str, Stage]]
    candidates: tuple[Stage, ...]
    model: Stage | None
    evaluations: Mapping[str, Stage]
    audits: Mapping[str, Stage]

    @property
    def label(self) -> str:
        """The variant's label with the seed."""
        return f"{self.variant.label} seed {self.seed}"

    @property
    def ends(self) -> tuple[Stage, ...]:
        """The stages that nothing of the run depends on, and the model; the data if nothing else."""
        model = () if self.model is None else (self.model,)
        found = (*model, *self.evaluations.values(), *self.audits.values())
        return found or tuple(stage for parts in self.data.values() for stage in parts.values())


@dataclass
class Plan:
    """All runs of an experiment; `stages` in an order in which inputs come first, each identity once."""

    experiment: Experiment
    runs: list[PlannedRun] = field(default_factory=list)
    stages: dict[str, Stage] = field(default_factory=dict)
    addresses: dict[str, str] = field(default_factory=dict)
    missing_tasks: tuple[str, ...] = ()

    @property
    def targets(self) -> list[Stage]:
        """The stages that must be there in the end."""
        found = [stage for run in self.runs for stage in run.ends]
        return list({stage.identity: stage for stage in found}.values())


def descendants(stages: Sequence[Stage], roots: set[str]) -> set[str]:
    """Return the identities of the roots and of every stage that depends on one of them.

    `stages` must be in an order in which inputs come first.
    """
    reached = set(roots)
    for stage in stages:
        if any(source.identity in reached for source in stage.inputs.values()):
            reached.add(stage.identity)
    return reached
