"""Scores in the layout of mteb's results, where the data have the published content."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from synthbench.base.errors import UserError
from synthbench.data.dataset import SyntheticDataset
from synthbench.engine.artifacts import Artifacts
from synthbench.engine.stage import Stage
from synthbench.models.interfaces import ModelKind
from synthbench.reporting.results import ExperimentResult, RunResult, TaskScores
from synthbench.sources.models import TaskSource
from synthbench.sources.tasks import TASKS
from synthbench.stages.data import ReadSource
from synthbench.stages.training import Select, Train

MTEB = "mteb"
"""The evaluator of mteb's own tasks."""
INSTALL = "pip install 'synthbench[mteb]'"
SAME_TEST_SET = {
    **{name: name for name in ("STS12", "STS13", "STS14", "STS15", "STS16", "BIOSSES")},
    "STSb": "STSBenchmark",
    "SICK-R-all": "SICK-R",
}
"""Our task of similarity -> mteb's on the same test set."""
SAME_SCORE = {
    "pearson_all": ("pearson", "cosine_pearson"),
    "spearman_all": ("spearman", "cosine_spearman", "main_score"),
}
"""Score of the evaluator `sts` -> mteb's names of it, of an encoder by cosine."""
TOLERANCE = 1e-6
"""Relative difference of two means of the same gold scores, which we keep divided by their range."""
_Parts = dict[str, dict[str, dict[str, float]]]
"""Split -> subset -> scores."""


@dataclass
class WrittenResults:
    """How many files there are, and why others are not: "STS12 by sts" -> reason."""

    num_files: int = 0
    left_out: dict[str, str] = field(default_factory=dict)


def write_results(
    result: ExperimentResult, stages: Sequence[Stage], artifacts: Artifacts, folder: Path
) -> WrittenResults:
    """Write a file for each run and test set that mteb knows; `stages` are those of the experiment now.

    Raises UserError, with the reasons, if there is none, or mteb is not installed.
    """
    cache, known, written = (
        _result_cache(folder),
        {stage.identity: stage for stage in stages},
        WrittenResults(),
    )
    for run in result.runs:
        meta, done = _model_meta(result, run), set[str]()
        # mteb has one file for a task: its own scores, which are more, go before ours.
        for scores in sorted(run.scores, key=lambda each: each.evaluator != MTEB):
            try:
                found = _task_result(scores, known.get(scores.stage), artifacts)
                if found.task_name in done:
                    raise UserError(f"{found.task_name} is exported as another evaluator scored it")
                done.add(found.task_name)
            except UserError as error:
                written.left_out[f"{scores.task} by {scores.evaluator}"] = str(error)
                continue
            cache.save_to_cache(found, meta)
            written.num_files += 1
    if not written.num_files:
        reasons = (f"{name}: {reason}" for name, reason in written.left_out.items())
        raise UserError(f"{result.title}: no score can be exported as mteb's", *reasons)
    return written


def _result_cache(folder: Path) -> Any:  # noqa: ANN401 - mteb's ResultCache
    try:
        from mteb.cache import ResultCache
    except ImportError:
        raise UserError(f"export mteb needs mteb: {INSTALL}") from None
    return ResultCache(folder)


def _model_meta(result: ExperimentResult, run: RunResult) -> Any:  # noqa: ANN401
    """Return a model's name and revision; variant, axes and seed are what mteb calls an experiment."""
    from mteb.models import ModelMeta

    settings = {"variant": run.variant, **run.axes, "seed": run.seed}
    return ModelMeta.create_empty(
        {
            "name": f"synthbench/{result.experiment}",
            "revision": result.identity[:40],
            "experiment_kwargs": settings,
        }
    )


