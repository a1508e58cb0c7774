"""`synthbench evaluate`: one model on the tasks of a suite, without any experiment."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from synthbench.cli.console import console
from synthbench.errors import UserError, did_you_mean

if TYPE_CHECKING:
    from synthbench.data.dataset import SyntheticDataset
    from synthbench.plugins import Evaluation, Evaluator
    from synthbench.runtime import Progress, Runtime
    from synthbench.sources.models import Source
    from synthbench.sources.tasks import TaskName

Origin = Literal["folder", "hub"]


@dataclass(frozen=True)
class Suite:
    """Test sets and their evaluator: standard tasks, and files found in the data folder's `files`.

    Sets of scored pairs may have an evaluator of their own, `of_pairs`. Printed are `counts`, title -> score
    or num_items, and `columns`, title -> score between 0 and 1, empty where a task has no such score.
    """

    evaluator: str
    tasks: "tuple[TaskName, ...]"
    counts: Mapping[str, str]
    columns: Mapping[str, str]
    needs: str
    files: str = ""
    of_pairs: str = ""


SUITES = {
    "sts": Suite(
        evaluator="sts",
        tasks=("STS12", "STS13", "STS14", "STS15", "STS16", "STSb", "SICK-R"),
        counts={"pairs": "num_items"},
        columns={
            "spearman all": "spearman_all",
            "spearman mean": "spearman_mean",
            "spearman wmean": "spearman_wmean",
            "pearson all": "pearson_all",
        },
        needs="SentEval's folders",
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


def evaluate(
    model: Annotated[
        str,
        typer.Argument(
            metavar="MODEL", help="Hub id, folder, package:module/path, or a model's folder in the store."
        ),
    ],
    suite: Annotated[str, typer.Option(metavar="NAME", help=f"Which tasks: {', '.join(SUITES)}.")] = "sts",
    data: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            envvar="SYNTHBENCH_DATA",
            help="Folder with SentEval's tasks, or with reranking/*.jsonl.",
        ),
    ] = None,
    origin: Annotated[
        Origin, typer.Option(help="Read the tasks from --data, or from the Hugging Face hub.")
    ] = "folder",
    json_file: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Write all scores here, of subsets too.")
    ] = None,
    revision: Annotated[
        str | None, typer.Option(metavar="COMMIT", help="Full commit hash of a hub model.")
    ] = None,
    device: Annotated[str, typer.Option(metavar="NAME", help="auto, cpu, cuda, cuda:1, mps.")] = "auto",
    threads: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="CPU threads; all cores if not given.")
    ] = None,
    batch_tokens: Annotated[int, typer.Option(metavar="N", min=16, help="Tokens in one batch.")] = 4096,
) -> None:
    """Score any encoder or cross-encoder on the test sets of a suite, without an experiment.

    Test sets that are not found are named and left out.
    """
    from synthbench.models import loading
    from synthbench.pipeline.progress import progress_for_people
    from synthbench.runtime import Runtime

    runtime = Runtime(device=device, threads=threads, batch_tokens=batch_tokens)
    if json_file is not None and not json_file.absolute().parent.is_dir():
        raise UserError(f"--json {json_file}: no folder {json_file.absolute().parent}")
    progress = progress_for_people()
    identity = loading.fingerprint(model, revision)
    tasks, missing = find_tasks(suite, data, origin)
    for reason in missing.values():
        progress.say(f"not evaluated: {reason}")
    if origin == "hub" and suite == "sts":
        progress.say("subsets are not known on the hub: mean and wmean are those over all pairs")
    evaluations = _evaluate(model, revision, (suite, tasks), (runtime, progress))
    _print_table(SUITES[suite], evaluations)
    if json_file is not None:
        _write_json(json_file, _report({"model": model, **_versions()}, identity, evaluations, missing))


def find_tasks(
    suite: str, data: Path | None, origin: Origin = "folder"
) -> tuple[Mapping[str, "SyntheticDataset"], Mapping[str, str]]:
    """Return the suite's test sets that are in the folder `data` or on the hub, and why the others aren't.

    Raises UserError if the suite is unknown, none of its tasks is found, or one that is found is faulty.
    """
    from synthbench.data.learning import with_learning
    from synthbench.sources.places import Places

    if suite not in SUITES:
        raise UserError(f"unknown suite '{suite}'{did_you_mean(suite, SUITES)}")
    if origin == "folder":
        _check_folder(SUITES[suite], data)
    places = Places(data=data, origin=origin, base=Path.cwd())
    tasks: dict[str, SyntheticDataset] = {}
    missing: dict[str, str] = {}
    for name, source in _sources(SUITES[suite], data if origin == "folder" else None):
        learning = _learning(SUITES[suite], source)
        try:
            for each in (source, *learning.values()):
                each.fingerprint(places)
        except UserError as error:
            missing[name] = _absence(name, data if origin == "folder" else None, error)
            continue
        tasks[name] = source.load(places)
        if learning:
            learnt = ((split, each.load(places)) for split, each in learning.items())
            tasks[name] = with_learning(tasks[name], learnt)
    if not tasks:
        where, instead = (f"--data {data}", "--origin hub takes them from the Hugging Face hub")
        if origin == "hub":
            where, instead = ("--origin hub", f"--data DIR takes them from {SUITES[suite].needs}")
        raise UserError(f"{where}: none of the tasks of '{suite}' is there; {instead}", *missing.values())
    return tasks, missing


def _sources(suite: Suite, data: Path | None) -> "Iterator[tuple[str, Source]]":
    """Yield the suite's test sets by name: its tasks, and other files that the data folder holds for it."""
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
    """Return what the suite's evaluator learns from, of a task that has it: split -> source."""
    from synthbench.plugins import component
    from synthbench.sources.models import TaskSource
    from synthbench.sources.tasks import TASKS

    if not isinstance(source, TaskSource):
        return {}
    splits = component("evaluators", suite.evaluator).learns_from
    known = TASKS[source.task].parts
    return {split: source.model_copy(update={"split": split}) for split in splits if split in known}


