"""`synthbench evaluate`: one model on the tasks of a suite, without any experiment."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from synthbench.errors import UserError, did_you_mean

if TYPE_CHECKING:
    from synthbench.data.dataset import SyntheticDataset
    from synthbench.plugins import Evaluation
    from synthbench.runtime import Progress, Runtime

SUITES = {"sts": ("STS12", "STS13", "STS14", "STS15", "STS16", "STSb", "SICK-R")}


def evaluate(
    model: Annotated[
        str, typer.Argument(help="hub id, folder, package:module/path, or a folder that an experiment kept")
    ],
    suite: Annotated[str, typer.Option(help=f"which tasks: {', '.join(SUITES)}")] = "sts",
    data: Annotated[
        Path | None, typer.Option(envvar="SYNTHBENCH_DATA", help="folder with the tasks' data")
    ] = None,
    json_file: Annotated[Path | None, typer.Option("--json", help="write all scores here")] = None,
    revision: Annotated[str | None, typer.Option(help="full commit hash of a hub model")] = None,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:1, mps")] = "auto",
    threads: Annotated[int | None, typer.Option(min=1, help="CPU threads; all cores if not given")] = None,
    batch_tokens: Annotated[int, typer.Option(min=16, help="tokens in one batch")] = 4096,
) -> None:
    """Score a model on the test sets of a suite that are found in the data folder."""
    from synthbench.models import loading
    from synthbench.pipeline.progress import progress_for_people
    from synthbench.runtime import Runtime

    runtime = Runtime(device=device, threads=threads, batch_tokens=batch_tokens)
    if json_file is not None and not json_file.absolute().parent.is_dir():
        raise UserError(f"--json {json_file}: no folder {json_file.absolute().parent}")
    progress = progress_for_people()
    identity = loading.fingerprint(model, revision)
    tasks, missing = find_tasks(suite, data)
    for name, reason in missing.items():
        progress.say(f"not evaluated: {reason if reason.startswith(name) else f'{name}: {reason}'}")
    evaluations = _evaluate(model, revision, tasks, (runtime, progress))
    _print_table(evaluations)
    if json_file is not None:
        _write_json(json_file, _report({"model": model, **_versions()}, identity, evaluations, missing))


def find_tasks(suite: str, data: Path | None) -> tuple[Mapping[str, "SyntheticDataset"], Mapping[str, str]]:
    """Return the suite's test sets that stand in the folder `data`, and why the others don't, by task.

    Raises UserError if the suite is unknown, none of its tasks is found, or one that is found is faulty.
    """
    from synthbench.sources.models import TaskSource
    from synthbench.sources.places import Places

    if suite not in SUITES:
        raise UserError(f"unknown suite '{suite}'{did_you_mean(suite, SUITES)}")
    if data is None:
        raise UserError("no data folder given: set --data DIR or the environment variable SYNTHBENCH_DATA")
    if not data.is_dir():
        raise UserError(f"--data {data}: no such folder")
    places = Places(data=data, origin="folder", base=Path.cwd())
    tasks, missing = {}, {}
    for name in SUITES[suite]:
        source = TaskSource.model_validate({"task": name, "split": "test"})
        try:
            source.fingerprint(places)
        except UserError as error:
            missing[name] = str(error)
            continue
        tasks[name] = source.load(places)
    if not tasks:
        raise UserError(f"--data {data}: none of the tasks of '{suite}' is there", *missing.values())
    return tasks, missing


def _evaluate(
    model: str,
    revision: str | None,
    tasks: Mapping[str, "SyntheticDataset"],
    how: "tuple[Runtime, Progress]",
) -> Mapping[str, "Evaluation"]:
    """Load the model and score all tasks; every sentence is encoded once."""
    from synthbench.models.device import use_threads
    from synthbench.models.encoder import pair_scorer
    from synthbench.models.loading import open_model
    from synthbench.plugins import component

    use_threads(how[0])
    evaluator = component("evaluators", "sts")()
    texts = (text for task in tasks.values() for text in evaluator.texts(task))
    scorer = pair_scorer(open_model(model, revision, *how), texts)
    return {name: evaluator.evaluate(scorer, task) for name, task in tasks.items()}


def _print_table(evaluations: Mapping[str, "Evaluation"]) -> None:
    from rich.console import Console
    from rich.table import Table

    columns = ("spearman_all", "spearman_mean", "spearman_wmean", "pearson_all")
    table = Table("task", "pairs", *(name.replace("_", " ") for name in columns), caption="x 100")
    for column in table.columns[1:]:
        column.justify = "right"
    for task, evaluation in evaluations.items():
        values = [f"{100 * evaluation.scores[name]:.2f}" for name in columns]
        table.add_row(task, f"{evaluation.num_items:,}", *values)
    Console().print(table)


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
