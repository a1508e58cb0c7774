"""`synthbench evaluate`: score one model on the tasks of a suite, without an experiment."""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Annotated, Any

import typer

from synthbench.base.errors import UserError
from synthbench.base.home import home
from synthbench.cli.console import print_table
from synthbench.cli.options import Quiet, check_code_of, shown_progress
from synthbench.cli.own_suites import find_provided_tasks, is_own, print_own_table
from synthbench.cli.suites import SUITES, Origin, Suite, by_reason, find_tasks
from synthbench.models.precision import Precision

if TYPE_CHECKING:
    from synthbench.base.runtime import Progress, Runtime
    from synthbench.data.dataset import SyntheticDataset
    from synthbench.models.encoder import StoredVectors
    from synthbench.models.interfaces import Encoder, PairScorer
    from synthbench.plugins.contracts import Evaluation, Evaluator

SuiteName = Annotated[
    str,
    typer.Option(metavar="NAME", help=f"The tasks: {', '.join(SUITES)}, or mteb:TASK and mteb:BENCHMARK."),
]
JsonFile = Annotated[
    Path | None,
    typer.Option("--json", metavar="FILE", help="Also write all scores here, including subsets'."),
]
GivenPrecision = Annotated[
    Precision | None,
    typer.Option(help="Precision of encoding and scoring [the model's own, else fp32]."),
]


def evaluate(
    model: Annotated[
        str,
        typer.Argument(
            metavar="MODEL", help="Hub id, folder, package:module/path, or a model's folder in the store."
        ),
    ],
    suite: SuiteName = "sts",
    data: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            envvar="SYNTHBENCH_DATA",
            help="Folder with SentEval's tasks, reranking/*.jsonl, or mteb/TASK.",
        ),
    ] = None,
    origin: Annotated[
        Origin | None,
        typer.Option(
            help="Read the tasks from --data or the Hugging Face hub [folder with --data, else hub]."
        ),
    ] = None,
    json_file: JsonFile = None,
    revision: Annotated[
        str | None, typer.Option(metavar="COMMIT", help="Full commit hash of a hub model.")
    ] = None,
    device: Annotated[str, typer.Option(metavar="NAME", help="auto, cpu, cuda, cuda:1, mps.")] = "auto",
    threads: Annotated[int | None, typer.Option(metavar="N", min=1, help="CPU threads [all cores].")] = None,
    batch_tokens: Annotated[int, typer.Option(metavar="N", min=16, help="Tokens in one batch.")] = 4096,
    precision: GivenPrecision = None,
    quiet: Quiet = False,
) -> None:
    """Score any encoder or cross-encoder on the test sets of a suite, without an experiment.

    Missing test sets are named and left out.
    """
    from synthbench.base.runtime import Runtime
    from synthbench.models.artifact import model_fingerprint

    runtime = Runtime(device=device, threads=threads, batch_tokens=batch_tokens)
    _check_folder_of(json_file)
    progress = shown_progress(is_quiet=quiet, is_verbose=False)
    check_code_of(model)
    _check_precision(precision, runtime)
    identity = model_fingerprint(model, revision)
    rounded = {"precision": precision} if precision else {}
    origin = origin or ("hub" if data is None else "folder")
    tasks, missing, evaluators = _found(suite, data, origin)
    _say_what_is_missing(missing, origin, suite, progress)
    with _saved_vectors(suite, {**identity, **rounded}, progress) as kept:
        opened = _open((model, revision), suite, evaluators, kept, (runtime, progress, precision))
        evaluations = _evaluate(opened, evaluators, tasks, progress)
    settings = {key: value for each in evaluators.values() for key, value in each.model_dump().items()}
    _print_table(suite, evaluations, settings)
    if json_file is not None:
        average = None if is_own(suite) else _average(SUITES[suite], evaluations)
        about = {"model": model, **rounded, **_versions(), "settings": settings, "average": average}
        _write_json(json_file, _report(about, identity, evaluations, missing))


def _check_folder_of(json_file: Path | None) -> None:
    if json_file is not None and not json_file.absolute().parent.is_dir():
        raise UserError(f"--json {json_file}: no folder {json_file.absolute().parent}")


def _say_what_is_missing(
    missing: Mapping[str, str], origin: Origin, suite: str, progress: "Progress"
) -> None:
    """Name the missing test sets, and what is unknown about the others."""
    for reason in by_reason(missing):
        progress.say(f"not evaluated: {reason}")
    if origin == "hub" and suite == "sts":
        progress.say("subsets are not known on the hub: mean and wmean are those over all pairs")


def _check_precision(precision: Precision | None, runtime: "Runtime") -> None:
    """Raise UserError if the device can't compute in the requested precision."""
    if precision is not None:
        import torch

        from synthbench.base.runtime import device_name
        from synthbench.models.precision import check_precision

        check_precision(precision, torch.device(device_name(runtime)), "--precision")


def _found(
    suite: str, data: Path | None, origin: Origin
) -> "tuple[Mapping[str, SyntheticDataset], Mapping[str, str], Mapping[str, Evaluator]]":
    """Return the test sets found, why others are missing, and the evaluator of each."""
    if is_own(suite):
        provider, own = find_provided_tasks(suite, data, origin)
        return own, {}, dict.fromkeys(own, provider)
    tasks, missing = find_tasks(suite, data, origin)
    return tasks, missing, {name: _evaluator(SUITES[suite], task) for name, task in tasks.items()}


