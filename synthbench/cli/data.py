"""`synthbench data`: look at data sets, convert them, and carry them to and from other programs."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rich.table import Table

    from synthbench.data.dataset import SyntheticDataset
    from synthbench.data.inspect import Description

MAX_ROWS = 20

app = typer.Typer(no_args_is_help=True, help="Look at data sets, convert, import and export them.")

Kind = Literal["scored_pair", "pair", "triplet", "sentence"]
Format = Literal["jsonl", "csv", "huggingface"]
Dataset = Annotated[
    Path, typer.Argument(metavar="DATASET", help="A data set's folder, or a .jsonl or .csv file.")
]
Force = Annotated[bool, typer.Option("--force", help="Replace the target if it exists.")]


@app.command("inspect")
def inspect_dataset(
    dataset: Dataset,
    json_file: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Write the figures here as well.")
    ] = None,
) -> None:
    """Show what a data set holds: sizes, lengths, scores, repetition, diversity, origin."""
    from rich.console import Console

    from synthbench.data.exchange import open_dataset, replacing
    from synthbench.data.inspect import describe

    description = describe(open_dataset(dataset))
    if json_file is not None:
        with replacing(json_file, force=True) as temporary:
            temporary.write_text(description.model_dump_json(indent=1) + "\n", encoding="utf-8")
    console = Console()
    for table in _tables(dataset, description):
        console.print(table)


@app.command("export")
def export(
    dataset: Dataset,
    target: Annotated[Path, typer.Argument(help="The file (jsonl, csv) or folder (huggingface) to write.")],
    export_format: Annotated[Format, typer.Option("--format", help="What to write.")],
    provenance: Annotated[
        bool,
        typer.Option("--provenance", help="huggingface: also the columns that no loss takes (else always)."),
    ] = False,
    force: Force = False,
) -> None:
    """Write a data set's records for other programs."""
    from synthbench.data.exchange import ExportFormat, export_dataset, open_dataset

    opened = open_dataset(dataset)
    export_dataset(opened, target, ExportFormat(export_format), provenance=provenance, force=force)
    _say_written(opened, target)


@app.command("import")
def import_(
    file: Annotated[Path, typer.Argument(help="A .jsonl or .csv file, UTF-8, CSV with a header line.")],
    target: Annotated[Path, typer.Argument(help="The data set's folder to write.")],
    kind: Annotated[Kind | None, typer.Option(help="Kind of record; else the columns decide.")] = None,
    force: Force = False,
) -> None:
    """Make a data set of a file; all bad lines are named at once."""
    from synthbench.data.exchange import write_folder
    from synthbench.data.importing import import_file
    from synthbench.data.records import RecordKind

    imported = import_file(file, RecordKind(kind) if kind else None)
    write_folder(imported, target, force=force)
    _say_written(imported, target)


@app.command("convert")
def convert_dataset(
    dataset: Dataset,
    target: Annotated[Path, typer.Argument(help="The data set's folder to write.")],
    to: Annotated[Kind, typer.Option("--to", help="Kind of record to make.")],
    high: Annotated[float, typer.Option(help="Scored pairs: the least score of a positive.")] = 0.9,
    low: Annotated[float, typer.Option(help="Scored pairs: the greatest score of a hard negative.")] = 0.1,
    force: Force = False,
) -> None:
    """Turn a data set into records of another kind, and say what that lost."""
    from synthbench.data.conversions import convert
    from synthbench.data.exchange import open_dataset, write_folder
    from synthbench.data.records import RecordKind

    converted = convert(open_dataset(dataset), RecordKind(to), high=high, low=low)
    write_folder(converted, target, force=force)
    for note in converted.manifest.notes[-1:]:
        typer.echo(note)
    _say_written(converted, target)


def _say_written(dataset: "SyntheticDataset", target: Path) -> None:
    typer.echo(f"{target}: {len(dataset):,} {dataset.kind} records")


def _tables(path: Path, description: "Description") -> "list[Table]":
    tables = [_key_figures(path, description), _lengths(description)]
    counts = {
        "score": description.scores,
        "split": description.splits,
        "subset": description.subsets,
        "label": description.labels,
        "method": description.methods,
        "generator": description.generators,
        "instruction": description.instructions,
        "dropped because": description.dropped,
        "failed because": description.failures,
    }
    return tables + [_counted(name, found) for name, found in counts.items() if found]


def _key_figures(path: Path, description: "Description") -> "Table":
    from rich.table import Table
    from rich.text import Text

    each = description
    pairs = {
        "kind": each.kind,
        "records": f"{each.num_records:,}",
        "failures": f"{each.num_failures:,}",
        "distinct sentences": f"{each.num_sentences:,}",
        "identical sentences": f"{each.num_identical:,} ({each.share_identical:.1%})",
        "  but for case, full stop": f"{each.num_nearly_identical:,}",
        "duplicates": f"{each.num_duplicates:,}",
        "  ignoring the order": f"{each.num_unordered_duplicates:,}",
        "distinct-1, distinct-2": f"{each.distinct_1:.3f}, {each.distinct_2:.3f}",
        **{f"revision of {name}": revision for name, revision in each.revisions.items()},
        **{f"tokens, {name}": f"{count:,}" for name, count in each.tokens.items()},
        "cost": f"{each.cost_usd:.2f} US dollars",
        "content": each.content_hash,
        **{f"note {number}": note for number, note in enumerate(each.notes, start=1)},
    }
    table = Table(title=Text(str(path)), show_header=False, title_justify="left")
    for name, value in pairs.items():
        table.add_row(Text(name), Text(value))
    return table


def _lengths(description: "Description") -> "Table":
    from rich.table import Table

    table = Table("words", "min", "median", "mean", "max")
    for column, words in description.words.items():
        table.add_row(
            column, str(words.minimum), f"{words.median:g}", f"{words.mean:.1f}", str(words.maximum)
        )
    return table


def _counted(name: str, counts: "Mapping[str, int]") -> "Table":
    from rich.table import Table
    from rich.text import Text

    table = Table(name, "records")
    table.columns[1].justify = "right"
    for value, count in list(counts.items())[:MAX_ROWS]:
        table.add_row(Text(value), f"{count:,}")
    if len(counts) > MAX_ROWS:
        table.add_row(f"... and {len(counts) - MAX_ROWS} more", "")
    return table
