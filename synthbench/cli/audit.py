"""`synthbench data audit`: intended against judged labels, judged by the sandbox's oracle or by people."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from synthbench.cli.console import console
from synthbench.cli.dataset import Dataset, found
from synthbench.errors import UserError

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

    from synthbench.auditing.agreement import Agreement
    from synthbench.auditing.confusion import Confusion, Correlation, Share
    from synthbench.auditing.report import Audit

Oracle = Literal["sandbox"]


def audit(
    dataset: Dataset,
    oracle: Annotated[
        Oracle | None, typer.Option(help="Let the sandbox's grammar judge; it knows its own sentences only.")
    ] = None,
    write: Annotated[
        Path | None,
        typer.Option(metavar="FILE.csv", help="Write a sheet for people to annotate, blind and shuffled."),
    ] = None,
    read: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE.csv", help="Read an annotated sheet; once for each annotator."),
    ] = None,
    sample: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Judge N at random; a triplet has two to judge. Default: all."),
    ] = None,
    seed: Annotated[int, typer.Option(metavar="S", help="Decides which N, and a sheet's order.")] = 0,
    question: Annotated[
        str | None, typer.Option(metavar="TEXT", help="--write: what to ask. Default, of pairs: similarity.")
    ] = None,
    labels: Annotated[
        str | None,
        typer.Option(metavar="A,B,...", help="--write: what may be answered, such as safe,unsafe."),
    ] = None,
    json_file: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Also write the figures here.")
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="--write: replace the sheet that is there, and its answers.")
    ] = False,
) -> None:
    """Hold what a method intended against what its texts say.

    Give one of --oracle, --write and --read. The table's columns are the intended labels (scores, or positive
    and negative beside the anchor), its rows the judged ones.
    """
    _check_mode(oracle, write, read)
    _check_options(write, read, {"--question": question, "--labels": labels}, (sample, json_file))
    if write is not None:
        _write(dataset, write, (question, labels), (sample, seed), force=force)
        return
    _report(dataset, read or [], (sample, seed), json_file)


def _check_mode(oracle: Oracle | None, write: Path | None, read: list[Path] | None) -> None:
    given = [name for name, value in (("--oracle", oracle), ("--write", write), ("--read", read)) if value]
    if len(given) != 1:
        also = f"; given: {', '.join(given)}" if given else ""
        raise UserError(
            "give one of --oracle sandbox, --write FILE.csv (a sheet for people to annotate) and "
            f"--read FILE.csv (once for each annotator){also}"
        )


def _check_options(
    write: Path | None,
    read: list[Path] | None,
    asked: Mapping[str, str | None],
    rest: tuple[int | None, Path | None],
) -> None:
    """Refuse options that would do nothing."""
    sample, json_file = rest
    for name, value in asked.items():
        if value is not None and write is None:
            raise UserError(f"{name}: only goes with --write; a sheet that is read holds its own")
    if sample is not None and read:
        raise UserError("--sample: does not go with --read; the sheets say which items were drawn")
    if json_file is not None and write is not None:
        raise UserError("--json: does not go with --write; there are no figures yet")


def _write(
    dataset: Path,
    file: Path,
    asked: tuple[str | None, str | None],
    sampling: tuple[int | None, int],
    *,
    force: bool,
) -> None:
    from synthbench.auditing.items import items_of
    from synthbench.auditing.sheets import question_of, write_sheet
    from synthbench.data.exchange import check_target, open_dataset

    check_target(file, force=force)
    items = items_of(open_dataset(found(dataset)[0])).sample(*sampling)
    question = question_of(*asked, items)
    write_sheet(items, question, file, force=force)
    typer.echo(
        f"{file}: {len(items.items):,} to answer with {', '.join(question.labels)}; "
        f"give each annotator a copy, then: synthbench data audit {dataset} --read FILE.csv --read ..."
    )


def _report(
    dataset: Path, sheets: list[Path], sampling: tuple[int | None, int], json_file: Path | None
) -> None:
    from synthbench.auditing.annotations import read_annotations
    from synthbench.auditing.items import items_of
    from synthbench.auditing.report import audit_by_oracle, audit_by_people
    from synthbench.data.exchange import check_target, open_dataset, replacing
    from synthbench.pipeline.progress import progress_for_people

    if json_file is not None:
        check_target(json_file, force=True)
    path, title = found(dataset)
    opened = open_dataset(path)
    items = items_of(opened)
    if sheets:
        audited = audit_by_people(opened, items, read_annotations(sheets, items))
    else:
        audited = audit_by_oracle(opened, items.sample(*sampling), progress_for_people())
    if json_file is not None:
        with replacing(json_file, force=True) as temporary:
            temporary.write_text(audited.model_dump_json(indent=1) + "\n", encoding="utf-8")
    _print(title, audited)


def _print(title: str, audited: "Audit") -> None:
    shown = console()
    shown.print(f"{title}: judged (rows) of what was intended (columns)", markup=False, highlight=False)
    shown.print(_confusion(audited))
    if len(audited.by_annotator) > 1:
        shown.print(_by_annotator(audited.by_annotator))
    for line in _lines(audited):
        shown.print(line, markup=False, highlight=False, soft_wrap=True)


def _confusion(audited: "Audit") -> "Table":
    table = confusion_table(audited.confusion)
    if audited.mean_similarity:
        means = (audited.mean_similarity.get(column) for column in audited.confusion.columns)
        table.add_row("mean similarity", *("–" if mean is None else f"{mean:.3f}" for mean in means))
    return table


def confusion_table(confusion: "Confusion") -> "Table":
    """Return the table of a confusion: shares with intervals and counts, and how many were judged."""
    from rich.table import Table
    from rich.text import Text

    table = Table()
    table.add_column("")
    for column in confusion.columns:
        table.add_column(Text(column), justify="right")
    for row in confusion.rows:
        table.add_row(Text(row), *(_cell(confusion.cells[row][column]) for column in confusion.columns))
    table.add_section()
    table.add_row("judged", *(f"{confusion.totals[column]:,}" for column in confusion.columns))
    return table


def _by_annotator(shares: "Mapping[str, Mapping[str, Share]]") -> "Table":
    from rich.table import Table
    from rich.text import Text

    table = Table(title=Text("Answers of each annotator"), title_justify="left")
    table.add_column("")
    for annotator in shares:
        table.add_column(Text(annotator), justify="right")
    table.add_column("mean", justify="right")
    for label in next(iter(shares.values())):
        row = [by_label[label] for by_label in shares.values()]
        mean = sum(each.percent for each in row) / len(row)
        table.add_row(Text(label), *map(_cell, row), f"{mean:.1f}%")
    return table


def _cell(share: "Share") -> "Text":
    from rich.text import Text

    return Text(f"{share.percent:.1f}% [{share.low:.1f}, {share.high:.1f}] ({share.count:,})")


def _lines(audited: "Audit") -> list[str]:
    lines = ["Percent of the column [95% interval] (number)."]
    if audited.question:
        lines.append(f"Asked: {audited.question}")
    lines.append(f"Judged by: {audited.judge}")
    if audited.bands:
        bands = (f"{label} from {low:g}" for label, (low, _) in reversed(audited.bands.items()))
        lines.append(f"True similarity: {', '.join(bands)}")
    if audited.outside:
        sides = (f"{number:,} x {side}" for side, number in audited.outside.items())
        lines.append(f"Outside the grammar: {', '.join(sides)}")
    if audited.correlation is not None:
        lines.append(_correlation(audited.correlation))
    if audited.agreement is not None:
        lines.append(_agreement(audited.agreement))
    if any(audited.missing_answers.values()):
        missing = (f"{name} {number:,}" for name, number in audited.missing_answers.items() if number)
        lines.append(
            f"Missing answers: {', '.join(missing)}; "
            f"answered by nobody and left out: {audited.num_unanswered:,}"
        )
    if audited.num_failures:
        reasons = (f"{reason} {number:,}" for reason, number in audited.failures.items())
        lines.append(
            f"Failures, which have no text to judge: {audited.num_failures:,} ({', '.join(reasons)})"
        )
    return lines


def _correlation(found: "Correlation") -> str:
    interval = "" if found.low is None else f" [{found.low:.3f}, {found.high:.3f}]"
    return (
        f"Rank correlation (Spearman) of intended score and judgement: {found.value:.3f}{interval}, "
        f"{found.num_pairs:,} pairs"
    )


def _agreement(found: "Agreement") -> str:
    values = {
        "equal answers": None if found.raw is None else f"{found.raw:.1%}",
        "Cohen's kappa": None if found.cohen_kappa is None else f"{found.cohen_kappa:.3f}",
        "Krippendorff's alpha": (
            None if found.krippendorff_alpha is None else f"{found.krippendorff_alpha:.3f}"
        ),
    }
    if found.num_annotators != 2:
        del values["Cohen's kappa"]
    told = (f"{name} {value or 'undefined'}" for name, value in values.items())
    return f"Agreement of {found.num_annotators} annotators on {found.num_items:,}: {', '.join(told)}"
