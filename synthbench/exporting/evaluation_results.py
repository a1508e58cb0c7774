"""Export scores as the hub reads them from a model's repository: `.eval_results/*.yaml`.

The hub compares scores on the same data set. So only scores of standard tasks are written, on the whole
published test split, by the hub's measure.
"""

from collections.abc import Iterator, Sequence

from synthbench.exporting.facts import Score, task_of
from synthbench.exporting.subject import Subject
from synthbench.results.collect import to_yaml
from synthbench.sources.models import TaskSource

FOLDER = ".eval_results"
TASK_IDS = {
    **{name: name for name in ("STS12", "STS13", "STS14", "STS15", "STS16", "BIOSSES")},
    "STSb": "STSBenchmark",
    "SICK-R-all": "SICK-R",
    **{name: name for name in ("AskUbuntuDupQuestions", "SciDocsRR", "StackOverflowDupQuestions")},
}
"""mteb's name of each task, as the hub's data sets use it. The hub's SICK-R has all pairs."""
MEASURES = {"sts": "spearman_all", "reranking": "map_mixed"}
"""The measure of the hub's scores, by evaluator."""


def evaluation_results(subject: Subject, scores: Sequence[Score]) -> Iterator[tuple[str, str]]:
    """Yield file name and content for each score that the hub can compare with others."""
    from huggingface_hub import EvalResultEntry, eval_result_entries_to_yaml

    for score in scores:
        task = task_of(subject, score.task)
        if task is None or not task.hub_id or not _is_comparable(score, subject):
            continue
        entry = EvalResultEntry(
            dataset_id=task.hub_id,
            task_id=TASK_IDS[task.name],
            value=round(score.value, 5),
            dataset_revision=task.hub_revision if _is_on_hub(score, subject) else None,
            notes=f"synthbench {subject.version}, {score.name}, {score.num_items:,} items",
        )
        yield f"{TASK_IDS[task.name]}.yaml", to_yaml(eval_result_entries_to_yaml([entry]))


def _is_comparable(score: Score, subject: Subject) -> bool:
    source = subject.experiment.sources[score.task]
    (measured,) = (
        each for each in subject.run.scores if (each.task, each.evaluator) == (score.task, score.evaluator)
    )
    return (
        isinstance(source, TaskSource)
        and source.task in TASK_IDS
        and source.expected_size is None
        and measured.split == "test"
        and not measured.drawn
        and not measured.num_dropped
        and score.name == MEASURES.get(score.evaluator)
    )


def _is_on_hub(score: Score, subject: Subject) -> bool:
    source = subject.experiment.sources[score.task]
    return isinstance(source, TaskSource) and source.is_on_hub(subject.experiment.roots)