def _task_result(scores: TaskScores, stage: Stage | None, artifacts: Artifacts) -> Any:  # noqa: ANN401
    """Return mteb's TaskResult; raises UserError if the scores are of other data than its task."""
    from mteb.results import TaskResult

    if stage is None:
        raise UserError("data, settings or mteb's version have changed since; run the experiment again")
    if scores.drawn or scores.num_dropped:
        part = scores.drawn or f"without {scores.num_dropped:,} items that stand in training data"
        raise UserError(f"only a part of the test set was scored: {part}")
    test = stage.inputs["task"]
    if not artifacts.has_dataset(test.identity):
        raise UserError("the store no longer has its items; run the experiment again")
    if scores.evaluator == MTEB:
        task = _named_task(scores)
        _require_published(task, artifacts.manifest(test.identity).revisions)
        parts = _parts(task, scores.scores)
    else:
        task = _task_of_similarity(scores, stage, test)
        _require_same_content(task, SyntheticDataset.read(artifacts.dataset(test.identity)), test)
        names = {name: ours for ours, theirs in SAME_SCORE.items() for name in theirs}
        parts = {"test": {"default": {name: scores.scores[ours] for name, ours in names.items()}}}
    return TaskResult.from_task_results(task, parts, evaluation_time=0.0)


def _named_task(scores: TaskScores) -> Any:  # noqa: ANN401
    """Return mteb's task, in the languages and splits in which it was scored."""
    import mteb

    benchmark = scores.settings.get("benchmark")
    if benchmark is None:
        return mteb.get_task(scores.task)
    return next(task for task in mteb.get_benchmark(benchmark).tasks if task.metadata.name == scores.task)


def _require_published(task: Any, revisions: Mapping[str, str]) -> None:  # noqa: ANN401
    data = task.metadata.dataset
    if revisions.get(data["path"]) != data["revision"]:
        raise UserError(f"its data do not have the published content, {data['path']} at {data['revision']}")


def _parts(task: Any, scores: Mapping[str, float]) -> _Parts:  # noqa: ANN401
    """Return the scores of each split and subset from one mapping, where NAME/PART is a part's."""
    parts = [(split, subset) for split in task.eval_splits for subset in task.hf_subsets]
    found: _Parts = {}
    for split, subset in parts:
        end = "/" + (subset if len(task.eval_splits) == 1 else f"{split}:{subset}")
        of_part = {name.removesuffix(end): value for name, value in scores.items() if name.endswith(end)}
        found.setdefault(split, {})[subset] = of_part if len(parts) > 1 else dict(scores)
    return found


def _task_of_similarity(scores: TaskScores, stage: Stage, test: Stage) -> Any:  # noqa: ANN401
    """Return mteb's task on one of our test sets; raises UserError if it has none, or no such scores."""
    import mteb

    source = test.operation.source if isinstance(test.operation, ReadSource) else None
    if scores.evaluator != "sts" or not isinstance(source, TaskSource):
        raise UserError("mteb has no such task: exported are scores by mteb, and by sts on standard tasks")
    if source.task not in SAME_TEST_SET or source.subsets or source.part or source.split != "test":
        hint = "; SICK-R-all is all of it" if source.task == "SICK-R" else ""
        raise UserError(f"mteb has no task on {source.task} {source.split} as it is read here{hint}")
    if not _is_encoder(stage.inputs["model"]):
        raise UserError("mteb scores similarity by encoders; this row's model scores pairs")
    return mteb.get_task(SAME_TEST_SET[source.task])


def _is_encoder(model: Stage) -> bool:
    while isinstance(model.operation, Select):
        model = next(iter(model.inputs.values()))
    return isinstance(model.operation, Train) and model.operation.plugin.model_kind is ModelKind.ENCODER


def _require_same_content(task: Any, items: SyntheticDataset, test: Stage) -> None:  # noqa: ANN401
    """Raise UserError unless number, lengths and gold of the pairs are those that mteb ships."""
    data = task.metadata.dataset
    if items.manifest.revisions.get(data["path"]) == data["revision"]:
        return
    assert isinstance(test.operation, ReadSource)
    assert isinstance(test.operation.source, TaskSource)
    low, high = TASKS[test.operation.source.task].score_range
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
