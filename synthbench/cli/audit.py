"""`synthbench data audit`: compare intended labels with judgements by an oracle, people or gold scores."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from synthbench.base.errors import UserError
from synthbench.cli.console import console
from synthbench.cli.dataset import Dataset, JsonFile, check_json, found, opened_dataset, write_json
from synthbench.cli.options import Quiet, shown_progress
from synthbench.worlds import NAME, WorldName

if TYPE_CHECKING:
    from synthbench.base.runtime import Progress


def audit(
    dataset: Dataset,
    oracle: Annotated[
        WorldName | None,
        typer.Option(help=f"Let the {NAME}'s grammar judge; it knows only sentences of its own."),
    ] = None,
    write: Annotated[
        Path | None,
        typer.Option(metavar="FILE.csv", help="Write a sheet for people to annotate, blind and shuffled."),
    ] = None,
    read: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE.csv", help="Read an annotated sheet; repeat it for each annotator."),
    ] = None,
    gold: Annotated[
        Path | None,
        typer.Option(metavar="DATASET", help="Let the scores of the same pairs in another data set judge."),
    ] = None,
    sample: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Judge a sample of N items [all]; a triplet has two items."),
    ] = None,
    seed: Annotated[int, typer.Option(metavar="S", help="Seed of the sample and of a sheet's order.")] = 0,
    question: Annotated[
        str | None, typer.Option(metavar="TEXT", help="--write: the question [for pairs: similarity].")
    ] = None,
    labels: Annotated[
        str | None,
        typer.Option(metavar="A,B,...", help="--write: the permitted answers, such as safe,unsafe."),
    ] = None,
    json_file: JsonFile = None,
    force: Annotated[
        bool, typer.Option("--force", help="--write: replace an existing sheet and its answers.")
    ] = False,
    quiet: Quiet = False,
) -> None:
    """Compare a method's intended labels with judgements by an oracle, people or gold scores.

    Give one of --oracle, --write, --read and --gold. The table has the intended labels as columns (scores, or
    positive and negative for triplets) and the judged labels as rows.
    """
    _check_mode({"--oracle": oracle, "--write": write, "--read": read, "--gold": gold})
    _check_options(write, read, {"--question": question, "--labels": labels}, (sample, json_file))
    if sample is not None and gold is not None:
        raise UserError("--sample: does not go with --gold; all its pairs are compared")
    if write is not None:
        _write(dataset, write, (question, labels), (sample, seed), force=force)
        return
    progress = shown_progress(is_quiet=quiet, is_verbose=False)
    _report(dataset, read or [], gold, (sample, seed), json_file, progress)


def _check_mode(judges: Mapping[str, object]) -> None:
    given = [name for name, value in judges.items() if value]
    if len(given) != 1:
        also = f"; given: {', '.join(given)}" if given else ""
        raise UserError(
            f"give one of --oracle {NAME}, --write FILE.csv (a sheet for people to annotate), "
            f"--read FILE.csv (once for each annotator) and --gold DATASET{also}"
        )


def _check_options(
    write: Path | None,
    read: list[Path] | None,
    asked: Mapping[str, str | None],
    rest: tuple[int | None, Path | None],
) -> None:
    """Raise UserError for options that have no effect in the chosen mode."""
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
    from synthbench.data.exchange import check_target

    check_target(file, force=force)
    items = items_of(opened_dataset(found(dataset)[0])).sample(*sampling)
    question = question_of(*asked, items)
    write_sheet(items, question, file, force=force)
    typer.echo(
        f"{file}: {len(items.items):,} to answer with {', '.join(question.labels)}; "
        f"give each annotator a copy, then: synthbench data audit {dataset} --read FILE.csv --read ..."
    )


def _report(
    dataset: Path,
    sheets: list[Path],
    gold: Path | None,
    sampling: tuple[int | None, int],
    json_file: Path | None,
    progress: "Progress",
) -> None:
    from synthbench.auditing.items import items_of
    from synthbench.auditing.quality import POSITIVE
    from synthbench.auditing.report import audit_by_gold, audit_by_oracle, audit_by_people
    from synthbench.auditing.sheets import read_annotations
    from synthbench.reporting.model.audit_section import audit_block
    from synthbench.reporting.model.labels_section import quality_grids, quality_notes
    from synthbench.reporting.model.sections import Block
    from synthbench.reporting.render.terminal import terminal_block

    check_json(json_file)
    path, title = found(dataset)
    opened = opened_dataset(path)
    items = items_of(opened)
    if gold is not None:
        audited = audit_by_gold(opened, opened_dataset(found(gold)[0]), POSITIVE)
    elif sheets:
        audited = audit_by_people(opened, items, read_annotations(sheets, items))
    else:
        audited = audit_by_oracle(opened, items.sample(*sampling), progress)
    write_json(json_file, audited.model_dump(mode="json"))
    console().print(terminal_block(audit_block(title, audited)))
    if audited.quality is not None:
        grids = quality_grids({title: audited.quality})
        console().print(terminal_block(Block("", grids, tuple(quality_notes([audited.quality])))))
