"""Export scores in mteb's layout of results, if they were computed on the published data."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from synthbench.base.errors import UserError
from synthbench.data.dataset import SyntheticDataset
from synthbench.engine.artifacts import Artifacts
from synthbench.engine.stage import Stage
from synthbench.exporting.evaluation_results import TASK_IDS
from synthbench.models.interfaces import ModelKind
from synthbench.reporting.results import ExperimentResult, TaskScores
from synthbench.sources.models import Source, TaskSource
from synthbench.sources.tasks import TASKS
from synthbench.stages.data import ReadSource
from synthbench.stages.training import Select, Train

MTEB = "mteb"
"""The evaluator of mteb's own tasks."""
INSTALL = "pip install 'synthbench[mteb]'"
SAME_SCORE = {
    "pearson_all": ("pearson", "cosine_pearson"),
    "spearman_all": ("spearman", "cosine_spearman", "main_score"),
}
"""Score of the evaluator `sts` -> mteb's names for it (cosine of an encoder)."""
TOLERANCE = 1e-6
"""Permitted relative difference from mteb's figures: our gold scores are stored scaled to [0, 1]."""
_Parts = dict[str, dict[str, dict[str, float]]]
"""Split -> subset -> scores."""


@dataclass(frozen=True)
class MeasuredTask:
    """One model's scores on one whole test set, with the test items and, if known, their source."""

    task: str
    evaluator: str
    scores: Mapping[str, float]
    benchmark: str | None
    revisions: Mapping[str, str]
    items: Callable[[], SyntheticDataset]
    source: Source | None
    is_encoder: bool


@dataclass
class WrittenResults:
    """The number of files written, and why other scores were not: "STS12 by sts" -> reason."""

    num_files: int = 0
    left_out: dict[str, str] = field(default_factory=dict)

    def require_any(self, title: str) -> None:
        """Raise UserError with the reasons if no file was written."""
        if not self.num_files:
            reasons = (f"{name}: {reason}" for name, reason in self.left_out.items())
            raise UserError(f"{title}: no score can be exported as mteb's", *reasons)


def write_results(
    result: ExperimentResult, stages: Sequence[Stage], artifacts: Artifacts, folder: Path
) -> WrittenResults:
    """Write a file for each run and each test set that mteb has; return what was written and left out.

    `stages` are the experiment's current stages.
    Raises UserError with the reasons if no file was written, or if mteb is not installed.
    """
    known, written = {stage.identity: stage for stage in stages}, WrittenResults()
    for run in result.runs:
        # mteb calls variant, axes and seed an experiment.
        settings = {"variant": run.variant, **run.axes, "seed": run.seed}
        meta = {"name": f"synthbench/{result.experiment}", "revision": result.identity[:40]}
        # mteb has one file per task, so its own scores, which are more, take precedence.
        in_order = sorted(run.scores, key=lambda each: each.evaluator != MTEB)
        measured = (
            (f"{each.task} by {each.evaluator}", partial(_measured, each, known.get(each.stage), artifacts))
            for each in in_order
        )
        write_measured(measured, {**meta, "experiment_kwargs": settings}, folder, written)
    written.require_any(result.title)
    return written


def write_measured(
    named: Iterable[tuple[str, Callable[[], MeasuredTask]]],
    meta: Mapping[str, Any],
    folder: Path,
    written: WrittenResults,
) -> None:
    """Write one model's results in mteb's layout; record in `written` what was written and left out.

    `named` has pairs of a title ("STS12 by sts") and a function that loads the scores. `meta` has the model's
    name and revision. Scores are left out if they can't be loaded, if mteb has no such task, if its data
    differ, or if an earlier pair wrote the task. Raises UserError if mteb is not installed.
    """
    cache, done = _result_cache(folder), set[str]()
    from mteb.models import ModelMeta

    for name, measured in named:
        try:
            found = _task_result(measured())
            if found.task_name in done:
                raise UserError(f"{found.task_name} is exported as another evaluator scored it")
        except UserError as error:
            written.left_out[name] = str(error)
            continue
        done.add(found.task_name)
        cache.save_to_cache(found, ModelMeta.create_empty(dict(meta)))
        written.num_files += 1


def _result_cache(folder: Path) -> Any:  # noqa: ANN401 - mteb's ResultCache
    try:
        from mteb.cache import ResultCache
    except ImportError:
        raise UserError(f"mteb's layout needs mteb: {INSTALL}") from None
    return ResultCache(folder)


def _measured(scores: TaskScores, stage: Stage | None, artifacts: Artifacts) -> MeasuredTask:
    """Return an experiment's scores, with the test items from the store.

    Raises UserError if the evaluation's stage has changed since the scores were tracked, if only a part of
    the test set was scored, or if the items are gone.
    """
    if stage is None:
        raise UserError("data, settings or mteb's version have changed since; run the experiment again")
    if scores.drawn or scores.num_dropped:
        part = scores.drawn or f"without {scores.num_dropped:,} items that stand in training data"
        raise UserError(f"only a part of the test set was scored: {part}")
    test = stage.inputs["task"]
    if not artifacts.has_dataset(test.identity):
        raise UserError("the store no longer has its items; run the experiment again")
    return MeasuredTask(
        task=scores.task,
        evaluator=scores.evaluator,
        scores=scores.scores,
        benchmark=scores.settings.get("benchmark"),
        revisions=artifacts.manifest(test.identity).revisions,
        items=lambda: SyntheticDataset.read(artifacts.dataset(test.identity)),
        source=test.operation.source if isinstance(test.operation, ReadSource) else None,
        is_encoder=scores.evaluator == MTEB or _is_encoder(stage.inputs["model"]),
    )


