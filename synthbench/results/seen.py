"""Test sets and training sources that a model behind a row was trained on before."""

from collections.abc import Iterator, Mapping, Sequence

from synthbench.engine.plan import Plan, PlannedRun
from synthbench.engine.stage import Stage, ancestors
from synthbench.models.known_training import data_sets_in, training_of
from synthbench.reporting.results import SeenData
from synthbench.sources.corpora import CorpusSource
from synthbench.sources.models import FileSource, TaskSource
from synthbench.stages.asking import AGAINST
from synthbench.stages.data import ReadOwnTask, ReadSource
from synthbench.stages.own_prompts import bases_of
from synthbench.worlds import MODEL_PREFIX


def seen_data(plan: Plan, runs: Sequence[PlannedRun]) -> tuple[SeenData, ...]:
    """Return each test set and training source that a model behind these runs was trained on before.

    Models behind a run: the encoder's base, and those that label, mine or write its training data. The result
    names the affected rows. Works offline.
    """
    rows: dict[SeenData, dict[str, None]] = {}
    trained = {model: training_of(model) for run in runs for model in _models(run)}
    for run in runs:
        read = [*_test_sets(run), *_training_sources(run)]
        for model in _models(run):
            known = trained[model]
            for name, is_test, data_sets in read if known else ():
                for data_set in (each for each in data_sets if known and each in known.data_sets):
                    seen = SeenData(model=model, name=name, is_test=is_test, data_set=data_set)
                    rows.setdefault(seen, {})[run.variant.label] = None
    return tuple(
        seen.model_copy(update={"rows": tuple(of), "stated_by": known.stated_by})
        for seen, of in rows.items()
        if (known := trained[seen.model])
    )


def unknown_bases(plan: Plan) -> Iterator[str]:
    """Yield the encoders' base models whose training data neither `known_training.yaml` nor a card lists."""
    bases = dict.fromkeys(str(base.model) for run in plan.runs if run.model for base in bases_of(run.model))
    return (model for model in bases if not model.startswith(MODEL_PREFIX) and training_of(model) is None)


def _models(run: PlannedRun) -> Mapping[str, None]:
    """Return the names of the models that the run's stages read, without the files of sources."""
    stages = (
        each for each in ancestors(run.ends) if not isinstance(each.operation, ReadSource | ReadOwnTask)
    )
    return dict.fromkeys(name for stage in stages for name in stage.operation.outside)


def _test_sets(run: PlannedRun) -> Iterator[tuple[str, bool, tuple[str, ...]]]:
    for task, stage in run.evaluations.items():
        while "task" in stage.inputs:
            stage = stage.inputs["task"]
        yield task, True, _data_sets(stage, task)


def _training_sources(run: PlannedRun) -> Iterator[tuple[str, bool, tuple[str, ...]]]:
    parts = (stage for parts in run.data.values() for stage in parts.values())
    # Steps read others, such as test sets, only to drop what the data share with them.
    for stage in ancestors(parts, without=AGAINST):
        if isinstance(stage.operation, ReadSource):
            name = stage.label.removesuffix(f" seed {run.seed}")
            yield name, False, _data_sets(stage, name)


def _data_sets(stage: Stage, name: str) -> tuple[str, ...]:
    """Return the known data sets that a source's names mention; () for the generated world."""
    if isinstance(stage.operation, ReadOwnTask):
        return data_sets_in(stage.operation.task)
    source = stage.operation.source if isinstance(stage.operation, ReadSource) else None
    if isinstance(source, TaskSource):
        return data_sets_in(name, source.task)
    if isinstance(source, FileSource):
        return data_sets_in(name, source.file, source.hub or "")
    return data_sets_in(name, source.corpus) if isinstance(source, CorpusSource) else ()
