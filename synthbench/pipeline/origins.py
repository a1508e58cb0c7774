"""What results were made from, as the stages behind them know it."""

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from synthbench.pipeline.artifacts import Artifacts
from synthbench.pipeline.generation import NEED, SOURCE, Generate
from synthbench.pipeline.operations import (
    AGAINST,
    PAUSED,
    SUMMARY_FILE,
    ReadSource,
    Train,
)
from synthbench.pipeline.plan import Plan, PlannedRun
from synthbench.pipeline.stage import Stage, ancestors
from synthbench.reporting.results import Ingredient, Revisions


def ingredients(stage: Stage, artifacts: Artifacts) -> Iterator[Ingredient]:
    """Yield all that a data set was made from, each stage once, what it was made from directly first.

    Trainings that paused, of which dev chose the one that a model was finished from, are left out.
    """
    roles: dict[str, str] = {stage.identity: ""}
    found: list[Stage] = []
    waiting = deque([stage])
    while waiting:
        for role, source in _made_from(waiting.popleft()).items():
            if source.identity not in roles:
                roles[source.identity] = role
                found.append(source)
                waiting.append(source)
    return (_ingredient(each, roles, artifacts) for each in found)


def base(run: PlannedRun, artifacts: Artifacts) -> Revisions:
    """Return what the training of a run read from outside: its base model."""
    if run.model is None:
        return ()
    return tuple((artifacts.chosen_input(run.model) or run.model).operation.outside().items())


def revisions(plan: Plan, runs: Sequence[PlannedRun]) -> Revisions:
    """Return each model and file that a stage behind these runs read, in the order of the plan."""
    used = {stage.identity for stage in ancestors(end for run in runs for end in run.ends)}
    stages = (stage for identity, stage in plan.stages.items() if identity in used)
    return tuple(dict.fromkeys(each for stage in stages for each in stage.operation.outside().items()))


def reads_data_folder(plan: Plan) -> bool:
    """Tell whether a source of the plan is read from the data folder."""
    operations = (stage.operation for stage in plan.stages.values())
    return any(
        isinstance(operation, ReadSource) and operation.source.needs_data_folder(operation.places)
        for operation in operations
    )


def file_as_given(file: Path) -> str:
    """Return the file's path below the working directory, else its name alone: it may lie anywhere."""
    here, placed = Path.cwd(), file.absolute()
    is_below = placed.is_relative_to(here) and ".." not in placed.parts
    return placed.relative_to(here).as_posix() if is_below else file.name


def _made_from(stage: Stage) -> Mapping[str, Stage]:
    """Return the stage's inputs by their roles."""
    return {
        name.removeprefix(SOURCE).removeprefix(NEED).removeprefix(AGAINST): source
        for name, source in stage.inputs.items()
        if name != PAUSED
    }


def _ingredient(stage: Stage, roles: Mapping[str, str], artifacts: Artifacts) -> Ingredient:
    operation = stage.operation
    assert isinstance(operation, ReadSource | Train | Generate), f"data are made of no {stage.kind}"
    is_source = isinstance(operation, ReadSource)
    return Ingredient(
        role=roles[stage.identity],
        kind=operation.kind,
        name=stage.label if is_source else operation.component,
        of=tuple(dict.fromkeys(roles[source.identity] for source in _made_from(stage).values())),
        revisions=tuple(operation.outside().items()),
        stage=stage.identity,
        **_result(stage, artifacts),
    )


def _result(stage: Stage, artifacts: Artifacts) -> dict[str, Any]:
    """Return a data set's size and hash, a model's dev score; nothing of what is gone."""
    if artifacts.has_dataset(stage.identity):
        manifest = artifacts.manifest(stage.identity)
        return {"num_records": manifest.num_records, "content_hash": manifest.content_hash}
    summary = artifacts.json(stage.identity, SUMMARY_FILE)
    return {} if summary is None else {"dev_score": summary["dev_score"]}