@contextmanager
def _saved_vectors(
    suite: str, identity: Mapping[str, str], progress: "Progress"
) -> "Iterator[StoredVectors | None]":
    """Yield the vectors that a stopped evaluation saved; remove them once this one has ended.

    Yields None if another process runs the same evaluation, or the folder can't be written to.
    """
    from synthbench.engine.leases import StageBusyError
    from synthbench.engine.store import Store, disk_errors
    from synthbench.models.encoder import StoredVectors

    store = Store(home() / "store")
    what = hashlib.sha256(json.dumps(["evaluate", suite, dict(identity)]).encode()).hexdigest()
    with ExitStack() as held:
        try:
            held.enter_context(store.locks.stage(what, f"evaluate --suite {suite}"))
        except (StageBusyError, OSError) as error:
            progress.say(f"embeddings are not kept, an evaluation that is stopped begins anew: {error}")
            yield None
            return
        held.enter_context(disk_errors(store.root))
        yield StoredVectors(store.workspace(what) / "checkpoints", what, progress=progress)
        store.unfinished.forget(what)


def _open(
    model: tuple[str, str | None],
    suite: str,
    evaluators: "Mapping[str, Evaluator]",
    kept: "StoredVectors | None",
    how: "tuple[Runtime, Progress, Precision | None]",
) -> "Encoder | PairScorer":
    """Load a model by name and revision; raises UserError if the suite can't use it."""
    from synthbench.base.runtime import use_threads
    from synthbench.models.artifact import open_model
    from synthbench.models.encoder import CachingEncoder, resumable
    from synthbench.models.interfaces import Encoder

    runtime, progress, precision = how
    use_threads(runtime)
    opened = open_model(*model, runtime, progress, precision)
    if isinstance(opened, Encoder):
        return CachingEncoder(opened) if kept is None else resumable(opened, kept)
    if any(evaluator.needs_encoder for evaluator in evaluators.values()):
        raise UserError(f"suite '{suite}' needs an encoder, {model[0]} scores pairs only")
    return opened


def _evaluate(
    model: "Encoder | PairScorer",
    evaluators: "Mapping[str, Evaluator]",
    tasks: "Mapping[str, SyntheticDataset]",
    progress: "Progress",
) -> "Mapping[str, Evaluation]":
    """Score all tasks of the suite, encoding every sentence once."""
    from synthbench.models.interfaces import Encoder
    from synthbench.models.pair_scorer import CosineScorer

    scorer: PairScorer
    if isinstance(model, Encoder):
        model.encode(
            [text for name, evaluator in evaluators.items() for text in evaluator.texts(tasks[name])]
        )
        scorer = CosineScorer(model)
    else:
        scorer = model
    return {
        name: evaluator.evaluate_with_progress(
            model if evaluator.needs_encoder else scorer, tasks[name], progress
        )
        for name, evaluator in evaluators.items()
    }


def _evaluator(suite: Suite, task: "SyntheticDataset") -> "Evaluator":
    from synthbench.data.records import RecordKind
    from synthbench.plugins.loading import component

    is_of_pairs = task.kind == RecordKind.SCORED_PAIR
    made: Evaluator = component("evaluators", (is_of_pairs and suite.of_pairs) or suite.evaluator)()
    return made


def _print_table(name: str, evaluations: Mapping[str, "Evaluation"], settings: Mapping[str, Any]) -> None:
    if is_own(name):
        print_own_table(evaluations)
        return
    suite = SUITES[name]
    caption = "; ".join(["scores x 100", *(f"{name}: {value}" for name, value in settings.items())])
    lines: list[Sequence[str] | None] = []
    for task, evaluation in evaluations.items():
        known = {"num_items": evaluation.num_items, **evaluation.scores}
        counts = [f"{known[name]:,.0f}" for name in suite.counts.values()]
        scores = (f"{100 * known[name]:.2f}" if name in known else "" for name in suite.columns.values())
        lines.append((task, *counts, *scores))
    if names := suite.average_over(evaluations):
        empty = [""] * len(suite.counts)
        lines += [None, (f"average of {len(names)}", *empty, *_averages(suite, evaluations))]
    print_table(("task", *suite.counts, *suite.columns), lines, caption=caption)


def _averages(suite: Suite, evaluations: Mapping[str, "Evaluation"]) -> Iterator[str]:
    """Yield each column's mean over the averaged tasks; "" if one of them lacks that score."""
    scores = [evaluations[name].scores for name in suite.average_over(evaluations)]
    for column in suite.columns.values():
        values = [each[column] for each in scores if column in each]
        yield f"{100 * fmean(values):.2f}" if len(values) == len(scores) else ""


def _average(suite: Suite, evaluations: Mapping[str, "Evaluation"]) -> dict[str, Any] | None:
    """Return the mean of the main scores and the averaged tasks; None for fewer than two tasks."""
    names = suite.average_over(evaluations)
    scored = [evaluations[name] for name in names]
    main = [each.scores[each.main_score] for each in scored]
    return {"tasks": list(names), "main_score": fmean(main)} if names else None


def _report(
    about: Mapping[str, Any],
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
