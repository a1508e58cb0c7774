"""Reports as files."""

import os
import tempfile
from pathlib import Path

from synthbench.errors import UserError
from synthbench.reporting.build import build_table
from synthbench.reporting.csv_table import csv_table
from synthbench.reporting.latex import latex_table
from synthbench.reporting.markdown import markdown_table
from synthbench.reporting.results import ExperimentResult

WRITERS = {"table.tex": latex_table, "table.md": markdown_table, "table.csv": csv_table}


def write_report(result: ExperimentResult, folder: Path) -> list[Path]:
    """Write table.tex, table.md and table.csv into `folder`, byte for byte the same for equal results.

    Each file appears whole or not at all. Raises UserError if the folder can't be written.
    """
    table = build_table(result)
    written = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, writer in WRITERS.items():
            _write_whole(folder / name, writer(table))
            written.append(folder / name)
    except OSError as error:
        raise UserError(f"can't write the report to {folder}: {error}") from error
    return written


def _write_whole(path: Path, text: str) -> None:
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    temporary = Path(name)
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
        temporary.chmod(0o644)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
