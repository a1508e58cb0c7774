"""Suites: named groups of test sets with their evaluators, and finding their data."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from synthbench.base.errors import UserError, did_you_mean
from synthbench.base.grouping import grouped

if TYPE_CHECKING:
    from synthbench.data.dataset import SyntheticDataset
    from synthbench.sources.models import Source
    from synthbench.sources.tasks import TaskName

Origin = Literal["folder", "hub"]
_NO_FOLDER = ": no folder "


@dataclass(frozen=True)
class Suite:
    """A named group of standard tasks with their evaluator.

    `files`: subfolder of the data folder; its .jsonl files that aren't in `tasks` are test sets, too. "": no
    subfolder. `of_pairs`: another evaluator for test sets of scored pairs, "" for the same. The printed
    columns are `counts` (title -> name of a score, or num_items) and `columns` (title -> name of a score in
    [0, 1]; a task without the score has an empty cell). `needs` describes the data folder in messages.
    """

    evaluator: str
    tasks: "tuple[TaskName, ...]"
    counts: Mapping[str, str]
    columns: Mapping[str, str]
    needs: str
    files: str = ""
    of_pairs: str = ""
    averaged: "tuple[TaskName, ...]" = ()
    """The tasks whose average is printed, by the field's convention; (): all tasks."""

    def average_over(self, found: "Iterable[str]") -> tuple[str, ...]:
        """Return the tasks among `found` that the average includes; () if fewer than two."""
        names = tuple(name for name in found if name in (self.averaged or self.tasks))
        return names if len(names) > 1 else ()


SUITES = {
    "sts": Suite(
        evaluator="sts",
        tasks=(
            *("STS12", "STS13", "STS14", "STS15", "STS16", "STSb", "SICK-R", "SICK-R-all", "BIOSSES"),
            *("STS17-en-en", "STS17-ar-ar", "STS17-es-es", "STS17-en-ar", "STS17-es-en", "STS17-en-tr"),
            *("STS17-en-de", "STS17-fr-en", "STS17-it-en", "STS17-nl-en", "STS17-ko-ko"),
        ),
        counts={"pairs": "num_items"},
        columns={
            "spearman all": "spearman_all",
            "spearman mean": "spearman_mean",
            "spearman wmean": "spearman_wmean",
            "pearson all": "pearson_all",
        },
        needs="SentEval's folders",
        averaged=("STS12", "STS13", "STS14", "STS15", "STS16", "STSb", "SICK-R"),
    ),
    "reranking": Suite(
        evaluator="reranking",
        tasks=("AskUbuntuDupQuestions", "MindSmallReranking", "SciDocsRR", "StackOverflowDupQuestions"),
        counts={"queries": "queries_all", "with positive": "queries_answerable"},
        columns={
            "MAP": "map_answerable",
            "MAP all": "map_all",
            "MAP mixed": "map_mixed",
            "MRR": "mrr_answerable",
            "nDCG@10": "ndcg_at_10_answerable",
        },
        needs="a folder with reranking/*.jsonl",
        files="reranking",
    ),
    "transfer": Suite(
        evaluator="transfer",
        of_pairs="transfer-pairs",
        tasks=("MR", "CR", "SUBJ", "MPQA", "SST2", "TREC", "MRPC"),
        counts={"items": "num_items"},
        columns={"accuracy": "accuracy", "on dev or in folds": "dev_accuracy", "F1": "f1"},
        needs="SentEval's folders",
    ),
}


