"""Exchange of data sets with other programs: JSONL, CSV, TSV (read only), Hugging Face `datasets`."""

import csv
import json
import os
import shutil
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from synthbench.base.durability import sync_tree
from synthbench.base.errors import UserError
from synthbench.base.escaping import harmless, markdown_text
from synthbench.base.patterns import linear_pattern
from synthbench.data.dataset import SyntheticDataset
from synthbench.data.importing import import_file, no_hint
from synthbench.data.manifest import MANIFEST_FILE, Manifest
from synthbench.data.records import RecordKind
from synthbench.data.training_columns import TrainingColumns

if TYPE_CHECKING:
    import pyarrow as pa

# A folder with either file was written by synthbench and may be replaced.
_MODULE = linear_pattern(r"^\w++(?>(?:\.\w++)*)\Z")
OUR_FOLDERS = (MANIFEST_FILE, "dataset_dict.json", "lineage.json")


class ExportFormat(StrEnum):
    """Formats for exported data sets."""

    JSONL = "jsonl"
    CSV = "csv"
    HUGGINGFACE = "huggingface"


def export_dataset(
    dataset: SyntheticDataset,
    target: Path,
    export_format: ExportFormat,
    *,
    provenance: bool = False,
    force: bool = False,
) -> None:
    """Write a data set as a JSONL or CSV file with all columns, or as a Hugging Face folder.

    The folder is a DatasetDict by split (`datasets.load_from_disk`) with a dataset card; without `provenance`
    it has only the columns that sentence-transformers' losses take, in their order (see TrainingColumns).
    Raises UserError if the target exists (unless `force`), has another format's ending or can't be written.
    """
    writers: Mapping[ExportFormat, Callable[[SyntheticDataset, Path], None]] = {
        ExportFormat.JSONL: lambda data, file: write_json_lines(file, _rows(data)),
        ExportFormat.CSV: _write_csv,
        ExportFormat.HUGGINGFACE: partial(_write_huggingface, provenance=provenance),
    }
    check_name(target, export_format, export_format)
    with replacing(target, force=force) as temporary:
        writers[export_format](dataset, temporary)


def check_name(target: Path, export_format: str, ending: str) -> None:
    """Raise UserError unless the target's name has the format's ending, uncompressed."""
    if target.suffix == ".gz":
        raise UserError(f"{target}: what is written is not compressed; leave out .gz")
    named = target.suffix.removeprefix(".")
    if named in (*ExportFormat, "tsv") and named != ending:
        raise UserError(f"{target}: the name ends in .{named}, the format is {export_format}")


def write_folder(dataset: SyntheticDataset, target: Path, *, force: bool = False) -> None:
    """Write the data set into a new folder; raises UserError as `export_dataset` does."""
    with replacing(target, force=force) as temporary:
        temporary.mkdir()
        dataset.write(temporary)


def open_dataset(path: Path, hint: Callable[[Collection[str]], str] = no_hint) -> SyntheticDataset:
    """Read a data set's folder, a store artifact with a `dataset/` folder, or a .jsonl, .csv or .tsv file.

    `hint` is as in `import_file`. Raises UserError if the path is none of these, or damaged.
    """
    if not path.exists():
        raise UserError(f"{path}: no such file or folder")
    if not path.is_dir():
        return import_file(path, hint=hint)
    inner = path / "dataset"
    is_artifact = not (path / MANIFEST_FILE).is_file() and (inner / MANIFEST_FILE).is_file()
    return SyntheticDataset.read(inner if is_artifact else path)


@contextmanager
def replacing(target: Path, *, force: bool = False) -> Iterator[Path]:
    """Yield a temporary name beside `target` for a new file or folder; rename it to `target` on success.

    Raises UserError if the target exists and `force` is false, if its parent is missing, or if writing fails.
    Even with `force`, raises it if the target is a non-empty folder not written by synthbench.
    """
    check_target(target, force=force)
    path = target.resolve()
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        try:
            yield temporary
            _swap(temporary, path)
        finally:
            _remove(temporary)
    except OSError as error:
        raise UserError(f"{target}: can't be written: {error.strerror or error}") from error


