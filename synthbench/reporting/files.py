"""Reports as files."""

import hashlib
import json
import os
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING

from synthbench.errors import UserError
from synthbench.reporting.figures.registry import FIGURES as STUDY_FIGURES
from synthbench.reporting.figures.registry import TABLES as STUDY_TABLES
from synthbench.reporting.figures.registry import study_figures, study_tables
from synthbench.reporting.figures.scores import scores_figure
from synthbench.reporting.figures.style import FORMATS, figure_files, figure_style, image_address
from synthbench.reporting.model.audit_tables import csv_audits, latex_audits, markdown_audits
from synthbench.reporting.model.build import build_table
from synthbench.reporting.model.comparison_tables import (
    csv_comparisons,
    latex_comparisons,
    markdown_comparisons,
)
from synthbench.reporting.model.cost_tables import csv_costs, latex_costs, markdown_costs
from synthbench.reporting.model.table import Table
from synthbench.reporting.options import TableOptions
from synthbench.reporting.render.csv_table import csv_table
from synthbench.reporting.render.html.page import Picture, html_report
from synthbench.reporting.render.latex import latex_table
from synthbench.reporting.render.latex_layout import layout_of
from synthbench.reporting.render.markdown import markdown_table
from synthbench.reporting.results import ExperimentResult
from synthbench.reporting.statistics.comparisons import compare

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAME_LENGTH = 80
RECORD = ".written.json"
"""Holds the hash of each file as it was written, by which a file that was edited since is known."""
PAGE = "report.html"
WRITERS = {"table.md": markdown_table, "table.csv": csv_table}
TABLE_TEX = "table.tex"
AUDIT_WRITERS = {"audit.tex": latex_audits, "audit.md": markdown_audits, "audit.csv": csv_audits}
COMPARISON_WRITERS = {
    "comparisons.tex": latex_comparisons,
    "comparisons.md": markdown_comparisons,
    "comparisons.csv": csv_comparisons,
}
COST_WRITERS = {"costs.tex": latex_costs, "costs.md": markdown_costs, "costs.csv": csv_costs}
FIGURES = ("scores", *STUDY_FIGURES)


def report_folder(output: Path, experiment: str, overrides: Sequence[str]) -> Path:
    """Return where an experiment's report goes: overrides have a folder of their own within the experiment's.

    `overrides` read as on the command line: ("--seeds 0", "--set train.epochs=1") go to
    "seeds-0+set-train.epochs=1". A name that had to be changed or cut for a file system gets a hash.
    """
    folder = output / experiment
    if not overrides:
        return folder
    plain = [override.lstrip("-").replace(" ", "-", 1) for override in overrides]
    name = "+".join(re.sub(r"[^A-Za-z0-9_.,=-]", "-", each) for each in plain)[:NAME_LENGTH]
    if name != "+".join(plain):
        name = f"{name}-{hashlib.sha256(repr(plain).encode()).hexdigest()[:6]}"
    return folder / name


def make_report_folder(folder: Path) -> None:
    """Make the folder and try whether it can be written. Raises UserError if it can't."""
    with _one_line(folder):
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass


def write_report(result: ExperimentResult, folder: Path) -> list[Path]:
    """Write a report's files into `folder` and return their paths: `report_files`, then `place_report`."""
    files = dict(report_files(result))
    place_report(files, folder)
    return [folder / name for name in files]


def place_report(files: Mapping[str, bytes], folder: Path) -> dict[str, str]:
    """Put a report's files into `folder`, each whole or not at all, and remove an earlier report's others.

    A file that somebody edited since it was written is kept under another name, as "table.edited.tex";
    returns these names by the files'. Raises UserError if the folder can't be written.
    """
    with _one_line(folder):
        folder.mkdir(parents=True, exist_ok=True)
        kept = dict(_keep_edited(files, folder))
        for name, content in files.items():
            _write_whole(folder / name, content)
        plots = {f"{name}.{ending}" for name in FIGURES for ending in FORMATS}
        tables = (TABLE_TEX, *WRITERS, *COMPARISON_WRITERS, *AUDIT_WRITERS, *COST_WRITERS, *STUDY_TABLES)
        for stale in {*tables, *plots} - {*files}:
            (folder / stale).unlink(missing_ok=True)
        hashes = {name: _hash(content) for name, content in files.items()}
        _write_whole(folder / RECORD, (json.dumps(hashes, indent=1) + "\n").encode())
    return kept


def _keep_edited(files: Mapping[str, bytes], folder: Path) -> Iterator[tuple[str, str]]:
    """Copy what would be lost, and yield its name and the copy's."""
    for name, written in _record(folder).items():
        file = folder / name
        if not file.is_file():
            continue
        content = file.read_bytes()
        if _hash(content) in (written, _hash(files.get(name, b""))):
            continue
        names = (f"{file.stem}.edited{number}{file.suffix}" for number in chain([""], count(2)))
        free = next(each for each in names if _is_free(folder / each, content))
        _write_whole(folder / free, content)
        yield name, free


def _is_free(file: Path, content: bytes) -> bool:
    return not file.exists() or file.read_bytes() == content


def _record(folder: Path) -> dict[str, str]:
    """Return the hashes of the files as they were written; none of a report of an earlier version."""
    try:
        record = json.loads((folder / RECORD).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    known = record if isinstance(record, dict) else {}
    return {name: written for name, written in known.items() if Path(name).name == name}


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def report_files(result: ExperimentResult) -> Iterator[tuple[str, bytes]]:
    """Yield names and contents of a report's files, byte for byte the same for equal results.

    They are table.tex, table.md, table.csv, scores.pdf and scores.png, the figures only if there is a score;
    comparisons.*, if rows have a baseline; audit.*, if data were audited, and costs.*, if an LLM was asked
    for them; of an experiment without training only these; what `table.figures` asks for; and report.html,
    which holds all of it. Tables come first, so that a figure that fails costs none of them.
    """
    table = build_table(result)
    if result.has_scores:
        yield TABLE_TEX, latex_table(table, layout_of(result)).encode()
    for name, writer in WRITERS.items() if result.has_scores else ():
        yield name, writer(table).encode()
    for name, comparison_writer in COMPARISON_WRITERS.items() if compare(result) else ():
        yield name, comparison_writer(result).encode()
    for name, audit_writer in AUDIT_WRITERS.items() if result.audits else ():
        yield name, audit_writer(result).encode()
    for name, cost_writer in COST_WRITERS.items() if result.costs else ():
        yield name, cost_writer(result).encode()
    for name, text in study_tables(result):
        yield name, text.encode()
    pictures = []
    with figure_style():
        for name, figure in figures(result, table):
            files = figure_files(name, figure)
            address = image_address(figure, files[f"{name}.png"])
            pictures.append(Picture(name, address, round(figure.get_figwidth(), 3)))
            yield from files.items()
    yield PAGE, html_report(result, table, pictures).encode()


def figures(result: ExperimentResult, table: Table) -> "Iterator[tuple[str, Figure]]":
    """Yield a report's figures by name; call it within `figure_style`."""
    has_caption = TableOptions.model_validate(result.table).figures.caption
    if table.columns:
        yield "scores", scores_figure(table if has_caption else replace(table, caption=""))
    yield from study_figures(result, has_caption=has_caption)


@contextmanager
def _one_line(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        raise UserError(
            f"can't write the report to {folder}: {reason}; name another folder with --output"
        ) from error


def _write_whole(path: Path, content: bytes) -> None:
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        temporary.chmod(0o644)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
