"""Intermediate results of an experiment's runs while they are computed."""

from collections.abc import Collection, Iterator

from synthbench.engine.artifacts import Artifacts
from synthbench.engine.plan import Plan, PlannedRun
from synthbench.engine.records import ArtifactDamagedError
from synthbench.engine.store import Store
from synthbench.engine.unfinished import CHECKPOINTS
from synthbench.reporting.results import RunResult
from synthbench.results.collect import task_scores
from synthbench.results.lineage import trained_model
from synthbench.stages.training import SUMMARY_FILE, StoredTraining
from synthbench.training.checkpoints import Checkpoints

Curve = tuple[tuple[int, str, float], ...]


def runs_so_far(plan: Plan, store: Store, missing: Collection[str]) -> Iterator[tuple[RunResult, bool]]:
    """Yield each run that has a learning curve or a score, and whether all its scores are in.

    `missing`: the identities of stages without an artifact. The curve of an unfinished training on this
    machine ends at its newest checkpoint. Only scores, curve, variant, axes and seed are filled in. Runs with
    damaged artifacts are left out: the running process reports the damage.
    """
    artifacts = Artifacts(store)
    for run in plan.runs:
        there = {task: stage for task, stage in run.evaluations.items() if stage.identity not in missing}
        try:
            curve = _curve(run, store, artifacts, missing)
            scores = tuple(task_scores(task, stage, artifacts) for task, stage in there.items())
        except ArtifactDamagedError:
            continue
        if curve or scores:
            result = RunResult(
                variant=run.variant.name,
                axes=dict(run.variant.axes),
                seed=run.seed,
                identity=run.label,
                scores=scores,
                history=curve,
            )
            yield result, len(there) == len(run.evaluations)


def _curve(run: PlannedRun, store: Store, artifacts: Artifacts, missing: Collection[str]) -> Curve:
    model = run.model
    if model is None:
        return ()
    if model.identity in missing:
        return Checkpoints(store.unfinished.folder(model.identity) / CHECKPOINTS).curves_so_far()
    trained = trained_model(run, artifacts)
    summary = (artifacts.json(trained.identity, SUMMARY_FILE, StoredTraining) if trained else None) or {}
    return tuple((step, name, value) for step, name, value in summary.get("history", ()))
