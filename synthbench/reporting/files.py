"""Reports as files."""

import hashlib
import json
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from importlib.metadata import version
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote

from synthbench.base.errors import UserError
from synthbench.base.patterns import linear_pattern
from synthbench.reporting.figures.scores import scores_figure
from synthbench.reporting.figures.style import FORMATS, figure_files, figure_style, image_address
from synthbench.reporting.render.csv_files import csv_table, csv_text
from synthbench.reporting.render.html.index import entry, index_page
from synthbench.reporting.render.html.page import Picture, html_report
from synthbench.reporting.render.latex import latex_section, latex_table
from synthbench.reporting.render.markdown import markdown_section, markdown_table
from synthbench.reporting.report import STUDIES, Report
from synthbench.reporting.results import ExperimentResult

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAME_LENGTH = 80
RECORD = ".written.json"
"""Holds a hash of the report's inputs, and of each file as it was written: an edited file is recognised."""
PAGE, INDEX = "report.html", "index.html"
TABLES = ("table", "comparisons", "audit", "costs", "densities", "early_dev")
FIGURES = ("scores", *STUDIES)
KNOWN_FILES = {
    "curves.csv",
    "frontier.csv",
    *(f"{name}.{ending}" for name in TABLES for ending in ("tex", "md", "csv")),
    *(f"{name}.{ending}" for name in FIGURES for ending in FORMATS),
}
"""All that a report may write, and removes if the present one has no such file."""


_NOT_IN_NAMES = linear_pattern(r"[^A-Za-z0-9_.,=-]")


def report_folder(output: Path, experiment: str, overrides: Sequence[str]) -> Path:
    """Return where an experiment's report goes: overrides have a folder of their own within the experiment's.

    `overrides` read as on the command line: ("--seeds 0", "--set train.epochs=1") go to
    "seeds-0+set-train.epochs=1". A name that had to be changed or cut for a file system gets a hash.
    """
    folder = output / experiment
    if not overrides:
        return folder
    plain = [override.lstrip("-").replace(" ", "-", 1) for override in overrides]
    name = "+".join(_NOT_IN_NAMES.sub("-", each) for each in plain)[:NAME_LENGTH]
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
    place_report(files, folder, report_inputs(result))
    return [folder / name for name in files]


def place_index(results: Iterable[ExperimentResult], output: Path) -> tuple[Path, int]:
    """Write the page that lists the reports of `results` in `output`; return it, and how many there are.

    A report that is not there, or not current, is written first. Raises UserError if a folder can't be
    written.
    """
    entries = []
    for result in results:
        folder = report_folder(output, result.experiment, result.overrides)
        inputs = report_inputs(result)
        if current_report(folder, inputs) is None:
            place_report(dict(report_files(result)), folder, inputs)
        address = (folder / PAGE).relative_to(output).as_posix()
        entries.append(entry(result, quote(address)))
    with _one_line(output):
        _write_whole(output / INDEX, index_page(entries).encode())
    return output / INDEX, len(entries)


def report_inputs(result: ExperimentResult) -> str:
    """Return a hash of all that decides a report's bytes: the result, synthbench's code and matplotlib."""
    digest = hashlib.sha256(f"{result.model_dump_json()}\n{version('matplotlib')}\n".encode())
    digest.update(_code())
    return digest.hexdigest()


@cache
def _code() -> bytes:
    """Return a hash of the code that this process reports with."""
    own, digest = Path(__file__).parent, hashlib.sha256()
    files = {*own.parent.rglob("*.py"), *own.rglob("*.jinja"), *own.rglob("*.css"), *own.rglob("*.js")}
    for file in sorted(files):
        digest.update(file.read_bytes())
    return digest.digest()


