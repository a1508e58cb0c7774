"""Applies prepare steps outside a pipeline, as a stage would."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

from synthbench.base.runtime import Runtime
from synthbench.config.experiment import PrepareStep
from synthbench.data.dataset import SyntheticDataset
from synthbench.engine.workspace import Workspace
from synthbench.plugins.contracts import Step, StepContext
from synthbench.plugins.loading import component, installed
from synthbench.stages import preparation
from synthbench.stages.asking import Context

NO_OTHERS: Mapping[str, SyntheticDataset] = {}


class Silent:
    """Progress without output."""

    @contextmanager
    def task(self, description: str, total: int) -> Iterator["Silent"]:
        yield self

    def advance(self, amount: int = 1) -> None: ...

    def say(self, message: str) -> None: ...


@dataclass(frozen=True)
class Sources(Context):
    """A context with available further sources."""

    others: Mapping[str, SyntheticDataset] = field(default_factory=dict)

    def source(self, name: str) -> SyntheticDataset | None:
        return self.others.get(name)


def step_of(section: Mapping[str, Any]) -> PrepareStep:
    """Return a step as an experiment file gives it: {step: NAME, ...}."""
    settings = {key: value for key, value in section.items() if key != "step"}
    return PrepareStep(section["step"], component("steps", section["step"]).model_validate(settings))


def named(step: Step) -> PrepareStep:
    """Return a step with the name that it is installed under, or that of the class it is made from."""
    names = _names_of_steps()
    return PrepareStep(next(names[each] for each in type(step).__mro__ if each in names), step)


@cache
def _names_of_steps() -> Mapping[type, str]:
    return {component("steps", name): name for name in installed("steps")}


def drawn_by(step: Step, records: SyntheticDataset) -> list[str]:
    """Return the ids of the records that a step keeps which needs no context, without a stage's files."""
    return [record.id for record in step.apply(records, cast("StepContext", None))]


def apply_steps(
    dataset: SyntheticDataset,
    steps: Iterable[Step | PrepareStep],
    others: Mapping[str, SyntheticDataset] = NO_OTHERS,
) -> SyntheticDataset:
    """Apply steps in order, as a stage would."""
    all_named = [step if isinstance(step, PrepareStep) else named(step) for step in steps]
    with TemporaryDirectory() as name:
        source, target = Path(name) / "source", Path(name) / "target"
        for folder in (source, target):
            folder.mkdir()
        dataset.write(source)
        work = Workspace(Path(name) / "work", Runtime(device="cpu", threads=1), Silent())
        preparation.apply_steps(source, all_named, Sources({}, work, others=others), target)
        return SyntheticDataset.read(target)
