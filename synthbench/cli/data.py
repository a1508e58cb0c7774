"""`synthbench data`: export, import and convert data sets."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from synthbench.base.errors import UserError
from synthbench.cli.audit import audit
from synthbench.cli.contamination import contamination
from synthbench.cli.dataset import (
    Dataset,
    Kind,
    ReadingOptions,
    found,
    opened_dataset,
)
from synthbench.cli.inspecting import inspect_dataset
from synthbench.cli.options import taking

if TYPE_CHECKING:
    from synthbench.data.dataset import SyntheticDataset

app = typer.Typer(no_args_is_help=True)
app.command("inspect")(inspect_dataset)
app.command("audit")(audit)
app.command("contamination")(contamination)

Folder = Annotated[Path, typer.Argument(metavar="FOLDER", help="The new data set's folder.")]
PASSAGES_HELP = "beir: all passages to search in, or the folder of their documents [those with a question]."
Force = Annotated[bool, typer.Option("--force", help="Replace an existing file or folder.")]


@app.command("export")
def export(
    dataset: Dataset,
    target: Annotated[
        Path,
        typer.Argument(metavar="TARGET", help="The file (jsonl, csv ...) or folder (huggingface) to write."),
    ],
    export_format: Annotated[
        str | None,
        typer.Option(
            "--format",
            metavar="NAME",
            help="jsonl, csv, huggingface, beir or an importer's format [.jsonl or .csv by TARGET's name].",
        ),
    ] = None,
    provenance: Annotated[
        bool,
        typer.Option(
            "--provenance",
            help="huggingface: all columns (id, method, generator ...), not only those of training.",
        ),
    ] = False,
    passages: Annotated[Path | None, typer.Option(metavar="DATASET", help=PASSAGES_HELP)] = None,
    force: Force = False,
) -> None:
    """Write a data set as JSONL, CSV, a Hugging Face data set, or in a format that `list importers` shows.

    `--format beir` turns pairs of a question and its passage into a retrieval test set (docs/documents.md).
    """
    from synthbench.data.beir import BEIR, write_retrieval_task
    from synthbench.data.exchange import ExportFormat, check_name, export_dataset, num_formulas, replacing
    from synthbench.data.training_columns import TrainingColumns
    from synthbench.sources.formats import importer

    if export_format is None and target.suffix not in (".jsonl", ".csv"):
        names = "jsonl, csv, huggingface, beir or one of `synthbench list importers`"
        raise UserError(f"{target}: say what to write: --format {names}")
    chosen = export_format or target.suffix.removeprefix(".")
    if passages is not None and chosen != BEIR:
        raise UserError(f"--passages: belongs to --format {BEIR}")
    writer = None if chosen in (*ExportFormat, BEIR) else importer(chosen)
    opened = opened_dataset(found(dataset)[0])
    if chosen == BEIR:
        corpus = opened if passages is None else _passages(passages)
        write_retrieval_task(opened, corpus, target, force=force)
    elif writer is None:
        export_dataset(opened, target, ExportFormat(chosen), provenance=provenance, force=force)
    else:
        check_name(target, chosen, writer.suffix.removeprefix("."))
        with replacing(target, force=force) as temporary:
            writer.write(opened, temporary)
    _say_written(opened, target)
    if chosen == ExportFormat.CSV and (number := num_formulas(opened)):
        typer.echo(
            f"note: {number:,} cells begin as formulas do, and are written as they are: a spreadsheet would"
            " compute them, so let it read the columns as text"
        )
    if chosen == ExportFormat.HUGGINGFACE and not provenance:
        for name in TrainingColumns.of(opened).left_out:
            typer.echo(f"left out: {name}, since not all records have as many; --provenance writes them, too")


@app.command("import")
@taking(ReadingOptions)
def import_(
    reading: ReadingOptions,
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="A .jsonl, or a .csv or .tsv with a header line; UTF-8.")
    ],
    target: Folder,
    kind: Annotated[
        Kind | None, typer.Option(help="The kind of record in each row [decided by the columns].")
    ] = None,
    file_format: Annotated[
        str | None,
        typer.Option("--format", metavar="NAME", help="Another program's format, from `list importers`."),
    ] = None,
    force: Force = False,
) -> None:
    """Check a file of records and make a data set of it.

    Columns: sentence1, sentence2 and score in [0, 1]; anchor and positive, optionally negative; query,
    candidates and grades in [0, 1] (both lists, in .csv and .tsv as JSON); or sentence. Every faulty line is
    reported. For other column names, score ranges and class labels use --column, --score-range and --score.
    With one of these options, FILE may also be a .parquet. --kind sentence also reads a .txt, a sentence per
    line. An experiment can read the same files directly (`file:`).
    """
    from synthbench.data.exchange import check_target, write_folder
    from synthbench.data.importing import import_file
    from synthbench.data.records import RecordKind
    from synthbench.sources.formats import format_hint, import_in_format

    check_target(target, force=force)
    wanted = RecordKind(kind) if kind else None
    if file_format is not None:
        if reading.columns or reading.score_range or reading.skip_blank:
            raise UserError(f"--format {file_format} knows its columns; give --score alone")
        imported = import_in_format(file, file_format, wanted, reading.class_scores())
    else:
        is_list = file.suffix == ".txt" and kind == "sentence"
        imported = reading.read(file, kind) if reading or is_list else import_file(file, wanted, format_hint)
    write_folder(imported, target, force=force)
    for reason, count in imported.manifest.dropped.items():
        typer.echo(f"left out: {count:,} ({reason})")
    _say_written(imported, target)


@app.command("convert")
def convert_dataset(
    dataset: Dataset,
    target: Folder,
    to: Annotated[Kind, typer.Option("--to", help="The new kind of record.")],
    high: Annotated[float, typer.Option(help="From scored pairs: least score of a positive.")] = 0.9,
    low: Annotated[float, typer.Option(help="From scored pairs: highest score of a hard negative.")] = 0.1,
    force: Force = False,
) -> None:
    """Convert records to another kind, such as triplets to pairs or scored pairs to triplets.

    Prints what is lost in the conversion.
    """
    from synthbench.data.conversions import convert
    from synthbench.data.exchange import check_target, write_folder
    from synthbench.data.records import RecordKind

    check_target(target, force=force)
    converted = convert(opened_dataset(found(dataset)[0]), RecordKind(to), high=high, low=low)
    write_folder(converted, target, force=force)
    for note in converted.manifest.notes[-1:]:
        typer.echo(note)
    _say_written(converted, target)


def _passages(path: Path) -> "SyntheticDataset":
    """Read a data set of passages, or cut documents into passages of the default size."""
    from synthbench.data.manifest import MANIFEST_FILE
    from synthbench.sources.description import Roots
    from synthbench.sources.documents import MARKDOWN, PDF, DocumentsSource

    is_document = path.suffix.lower() in (*MARKDOWN, *PDF)
    if is_document or (path.is_dir() and not (path / MANIFEST_FILE).is_file()):
        return DocumentsSource(documents=str(path)).load(Roots())
    return opened_dataset(found(path)[0])


def _say_written(dataset: "SyntheticDataset", target: Path) -> None:
    typer.echo(f"{target}: {len(dataset):,} {dataset.kind} records")