def _task_result(measured: MeasuredTask) -> Any:  # noqa: ANN401
    """Return mteb's TaskResult.

    Raises UserError as `_task_of_similarity`, and if the scores are from other data than mteb's task.
    """
    from mteb.results import TaskResult

    if measured.evaluator == MTEB:
        task = _named_task(measured)
        _require_published(task, measured.revisions)
        parts = _parts(task, measured.scores)
    else:
        task = _task_of_similarity(measured)
        _require_same_content(task, measured)
        names = {name: ours for ours, theirs in SAME_SCORE.items() for name in theirs}
        parts = {"test": {"default": {name: measured.scores[ours] for name, ours in names.items()}}}
    return TaskResult.from_task_results(task, parts, evaluation_time=0.0)


def _named_task(measured: MeasuredTask) -> Any:  # noqa: ANN401
    """Return mteb's task, in the scored languages and splits."""
    import mteb

    if measured.benchmark is None:
        return mteb.get_task(measured.task)
    tasks = mteb.get_benchmark(measured.benchmark).tasks
    return next(task for task in tasks if task.metadata.name == measured.task)


def _require_published(task: Any, revisions: Mapping[str, str]) -> None:  # noqa: ANN401
    data = task.metadata.dataset
    if revisions.get(data["path"]) != data["revision"]:
        raise UserError(f"its data do not have the published content, {data['path']} at {data['revision']}")


def _parts(task: Any, scores: Mapping[str, float]) -> _Parts:  # noqa: ANN401
    """Return split -> subset -> scores.

    A task with one split and one subset gets all of `scores`. Otherwise, a score's name in `scores` ends in
    /SUBSET or, with several splits, in /SPLIT:SUBSET; the result's names lack this ending.
    """
    parts = [(split, subset) for split in task.eval_splits for subset in task.hf_subsets]
    found: _Parts = {}
    for split, subset in parts:
        end = "/" + (subset if len(task.eval_splits) == 1 else f"{split}:{subset}")
        of_part = {name.removesuffix(end): value for name, value in scores.items() if name.endswith(end)}
        found.setdefault(split, {})[subset] = of_part if len(parts) > 1 else dict(scores)
    return found


def _task_of_similarity(measured: MeasuredTask) -> Any:  # noqa: ANN401
    """Return mteb's task for one of our STS test sets.

    Raises UserError if mteb has no such task, or if the model is no dense encoder.
    """
    import mteb

    source = measured.source
    if measured.evaluator != "sts" or not isinstance(source, TaskSource):
        raise UserError("mteb has no such task: exported are scores by mteb, and by sts on standard tasks")
    if source.task not in TASK_IDS or not source.is_whole_test:
        hint = "; SICK-R-all is all of it" if source.task == "SICK-R" else ""
        raise UserError(f"mteb has no task on {source.task} {source.split} as it is read here{hint}")
    if not measured.is_encoder:
        raise UserError("mteb's scores of similarity are of a dense encoder; this model is of another kind")
    return mteb.get_task(TASK_IDS[source.task])


def _is_encoder(model: Stage) -> bool:
    while isinstance(model.operation, Select):
        model = next(iter(model.inputs.values()))
    if not isinstance(model.operation, Train) or model.operation.plugin.model_kind is not ModelKind.ENCODER:
        return False
    return getattr(getattr(model.operation.plugin, "base", None), "encoder", "dense") == "dense"


def _require_same_content(task: Any, measured: MeasuredTask) -> None:  # noqa: ANN401
    """Raise UserError if number, lengths or gold scores of the pairs differ from what mteb publishes."""
    data = task.metadata.dataset
    if measured.revisions.get(data["path"]) == data["revision"]:
        return
    assert isinstance(measured.source, TaskSource)
    items = measured.items()
    low, high = TASKS[measured.source.task].score_range
    gold = [low + (high - low) * score for score in items.column("score")]
    found = {
        "num_samples": len(items),
        "text1_statistics": _lengths(items.column("sentence1")),
        "text2_statistics": _lengths(items.column("sentence2")),
        "label_statistics": {
            "min_score": min(gold),
            "avg_score": math.fsum(gold) / len(gold),
            "max_score": max(gold),
        },
    }
    known = (task.metadata.descriptive_stats or {}).get("test", {})
    if not _agree(found, known):
        raise UserError(
            f"its texts or scores are not those of the published data, {data['path']} at {data['revision']}"
        )


def _lengths(texts: Sequence[str]) -> dict[str, float]:
    lengths = [len(text) for text in texts]
    return {
        "total_text_length": sum(lengths),
        "min_text_length": min(lengths),
        "max_text_length": max(lengths),
        "unique_texts": len(set(texts)),
    }


def _agree(found: Any, known: Any) -> bool:  # noqa: ANN401 - JSON
    if isinstance(found, Mapping):
        return isinstance(known, Mapping) and all(_agree(found[name], known.get(name)) for name in found)
    return isinstance(known, int | float) and math.isclose(found, known, rel_tol=TOLERANCE)
