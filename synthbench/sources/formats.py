"""Named file formats, each read by an installed importer."""

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import cast

from synthbench.base.durability import file_hash
from synthbench.base.errors import UserError
from synthbench.data.dataset import SyntheticDataset
from synthbench.data.records import RecordKind
from synthbench.plugins.code import code_of
from synthbench.plugins.importers import Importer, ImportOptions
from synthbench.plugins.loading import installed, installed_component
from synthbench.tables.opening import ending


def importer(name: str) -> Importer:
    """Return the importer of a format; raises UserError if none is installed or it can't be loaded."""
    return cast("Importer", installed_component("importers", name)())


def code_of_format(name: str) -> Mapping[str, str]:
    """Return package -> version or hash of an importer's code; {} for synthbench's own importers."""
    return code_of([(name, importer(name))]).get(name, {})


def usual_kind(name: str) -> RecordKind:
    """Return a format's usual record kind; SENTENCE for an unknown format."""
    return importer(name).kinds[0] if name in installed("importers") else RecordKind.SENTENCE


def format_hint(columns: Collection[str]) -> str:
    """Return a hint naming a format whose typical columns are all among these, "" if there is none.

    Skips importers that can't be loaded.
    """
    for name in installed("importers"):
        try:
            found = importer(name)
        except UserError:
            continue
        if found.columns and {*found.columns} <= {*columns}:
            return f"; is it {found.title}? `synthbench data import FILE FOLDER --format {name}` reads that"
    return ""


def import_in_format(
    file: Path, name: str, kind: RecordKind | None, scores: Mapping[str, float] | None
) -> SyntheticDataset:
    """Return the data set in a file of this format, with `scores` by class.

    Raises UserError as the importer does, and for a file without records. Raises UserError also for `scores`
    of a format without classes, or if the file's suffix is not the format's.
    """
    reader = importer(name)
    if scores and not reader.takes_scores:
        raise UserError(f"--score: {reader.title} has no classes")
    if file.is_file():
        reader.check(file, ending(file), kind)
    content = reader.read(file, kind, ImportOptions(scores=scores))
    if not content.records:
        raise UserError(f"{file}: holds no records in {reader.title}")
    return SyntheticDataset.create(
        content.records[0].kind,
        content.records,
        revisions={file.name: file_hash(file)},
        dropped=content.dropped,
        notes=[f"imported from {file.name}, in {reader.title}", *content.notes],
    )
