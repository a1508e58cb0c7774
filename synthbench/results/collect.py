"""Collect results for tracking and reports from a plan's artifacts."""

import hashlib
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from synthbench.config.documents import flatten
from synthbench.config.experiment import Experiment
from synthbench.config.llm import TRAFFIC
from synthbench.data.dataset import SyntheticDataset
from synthbench.data.records import RecordKind
from synthbench.engine.artifacts import CHOICE_FILE, DATASET_FOLDER, Artifacts, Choice
from synthbench.engine.jobs import environment
from synthbench.engine.plan import Plan, PlannedRun
from synthbench.engine.stage import Stage, ancestors
from synthbench.llm.answering_models import notes_on_models
from synthbench.reporting.model.analysis import Analysis
from synthbench.reporting.results import DatasetSummary, ExperimentResult, RunResult, TaskScores
from synthbench.results.audits import audit_results
from synthbench.results.data_checks import with_data_checks
from synthbench.results.item_noise import item_noise
from synthbench.results.lineage import (
    file_as_given,
    ingredients,
    reads_data_folder,
    revisions,
    trained_model,
    version_notes,
)
from synthbench.results.llm_costs import cost_results, makers
from synthbench.results.samples import Samples
from synthbench.results.seen import seen_data
from synthbench.results.sentences import Sentences
from synthbench.sources.models import Source
from synthbench.stages.data import ReadSource
from synthbench.stages.evaluation import ITEMS_FILE, SCORES_FILE, Evaluate, Scores
from synthbench.stages.own_prompts import notes_on_prompts
from synthbench.stages.training import DATA, PAUSED, SUMMARY_FILE, StoredTraining, Train
from synthbench.statistics.histograms import score_counts

OF_MANIFEST = (
    "method", "num_records", "num_failures", "dropped", "tokens", "cost_usd", "measured", "content_hash"
)  # fmt: skip
"""The fields that a data set's summary copies from its manifest."""


def collect(
    plan: Plan,
    artifacts: Artifacts,
    failures: tuple[str, ...] = (),
    overrides: tuple[str, ...] = (),
    pending: tuple[str, ...] = (),
) -> ExperimentResult:
    """Read the results of every run whose evaluations are finished.

    The result's `failures` list the unfinished runs, or its `pending` if they only wait for an LLM's batch.
    A run with an unfinished audit still has its scores. Raises ArtifactDamagedError.
    """
    runs = [run for run in plan.runs if _is_finished(run, artifacts)]
    sentences = Sentences(artifacts)
    results = tuple(_run_result(run, plan.experiment, artifacts, sentences) for run in runs)
    audits, unjudged = audit_results(plan, artifacts)
    unfinished = (*(f"{run.label} is not finished" for run in plan.runs if run not in runs), *unjudged)
    only_late = bool(pending) and not failures
    experiment = plan.experiment
    samples = Samples(results, artifacts)
    of_runs, unread = with_data_checks(runs, results, artifacts)
    missing = tuple(f"{task}: no data found, left out" for task in plan.missing_tasks)
    result = ExperimentResult(
        experiment=experiment.name,
        description=experiment.description,
        file=file_as_given(experiment.file),
        is_data_folder_given=experiment.is_data_folder_given and reads_data_folder(plan),
        identity=_hash(*(run.identity for run in results), *overrides),
        overrides=overrides,
        request=request(experiment, overrides),
        varied=("training", *experiment.vary),
        source=to_yaml(experiment.resolved),
        table=experiment.table.model_dump(mode="json"),
        published=experiment.published,
        baseline=str(experiment.resolved.get("baseline") or ""),
        tasks=tuple(task for task in experiment.tasks if task not in plan.missing_tasks),
        runs=of_runs,
        audits=audits,
        costs=cost_results(plan, artifacts),
        excerpts=tuple(samples.of_each()),
        seen=seen_data(plan, runs),
        side_by_side=tuple(samples.side_by_side()),
        revisions=revisions(plan, runs),
        failures=(*failures, *(() if only_late else unfinished)),
        pending=(*pending, *(unfinished if only_late else ())),
        notes=(*experiment.notes, *prompt_notes(plan), *missing, *unread, *version_notes(runs, artifacts)),
        environment=environment(),
    )
    evaluators = {
        stage.identity: stage.operation.plugin
        for run in runs
        for stage in run.evaluations.values()
        if isinstance(stage.operation, Evaluate)
    }
    noise = item_noise(Analysis(result), lambda score: evaluators[score.stage], artifacts)
    return result.model_copy(update={"item_noise": tuple(noise)})