def _check_folder(suite: Suite, data: Path | None) -> None:
    if data is None:
        raise UserError(
            f"no data folder given: --data DIR or SYNTHBENCH_DATA names {suite.needs}, "
            "--origin hub needs none"
        )
    if not data.is_dir():
        raise UserError(f"--data {data}: no such folder")


def _absence(name: str, data: Path | None, error: UserError) -> str:
    """Say in short that a task is missing: what a source's error advises is meant for experiment files."""
    from synthbench.sources.tasks import TASKS

    task = TASKS[name]
    if data is None and not task.hub_id:
        return error.messages[0].partition("; ")[0]
    if data is None:
        return f"{name}: {task.hub_id} is not in the local cache, and the hub clients are set to offline"
    if not any(next(data.glob(f"{above}{task.folder}"), None) for above in ("", "*/", "*/*/")):
        return f"{name}: no folder {task.folder} in {data}"
    return error.messages[0].partition("; ")[0]


def _evaluate(
    model: str,
    revision: str | None,
    what: "tuple[str, Mapping[str, SyntheticDataset]]",
    how: "tuple[Runtime, Progress]",
) -> Mapping[str, "Evaluation"]:
    """Load the model and score all tasks of the suite; every sentence is encoded once."""
    from synthbench.models.device import use_threads
    from synthbench.models.encoder import CachingEncoder, CosineScorer
    from synthbench.models.interfaces import Encoder
    from synthbench.models.loading import open_model

    use_threads(how[0])
    suite, tasks = what
    evaluators = {name: _evaluator(SUITES[suite], task) for name, task in tasks.items()}
    opened = open_model(model, revision, *how)
    if not isinstance(opened, Encoder):
        if any(evaluator.needs_encoder for evaluator in evaluators.values()):
            raise UserError(f"suite '{suite}' needs an encoder, {model} scores pairs only")
        return {name: evaluator.evaluate(opened, tasks[name]) for name, evaluator in evaluators.items()}
    encoder = CachingEncoder(opened)
    encoder.encode([text for name, evaluator in evaluators.items() for text in evaluator.texts(tasks[name])])
    return {
        name: evaluator.evaluate(encoder if evaluator.needs_encoder else CosineScorer(encoder), tasks[name])
        for name, evaluator in evaluators.items()
    }


def _evaluator(suite: Suite, task: "SyntheticDataset") -> "Evaluator":
    from synthbench.data.records import RecordKind
    from synthbench.plugins import component

    is_of_pairs = task.kind == RecordKind.SCORED_PAIR
    made: Evaluator = component("evaluators", (is_of_pairs and suite.of_pairs) or suite.evaluator)()
    return made


def _print_table(suite: Suite, evaluations: Mapping[str, "Evaluation"]) -> None:
    from rich.table import Table

    table = Table("task", *suite.counts, *suite.columns, caption="scores x 100")
    table.columns[0].overflow = "fold"
    for column in table.columns[1:]:
        column.justify = "right"
    for task, evaluation in evaluations.items():
        known = {"num_items": evaluation.num_items, **evaluation.scores}
        counts = [f"{known[name]:,.0f}" for name in suite.counts.values()]
        scores = (f"{100 * known[name]:.2f}" if name in known else "" for name in suite.columns.values())
        table.add_row(task, *counts, *scores)
    console().print(table)


def _report(
    about: Mapping[str, str],
    identity: Mapping[str, str],
    evaluations: Mapping[str, "Evaluation"],
    missing: Mapping[str, str],
) -> dict[str, Any]:
    scored = {
        name: {
            "num_items": evaluation.num_items,
            "main_score": evaluation.main_score,
            "scores": dict(evaluation.scores),
        }
        for name, evaluation in evaluations.items()
    }
    return {**about, "fingerprint": dict(identity), "tasks": scored, "not_evaluated": dict(missing)}


def _versions() -> dict[str, str]:
    from importlib.metadata import version

    return {name: version(name) for name in ("synthbench", "sentence-transformers", "transformers", "torch")}


def _write_json(path: Path, report: Mapping[str, Any]) -> None:
    temporary = path.with_name(f"{path.name}.partial")
    temporary.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    temporary.replace(path)
