"""Export scores as the hub reads them from a model's repository: `.eval_results/*.yaml`.

The hub compares scores on the same data set. So only scores on the whole published test split of a standard
task are written, and only by the hub's measure.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path

from synthbench.exporting.subject import Subject
from synthbench.plugins.model_contracts import Evaluation
from synthbench.reporting.results import TaskScores
from synthbench.results.collect import to_yaml
from synthbench.sources.models import Source, TaskSource
from synthbench.sources.tasks import TASKS

FOLDER = ".eval_results"
TASK_IDS = {
    **{name: name for name in ("STS12", "STS13", "STS14", "STS15", "STS16", "BIOSSES")},
    "STSb": "STSBenchmark",
    "SICK-R-all": "SICK-R",
    **{name: name for name in ("AskUbuntuDupQuestions", "SciDocsRR", "StackOverflowDupQuestions")},
}
"""Our task's name -> mteb's, which the hub's data sets use. The hub's SICK-R has all pairs."""
MEASURES = {"sts": "spearman_all", "reranking": "map_mixed"}
"""Evaluator -> the measure that the hub compares."""


def evaluation_results(subject: Subject) -> Iterator[tuple[str, str]]:
    """Yield (file name, content) for each main score of the run that the hub can compare with others."""
    for each in subject.run.scores:
        source = subject.experiment.sources.get(each.task)
        is_measure = each.main_score == MEASURES.get(each.evaluator)
        if is_measure and not each.num_dropped and isinstance(source, TaskSource):
            is_on_hub = source.is_on_hub(subject.experiment.roots)
            yield from result_files(source, each.evaluator, each, subject.version, is_on_hub=is_on_hub)


def result_files(
    source: Source | None, evaluator: str, scored: TaskScores | Evaluation, version: str, *, is_on_hub: bool
) -> Iterator[tuple[str, str]]:
    """Yield (file name, content) if a whole standard test set was scored by the hub's measure, else nothing.

    `source` is the test set's source; `is_on_hub` says whether it was read from the hub.
    """
    from huggingface_hub import EvalResultEntry, eval_result_entries_to_yaml

    measure = MEASURES.get(evaluator, "")
    if not isinstance(source, TaskSource) or source.task not in TASK_IDS or measure not in scored.scores:
        return
    task, name = TASKS[source.task], TASK_IDS[source.task]
    if not source.is_whole_test or not task.hub_id:
        return
    entry = EvalResultEntry(
        dataset_id=task.hub_id,
        task_id=name,
        value=round(100 * scored.scores[measure], 5),
        dataset_revision=task.hub_revision if is_on_hub else None,
        notes=f"synthbench {version}, {measure}, {scored.num_items:,} items",
    )
    yield f"{name}.yaml", to_yaml(eval_result_entries_to_yaml([entry]))


def write_files(folder: Path, files: Iterable[tuple[str, str]]) -> int:
    """Write the files into `.eval_results` of a folder, if there are any; return their number."""
    texts = dict(files)
    for name, text in texts.items():
        (folder / FOLDER).mkdir(exist_ok=True)
        (folder / FOLDER / name).write_text(text, encoding="utf-8")
    return len(texts)
