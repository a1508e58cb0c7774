"""Export scores as the hub reads them from a model's repository: `.eval_results/*.yaml`.

The hub compares scores on the same data set. So only scores of standard tasks are written, on the whole
published test split, by the hub's measure.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from synthbench.exporting.subject import Subject
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
"""mteb's name of each task, as the hub's data sets use it. The hub's SICK-R has all pairs."""
MEASURES = {"sts": "spearman_all", "reranking": "map_mixed"}
"""The measure of the hub's scores, by evaluator."""


@dataclass(frozen=True)
class HubScore:
    """A model's scores by one evaluator on a test set from `source`."""

    source: Source | None
    evaluator: str
    scores: Mapping[str, float]
    num_items: int
    is_on_hub: bool
    """Whether the items were read from the hub's data set, at its commit."""


def evaluation_results(subject: Subject) -> Iterator[tuple[str, str]]:
    """Yield file name and content for each main score of a run that the hub can compare with others."""
    for each in subject.run.scores:
        is_whole = each.split == "test" and not each.drawn and not each.num_dropped
        source = subject.experiment.sources.get(each.task)
        if is_whole and isinstance(source, TaskSource) and each.main_score == MEASURES.get(each.evaluator):
            is_on_hub = source.is_on_hub(subject.experiment.roots)
            score = HubScore(source, each.evaluator, each.scores, each.num_items, is_on_hub)
            yield from result_files(score, subject.version)


def result_files(score: HubScore, version: str) -> Iterator[tuple[str, str]]:
    """Yield file name and content if the hub can compare the score: a whole standard task, by its measure."""
    from huggingface_hub import EvalResultEntry, eval_result_entries_to_yaml

    source, measure = score.source, MEASURES.get(score.evaluator, "")
    if not isinstance(source, TaskSource) or source.task not in TASK_IDS or measure not in score.scores:
        return
    task, name = TASKS[source.task], TASK_IDS[source.task]
    if source.expected_size is not None or not task.hub_id:
        return
    entry = EvalResultEntry(
        dataset_id=task.hub_id,
        task_id=name,
        value=round(100 * score.scores[measure], 5),
        dataset_revision=task.hub_revision if score.is_on_hub else None,
        notes=f"synthbench {version}, {measure}, {score.num_items:,} items",
    )
    yield f"{name}.yaml", to_yaml(eval_result_entries_to_yaml([entry]))


def write_files(folder: Path, files: Iterable[tuple[str, str]]) -> int:
    """Write the files into `.eval_results` of a folder, if there are any; return their number."""
    texts = dict(files)
    for name, text in texts.items():
        (folder / FOLDER).mkdir(exist_ok=True)
        (folder / FOLDER / name).write_text(text, encoding="utf-8")
    return len(texts)