def prompt_notes(plan: Plan) -> Iterator[str]:
    """Yield notes on models with their own prompts for queries and passages."""
    return notes_on_prompts(
        (run.variant.label, task, stage.operation.own_prompts)
        for run in plan.runs
        for task, stage in run.evaluations.items()
        if isinstance(stage.operation, Evaluate)
    )


def request(experiment: Experiment, overrides: Sequence[str]) -> str:
    """Return a hash of experiment and overrides, without settings of the runtime and of LLM requests."""
    content = {key: value for key, value in experiment.resolved.items() if key != "runtime"}
    for section in ("llm", "llms"):
        if isinstance(content.get(section), dict):
            content[section] = _without_traffic(content[section])
    return _hash(json.dumps(content, default=str), *overrides)


def _without_traffic(section: Mapping[str, Any]) -> dict[str, Any]:
    """Return LLM settings without those on sending requests, such as concurrency."""
    kept = {key: value for key, value in section.items() if key not in TRAFFIC}
    return {key: _without_traffic(value) if isinstance(value, dict) else value for key, value in kept.items()}


def to_yaml(data: Mapping[str, Any] | Sequence[Any]) -> str:
    """Return data as YAML text."""
    import io

    from ruamel.yaml import YAML

    stream = io.StringIO()
    yaml = YAML(typ="safe", pure=True)
    yaml.default_flow_style = False
    yaml.sort_base_mapping_type_on_output = False  # type: ignore[assignment]
    yaml.representer.ignore_aliases = lambda *_: True
    yaml.dump(data, stream)
    return stream.getvalue()


def _hash(*lines: str) -> str:
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def _is_finished(run: PlannedRun, artifacts: Artifacts) -> bool:
    """Return whether the store has the run's evaluations; without model and evaluations, its last stages."""
    ends = run.evaluations.values() if run.evaluations or run.model else run.ends
    return all(artifacts.has(stage.identity) for stage in ends)


def _run_result(
    run: PlannedRun, experiment: Experiment, artifacts: Artifacts, sentences: Sentences
) -> RunResult:
    model = trained_model(run, artifacts)
    summary = (artifacts.json(model.identity, SUMMARY_FILE, StoredTraining) if model else None) or {}
    parts = run.data.get(model.identity if model else "", {})
    datasets = _datasets(parts, artifacts, experiment.table.counted_parts, _trained_on(model))
    starts = _starts(model)
    return RunResult(
        variant=run.variant.name,
        axes=dict(run.variant.axes),
        seed=run.seed,
        is_seeded=experiment.is_seeded(run.variant),
        identity=_run_identity(run),
        parameters=dict(flatten(run.variant.parameters)),
        is_of_file=run.variant.label in experiment.rows_of_file,
        chosen={**_chosen(run, artifacts), **({"train.seed": summary["seed"]} if starts else {})},
        num_starts=len(starts) or 1,
        paused_at=starts[0].until if starts else 1.0,
        scores=tuple(
            _with_sentences(task_scores(task, stage, artifacts), stage, sentences)
            for task, stage in run.evaluations.items()
        ),
        datasets=tuple(datasets),
        history=tuple((step, name, value) for step, name, value in summary.get("history", ())),
        dev_score=summary.get("dev_score"),
        num_steps=summary.get("num_steps", 0),
        seconds=_seconds(run, artifacts),
        revisions=() if model is None else tuple(model.operation.outside.items()),
        model_folder="" if model is None else artifacts.path_in_home(model.identity),
    )


def _run_identity(run: PlannedRun) -> str:
    ends = (*run.evaluations.values(), *run.audits.values()) or run.ends
    return _hash(run.variant.label, str(run.seed), *(stage.identity for stage in ends))


def _chosen(run: PlannedRun, artifacts: Artifacts) -> dict[str, Any]:
    choice = None if run.model is None else artifacts.json(run.model.identity, CHOICE_FILE, Choice)
    return {} if choice is None else dict(choice["chosen"])