def check_target(target: Path, *, force: bool = False) -> None:
    """Raise UserError as `replacing` does, before any work."""
    if not target.parent.is_dir():
        raise UserError(f"{target}: the folder {target.parent} does not exist")
    if not target.exists():
        return
    if not force:
        raise UserError(f"{target}: exists already; use --force to replace it")
    is_foreign = target.is_dir() and not any((target / name).is_file() for name in OUR_FOLDERS)
    if is_foreign and any(target.iterdir()):
        raise UserError(
            f"{target}: is a folder that synthbench did not write; --force would delete what is in it"
        )


def _swap(temporary: Path, target: Path) -> None:
    sync_tree(temporary)
    if temporary.is_file() and not target.is_dir():
        temporary.replace(target)
        return
    retired = temporary.with_suffix(".old")
    if target.exists():
        target.rename(retired)
    temporary.rename(target)
    _remove(retired)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _rows(dataset: SyntheticDataset) -> Iterator[dict[str, Any]]:
    for batch in dataset.table.to_batches():
        yield from batch.to_pylist()


def write_json_lines(file: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Write each row as a JSON object on its own line."""
    with file.open("w", encoding="utf-8", newline="\n") as stream:
        stream.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def _write_csv(dataset: SyntheticDataset, file: Path) -> None:
    with file.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\r\n")
        writer.writerow(dataset.table.column_names)
        writer.writerows(map(_csv_cell, row.values()) for row in _rows(dataset))


def num_formulas(dataset: SyntheticDataset) -> int:
    """Count the texts that a spreadsheet would run as formulas; exports leave such texts unchanged."""
    cells = (cell for row in _rows(dataset) for cell in row.values())
    return sum(isinstance(cell, str) and harmless(cell) != cell for cell in cells)


def _csv_cell(value: object) -> object:
    """Return a list as JSON, which imports read back as a list; any other value unchanged."""
    return json.dumps(value, ensure_ascii=False) if isinstance(value, list) else value


def _write_huggingface(dataset: SyntheticDataset, folder: Path, *, provenance: bool) -> None:
    import datasets

    columns = TrainingColumns.of(dataset)
    splits = {
        split: _with_columns(table, columns, provenance=provenance) for split, table in split_tables(dataset)
    }
    names = next(iter(splits.values())).column_names if splits else []
    was_disabled = datasets.are_progress_bars_disabled()
    datasets.disable_progress_bars()
    try:
        tables = {
            split: datasets.Dataset.from_dict({name: table[name].combine_chunks() for name in names})
            for split, table in splits.items()
        }
        datasets.DatasetDict(tables).save_to_disk(folder)
    finally:
        if not was_disabled:
            datasets.enable_progress_bars()
    card = dataset_card(
        dataset.manifest,
        names,
        {split: table.num_rows for split, table in splits.items()},
        () if provenance else columns.left_out,
    )
    (folder / "README.md").write_text(card, encoding="utf-8")


def _with_columns(table: "pa.Table", columns: TrainingColumns, *, provenance: bool) -> "pa.Table":
    """Return the losses' columns and `further_queries`; with `provenance`, all but `split`."""
    chosen, others = columns.select(table), columns.others(table)
    for name in others.column_names:
        if name == "further_queries" or (provenance and name != "split"):
            chosen = chosen.append_column(name, others[name])
    return chosen


def split_tables(dataset: SyntheticDataset) -> Iterator[tuple[str, "pa.Table"]]:
    """Yield the table of each split; raises UserError if a split's name can't be a file's name."""
    import pyarrow.compute as pc

    names = dataset.table.column("split")
    for name in sorted(pc.unique(names).to_pylist()):
        # Each split becomes a folder with its name, and the hub accepts no other names either.
        if not _MODULE.match(name):
            raise UserError(
                f"the split '{name}' can't be exported: use letters, digits, _ and dots between them"
            )
        yield name, dataset.table.filter(pc.equal(names, name))


USUAL_CLASS = {
    RecordKind.SCORED_PAIR: "CosineSimilarityLoss",
    RecordKind.PAIR: "MultipleNegativesRankingLoss",
    RecordKind.TRIPLET: "MultipleNegativesRankingLoss",
    RecordKind.RANKING: "LambdaLoss",
    RecordKind.RETRIEVAL: "InformationRetrievalEvaluator",
    RecordKind.SENTENCE: "MultipleNegativesRankingLoss",
}
"""Class of sentence-transformers that usually reads the records of a kind."""
_READ_AS = {
    RecordKind.RANKING: ", with `grades` as its labels",
    RecordKind.RETRIEVAL: ": queries, their judged passages, and the corpus",
    RecordKind.SENTENCE: ", with each sentence as its own positive (SimCSE)",
}
SIZES = (
    (1_000, "n<1K"),
    (10_000, "1K<n<10K"),
    (100_000, "10K<n<100K"),
    (1_000_000, "100K<n<1M"),
    (10_000_000, "1M<n<10M"),
)


def dataset_card(
    manifest: Manifest, columns: Sequence[str], splits: Mapping[str, int], left_out: Sequence[str] = ()
) -> str:
    """Return the dataset card as Markdown with the YAML head that the Hugging Face hub reads.

    `splits` is the number of records by split, `left_out` is as in TrainingColumns.
    """
    listed = ", ".join(f"`{name}`" for name in columns)
    without = f" Left out, since not all records have as many: {', '.join(left_out)}." if left_out else ""
    sections = [
        _head(manifest),
        f"# Synthetic {manifest.kind} data{f' by {manifest.method}' if manifest.method else ''}",
        f"For sentence-transformers' {USUAL_CLASS[manifest.kind]}{_READ_AS.get(manifest.kind, '')};"
        f" columns: {listed}.{without}",
        _table("Split", "Records", splits),
        "## How it was made",
        _facts(manifest),
    ]
    if manifest.dropped or manifest.num_failures:
        counts = manifest.dropped | ({"failures": manifest.num_failures} if manifest.num_failures else {})
        sections += ["## Left out", _table("Reason", "Records", counts)]
    if manifest.measured:
        found = (f"- {markdown_text(name)}: {value:.4g}" for name, value in manifest.measured.items())
        sections += ["## Measured", "\n".join(found)]
    if manifest.config:
        config = json.dumps(manifest.config, indent=1, ensure_ascii=False)
        sections += ["## Configuration", f"```json\n{config}\n```"]
    if manifest.notes:
        sections += ["## Notes", "\n".join(f"- {markdown_text(note)}" for note in manifest.notes)]
    return "\n\n".join(sections) + "\n"


def _head(manifest: Manifest) -> str:
    size = size_category(manifest.num_records)
    tags = ["synthetic", "sentence-transformers", "synthbench"]
    return "\n".join(["---", f"tags: {json.dumps(tags)}", f"size_categories: {json.dumps([size])}", "---"])


def size_category(num_records: int) -> str:
    """Return the hub's size category for this number of records."""
    return next((name for limit, name in SIZES if num_records < limit), "10M<n<100M")


def _facts(manifest: Manifest) -> str:
    facts = {"Method": f"{manifest.method} (version {manifest.version})"} if manifest.method else {}
    facts |= {f"Revision of {name}": revision for name, revision in sorted(manifest.revisions.items())}
    facts |= {f"Source '{role}'": content for role, content in sorted(manifest.sources.items())}
    facts |= {f"Tokens, {name}": str(count) for name, count in sorted(manifest.tokens.items())}
    if manifest.cost_usd:
        facts["Cost"] = f"{manifest.cost_usd:.2f} US dollars"
    facts |= {"Content hash": manifest.content_hash, "Schema version": str(manifest.schema_version)}
    return "\n".join(f"- {markdown_text(name)}: `{_one_line(value)}`" for name, value in facts.items())


def _table(left: str, right: str, rows: Mapping[str, int]) -> str:
    lines = [f"| {left} | {right} |", "|---|---:|"]
    for name, count in rows.items():
        lines.append(f"| {markdown_text(name)} | {count:,} |")
    return "\n".join(lines)


def _one_line(text: str) -> str:
    """Return a text on one line and without backticks, for inline code."""
    return " ".join(text.split()).replace("`", "'")
