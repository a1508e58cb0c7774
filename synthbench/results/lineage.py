"""Lineage: the data, models and versions that results were made from."""

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from synthbench.base.listing import listed
from synthbench.engine.artifacts import Artifacts
from synthbench.engine.plan import Plan, PlannedRun
from synthbench.engine.stage import Stage, ancestors
from synthbench.reporting.results import Ingredient, Revisions
from synthbench.stages.asking import AGAINST, NEED
from synthbench.stages.data import ReadSource
from synthbench.stages.generation import SOURCE, Generate
from synthbench.stages.preparation import ApplyStep, Prepare
from synthbench.stages.training import PAUSED, SUMMARY_FILE, StoredTraining, Train


def trained_model(run: PlannedRun, artifacts: Artifacts) -> Stage | None:
    """Return the training of the run's model, the chosen one if there were several; None without a model.

    Raises ArtifactDamagedError.
    """
    return run.model and (artifacts.chosen_input(run.model) or run.model)


def ingredients(stage: Stage, artifacts: Artifacts) -> Iterator[Ingredient]:
    """Yield the stages that a data set was made from, each once, nearest first.

    Leaves out the paused trainings that seed optimisation chose from. Breadth first, unlike `ancestors`.
    """
    roles: dict[str, str] = {stage.identity: ""}
    found: list[Stage] = []
    queue = deque([stage])
    while queue:
        for role, source in _made_from(queue.popleft()).items():
            if source.identity not in roles:
                roles[source.identity] = role
                found.append(source)
                queue.append(source)
    return (_ingredient(each, roles, artifacts) for each in found)


def revisions(plan: Plan, runs: Sequence[PlannedRun]) -> Revisions:
    """Return the revisions of all models and files that these runs used, in the plan's order."""
    used = {stage.identity for stage in ancestors(end for run in runs for end in run.ends)}
    stages = (stage for identity, stage in plan.stages.items() if identity in used)
    return tuple(dict.fromkeys(each for stage in stages for each in stage.operation.outside.items()))


def reads_data_folder(plan: Plan) -> bool:
    """Return whether a source of the plan is read from the data folder."""
    operations = (stage.operation for stage in plan.stages.values())
    return any(
        isinstance(operation, ReadSource) and operation.source.needs_data_folder(operation.roots)
        for operation in operations
    )


def file_as_given(file: Path) -> str:
    """Return a file's path relative to the working directory, or its name if it lies elsewhere."""
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
    assert isinstance(operation, ReadSource | Train | Generate | Prepare | ApplyStep), (
        f"data can't be made from {stage.kind}"
    )
    name = operation.component
    if isinstance(operation, ReadSource):
        name = stage.label
    elif isinstance(operation, Prepare):
        name = " and ".join(step.name for step in operation.steps)
    return Ingredient(
        role=roles[stage.identity],
        kind=operation.kind,
        name=name,
        of=tuple(dict.fromkeys(roles[source.identity] for source in _made_from(stage).values())),
        revisions=tuple(operation.outside.items()),
        stage=stage.identity,
        **_result(stage, artifacts),
    )


def _result(stage: Stage, artifacts: Artifacts) -> dict[str, Any]:
    """Return a data set's size and hash or a model's dev score; {} if the artifact is gone."""
    if artifacts.has_dataset(stage.identity):
        manifest = artifacts.manifest(stage.identity)
        return {"num_records": manifest.num_records, "content_hash": manifest.content_hash}
    summary = artifacts.json(stage.identity, SUMMARY_FILE, StoredTraining)
    return {} if summary is None else {"dev_score": summary.get("dev_score")}


ROWS_SHOWN = 5


def version_notes(runs: Sequence[PlannedRun], artifacts: Artifacts) -> Iterator[str]:
    """Yield a note for each package, Python or machine whose version differs between cached stages.

    Versions are not part of a stage's identity: a newer package does not make a stage stale.
    """
    known: dict[str, dict[str, str]] = {}
    rows: dict[str, dict[str, dict[str, None]]] = {}
    for run in runs:
        for stage in ancestors(run.ends):
            for what, version in known.setdefault(stage.identity, _versions(stage, artifacts)).items():
                rows.setdefault(what, {}).setdefault(version, {})[run.variant.label] = None
    for what, of_versions in rows.items():
        if len(of_versions) > 1:
            named = (f"{each} ({listed(of, ROWS_SHOWN)})" for each, of in sorted(of_versions.items()))
            yield f"Not all computed with the same {what}: {', '.join(named)}."


def _versions(stage: Stage, artifacts: Artifacts) -> dict[str, str]:
    found = artifacts.record(stage.identity).get("by")
    return {str(what): str(version) for what, version in found.items()} if isinstance(found, dict) else {}