def find_tasks(
    suite: str, data: Path | None, origin: Origin = "folder"
) -> tuple[Mapping[str, "SyntheticDataset"], Mapping[str, str]]:
    """Return the suite's test sets in the folder `data` or on the hub, and why the others are missing.

    Both results are mappings by task name. Tasks whose evaluator trains also get the splits to train on.
    Raises UserError if the suite is unknown, if the folder or all tasks are missing, or if a task is faulty.
    """
    from synthbench.sources.description import Roots

    if suite not in SUITES:
        raise UserError(f"unknown suite '{suite}'{did_you_mean(suite, SUITES)}")
    if origin == "folder":
        _check_folder(SUITES[suite], data)
    roots = Roots(data=data, origin=origin, base=Path.cwd())
    tasks: dict[str, SyntheticDataset] = {}
    missing: dict[str, str] = {}
    for name, source in _sources(SUITES[suite], data if origin == "folder" else None):
        learning = _learning(SUITES[suite], source)
        try:
            for each in (source, *learning.values()):
                each.fingerprint(roots)
        except UserError as error:
            missing[name] = _absence(name, data if origin == "folder" else None, error)
            continue
        tasks[name] = source.load(roots)
        if learning:
            learnt = ((split, each.load(roots)) for split, each in learning.items())
            tasks[name] = tasks[name].with_splits(learnt)
    if not tasks:
        where, instead = (f"--data {data}", "--origin hub takes them from the Hugging Face hub")
        if origin == "hub":
            where, instead = ("--origin hub", f"--data DIR takes them from {SUITES[suite].needs}")
        # A folder that is there, but lacks a file, tells more than one that is not.
        first, *others = sorted(by_reason(missing), key=lambda line: _NO_FOLDER in line)
        more = f"; {len(others)} more like it" if others else ""
        raise UserError(f"{where}: none of the tasks of '{suite}' is there ({first}{more}); {instead}")
    return tasks, missing


def _sources(suite: Suite, data: Path | None) -> "Iterator[tuple[str, Source]]":
    """Yield (name, source) of the suite's tasks, then of other files in its subfolder of `data`."""
    from synthbench.sources.models import FileSource, TaskSource

    for name in suite.tasks:
        yield name, TaskSource(task=name, split="test")
    if data is None or not suite.files:
        return
    folder = data if data.name == suite.files else data / suite.files
    for path in sorted(folder.glob("*.jsonl")):
        if path.stem not in suite.tasks:
            file = f"data:{path.relative_to(data).as_posix()}"
            yield path.stem, FileSource(file=file, format="reranking", split="test")


def _learning(suite: Suite, source: "Source") -> "Mapping[str, Source]":
    """Return the splits that a task's evaluator trains on: split -> source; {} if it doesn't train."""
    from synthbench.plugins.loading import component
    from synthbench.sources.models import TaskSource
    from synthbench.sources.tasks import TASKS

    if not isinstance(source, TaskSource):
        return {}
    splits = component("evaluators", suite.evaluator).learns_from
    known = TASKS[source.task].parts
    return {split: source.model_copy(update={"split": split}) for split in splits if split in known}


def _check_folder(suite: Suite, data: Path | None) -> None:
    from synthbench.base.user_files import why_no_folder

    if data is None:
        raise UserError(
            f"no data folder given: --data DIR or SYNTHBENCH_DATA names {suite.needs}, "
            "--origin hub needs none"
        )
    if wrong := why_no_folder(data):
        raise UserError(f"--data {data}: {wrong}")


def _absence(name: str, data: Path | None, error: UserError) -> str:
    """Return a short reason why a task is missing, without the error's advice for experiment files."""
    from synthbench.sources.tasks import TASKS

    task = TASKS.get(name)
    if task is None or (data is None and not task.hub_id):
        return error.messages[0].partition("; ")[0]
    if data is None:
        return f"{name}: {task.hub_id} is not in the local cache, and the hub clients are set to offline"
    if not any(next(data.glob(f"{above}{task.folder}"), None) for above in ("", "*/", "*/*/")):
        return f"{name}{_NO_FOLDER}{task.folder} in {data}"
    return error.messages[0].partition("; ")[0]


def by_reason(missing: Mapping[str, str]) -> Iterator[str]:
    """Yield one line per reason why tasks are missing, with the tasks' names."""
    names = grouped((reason.removeprefix(f"{name}: "), name) for name, reason in missing.items())
    for reason, alike in names.items():
        is_named = missing[alike[0]] == reason
        yield reason if is_named else f"{', '.join(alike)}: {reason}"