def current_report(folder: Path, inputs: str) -> dict[str, bytes] | None:
    """Return a folder's report; None if it was made of other inputs, or a file was changed or removed."""
    record = _read_record(folder)
    try:
        files = {name: (folder / name).read_bytes() for name in record.files}
    except OSError:
        return None
    is_current = record.inputs == inputs and all(_hash(files[name]) == record.files[name] for name in files)
    return files if is_current else None


def place_report(files: Mapping[str, bytes], folder: Path, inputs: str = "") -> dict[str, str]:
    """Put a report's files into `folder`, each whole or not at all, and remove an earlier report's others.

    `inputs` is what `report_inputs` returned; without it the next run draws the report again.
    A file that somebody edited since it was written is kept under another name, as "table.edited.tex";
    returns these names by the files'. Raises UserError if the folder can't be written.
    """
    with _one_line(folder):
        folder.mkdir(parents=True, exist_ok=True)
        kept = dict(_keep_edited(files, folder))
        for name, content in files.items():
            _write_whole(folder / name, content)
        for stale in KNOWN_FILES - {*files}:
            (folder / stale).unlink(missing_ok=True)
        hashes = {name: _hash(content) for name, content in files.items()}
        record = {"inputs": inputs, "files": hashes}
        _write_whole(folder / RECORD, (json.dumps(record, indent=1) + "\n").encode())
    return kept


def _keep_edited(files: Mapping[str, bytes], folder: Path) -> Iterator[tuple[str, str]]:
    """Copy what would be lost, and yield its name and the copy's."""
    for name, written in _read_record(folder).files.items():
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


class _Record(NamedTuple):
    inputs: str
    files: dict[str, str]


def _read_record(folder: Path) -> _Record:
    """Return what is known of the report in a folder: nothing if its record is missing or damaged."""
    try:
        record = json.loads((folder / RECORD).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return _Record("", {})
    known = record if isinstance(record, dict) else {}
    # Earlier versions recorded the hashes alone.
    files = known["files"] if isinstance(known.get("files"), dict) else known
    own = {name: str(written) for name, written in files.items() if Path(name).name == name}
    return _Record(str(known.get("inputs", "")), own)


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def report_files(result: ExperimentResult) -> Iterator[tuple[str, bytes]]:
    """Yield names and contents of a report's files, byte for byte the same for equal results.

    They are table.*, if there are scores; comparisons.*, if rows have a baseline; audit.*, if data were
    audited; costs.*, if an LLM was asked; what `table.figures` asks for; scores.pdf and scores.png; and
    report.html, which holds all of it. Tables come first, so that a figure that fails costs none of them.
    """
    report, texts = Report(result), {}
    for name, text in text_files(report):
        texts[name] = text
        yield name, text.encode()
    pictures = []
    with figure_style():
        for name, title, figure in figures(report):
            files = figure_files(name, figure)
            address = image_address(figure, files[f"{name}.png"])
            pictures.append(Picture(name, title, address, round(figure.get_figwidth(), 3)))
            yield from files.items()
    yield PAGE, html_report(report, pictures, texts).encode()


def text_files(report: Report) -> Iterator[tuple[str, str]]:
    """Yield names and contents of the text files of a report, without its page."""
    analysis = report.analysis
    if report.result.has_scores:
        yield "table.tex", latex_table(report.table, analysis)
        yield "table.md", markdown_table(report.table)
        yield "table.csv", csv_table(report.table)
    for section in report.sections:
        if section.blocks:
            yield f"{section.name}.tex", latex_section(section, analysis)
            yield f"{section.name}.md", markdown_section(section)
        yield f"{section.name}.csv", csv_text(section.csv)


def figures(report: Report) -> "Iterator[tuple[str, str, Figure]]":
    """Yield a report's figures with names and titles; call it within `figure_style`."""
    has_caption = report.analysis.options.figures.caption
    if report.table.columns:
        yield "scores", "Scores", scores_figure(report.table, has_caption=has_caption)
    for study in report.studies:
        figure = study.draw(has_caption=has_caption)
        if figure is not None:
            yield study.name, study.title, figure


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
