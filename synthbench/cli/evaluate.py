"""`synthbench evaluate`: score one model on the tasks of a suite, without an experiment."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Annotated, Any

import typer

from synthbench.base.errors import UserError
from synthbench.cli.console import print_table
from synthbench.cli.dataset import check_json, write_json
from synthbench.cli.exports import Destination, DryRun, Public, Push, Yes
from synthbench.cli.options import Quiet, shown_progress
from synthbench.models.precision import Precision
from synthbench.suites.known import SUITES, Origin, Suite
from synthbench.suites.provided import is_own

if TYPE_CHECKING:
    from synthbench.plugins.model_contracts import Evaluation
    from synthbench.suites.scoring import Scored, Scoring

SuiteName = Annotated[
    str,
    typer.Option(metavar="NAME", help=f"The tasks: {', '.join(SUITES)}, or mteb:TASK and mteb:BENCHMARK."),
]
JsonFile = Annotated[
    Path | None,
    typer.Option("--json", metavar="FILE", help="Also write all scores here, with those of subsets."),
]
ScoresTo = Annotated[
    Path | None,
    typer.Option(
        "--to",
        metavar="DIR",
        help="Also write the scores here: results/ in mteb's layout, .eval_results/ for the hub.",
    ),
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
    to: ScoresTo = None,
    push: Push = "",
    public: Public = False,
    dry_run: DryRun = False,
    yes: Yes = False,
    quiet: Quiet = False,
) -> None:
    """Score any encoder or cross-encoder on the test sets of a suite, without an experiment.

    Missing test sets are named and left out. With --to, scores on data that differ from the published task
    are named and not exported.
    """
    from synthbench.base.runtime import Runtime
    from synthbench.suites.scoring import Scoring, score

    check_json(json_file)
    destination = _destination(to, push=push, public=public, dry_run=dry_run, yes=yes)
    runtime = Runtime(device=device, threads=threads, batch_tokens=batch_tokens)
    progress = shown_progress(is_quiet=quiet, is_verbose=False)
    asked = Scoring(model, suite, data, origin, revision, precision)
    scored = score(asked, runtime, progress)
    _print_table(suite, scored.evaluations, scored.settings)
    rounded = {"precision": precision} if precision else {}
    about = {"model": model, **rounded, **_versions(), "settings": scored.settings}
    write_json(json_file, _report({**about, "average": scored.average}, scored))
    if destination is not None:
        destination.fill(lambda folder: _export(asked, scored, push, folder))


def _destination(to: Path | None, **options: Any) -> Destination | None:  # noqa: ANN401
    """Return the destination of the exported scores, None without --to.

    Raises UserError for an unusable destination, and for upload options without --to.
    """
    if to is None:
        if any(options.values()):
            raise UserError(
                "--push, --public, --dry-run and --yes are about exported scores; give --to DIR, too"
            )
        return None
    destination = Destination(kind="model", to=to, force=None, **options)
    destination.check()
    return destination


def _export(asked: "Scoring", scored: "Scored", repository: str, folder: Path) -> None:
    from synthbench.exporting.evaluated import write_evaluation

    for name, reason in write_evaluation(asked, scored, repository, folder).items():
        print(f"not exported: {name}: {reason}", file=sys.stderr)


def _print_table(name: str, evaluations: Mapping[str, "Evaluation"], settings: Mapping[str, Any]) -> None:
    if is_own(name):
        _print_own_table(evaluations)
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
    """Yield each column's mean over the averaged tasks; "" if a task lacks the column's score."""
    scores = [evaluations[name].scores for name in suite.average_over(evaluations)]
    for column in suite.columns.values():
        values = [each[column] for each in scores if column in each]
        yield f"{100 * fmean(values):.2f}" if len(values) == len(scores) else ""


def _report(about: Mapping[str, Any], scored: "Scored") -> dict[str, Any]:
    tasks = {
        name: {
            "num_items": evaluation.num_items,
            "main_score": evaluation.main_score,
            "scores": dict(evaluation.scores),
        }
        for name, evaluation in scored.evaluations.items()
    }
    return {
        **about,
        "fingerprint": dict(scored.fingerprint),
        "tasks": tasks,
        "not_evaluated": dict(scored.missing),
    }


def _versions() -> dict[str, str]:
    from importlib.metadata import version

    return {name: version(name) for name in ("synthbench", "sentence-transformers", "transformers", "torch")}


def _print_own_table(evaluations: Mapping[str, "Evaluation"]) -> None:
    """Print the main score of each task, and their mean if there are several."""
    values = {task: 100 * each.scores[each.main_score] for task, each in evaluations.items()}
    lines = [
        (task, f"{each.num_items:,}", each.main_score, f"{values[task]:.2f}")
        for task, each in evaluations.items()
    ]
    if len(values) > 1:
        lines.append((f"mean of {len(values)} tasks", "", "", f"{fmean(values.values()):.2f}"))
    print_table(("task", "items", "score", "x 100"), lines, words=(0, 2), caption="main scores")