def _starts(model: Stage | None) -> list[Train]:
    """Return the paused trainings that seed optimisation chose from, [] without it."""
    choice = None if model is None else model.inputs.get(PAUSED)
    operations = [] if choice is None else [stage.operation for stage in choice.inputs.values()]
    return [operation for operation in operations if isinstance(operation, Train)]


def _trained_on(model: Stage | None) -> set[str] | None:
    """Return the identities of a model's training data, None without a model."""
    if model is None:
        return None
    return {stage.identity for name, stage in model.inputs.items() if name.startswith(DATA)}


def _datasets(
    parts: Mapping[str, Stage],
    artifacts: Artifacts,
    counted: Collection[str],
    trained_on: Collection[str] | None,
) -> Iterator[DatasetSummary]:
    for name, stage in parts.items():
        if not artifacts.has_dataset(stage.identity):
            continue
        manifest = artifacts.manifest(stage.identity)
        made_by = list(makers(stage))
        asked = {one.llm.note: one.llm.title for one in made_by if one.llm is not None}
        notes = dict.fromkeys(note for one in made_by for note in one.table_notes())
        notes |= dict.fromkeys(_notes_on_models(stage, artifacts))
        yield DatasetSummary(
            part=name,
            kind=manifest.kind.value,
            **{name: getattr(manifest, name) for name in OF_MANIFEST},
            trained_on=trained_on is None or stage.identity in trained_on,
            llm=" and ".join(dict.fromkeys(asked.values())),
            notes=(*asked, *notes),
            score_counts=_score_counts(stage, artifacts) if name in counted else (),
            made_of=tuple(ingredients(stage, artifacts)),
            stage=stage.identity,
            folder=artifacts.path_in_home(stage.identity, DATASET_FOLDER),
        )


def _notes_on_models(data: Stage, artifacts: Artifacts) -> Iterator[str]:
    """Yield a note per LLM that answered under another name than requested, in any stage behind `data`."""
    answered: dict[str, dict[str, None]] = {}
    for stage in ancestors([data]):
        if stage.operation.asked_llm is not None and artifacts.has_dataset(stage.identity):
            for asked, models in artifacts.manifest(stage.identity).answered_by.items():
                answered.setdefault(asked, {}).update(dict.fromkeys(models))
    for asked, models_of in answered.items():
        yield from notes_on_models(asked, models_of)


def _score_counts(stage: Stage, artifacts: Artifacts) -> tuple[int, ...]:
    dataset = SyntheticDataset.read(artifacts.dataset(stage.identity))
    return score_counts(dataset.column("score")) if dataset.kind is RecordKind.SCORED_PAIR else ()


def task_scores(task: str, stage: Stage, artifacts: Artifacts) -> TaskScores:
    """Return the scores of a finished evaluation; raises ArtifactDamagedError."""
    recorded = artifacts.json(stage.identity, SCORES_FILE, Scores)
    items = artifacts.file(stage.identity, ITEMS_FILE)
    assert isinstance(stage.operation, Evaluate)
    source = _test_source(stage)
    return TaskScores(
        task=task,
        title=stage.operation.plugin.main_score_title,
        evaluator=stage.operation.component,
        settings=dict(stage.operation.config()),
        split="test" if source is None else source.final_split or "",
        drawn="" if source is None else source.drawn,
        stage=stage.identity,
        items_file="" if items is None else str(items),
        **recorded,
    )


def _with_sentences(scores: TaskScores, stage: Stage, sentences: Sentences) -> TaskScores:
    assert isinstance(stage.operation, Evaluate)
    file = sentences.file(stage.identity, stage.operation.plugin) if scores.items_file else None
    return scores if file is None else scores.model_copy(update={"sentences_file": str(file)})


def _test_source(evaluation: Stage) -> Source | None:
    """Return the source of the test set; None if the evaluator provides the test set."""
    stage = evaluation
    while "task" in stage.inputs:
        stage = stage.inputs["task"]
    return stage.operation.source if isinstance(stage.operation, ReadSource) else None


def _seconds(run: PlannedRun, artifacts: Artifacts) -> float:
    """Return the total seconds of a run's stages; stages shared with other runs count in full."""
    ends = (*run.evaluations.values(), *run.audits.values()) or run.ends
    return round(sum(float(artifacts.record(s.identity).get("seconds") or 0) for s in ancestors(ends)), 3)
