"""Write reports as files."""

import hashlib
import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from importlib.metadata import version
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from synthbench.base.durability import write_atomically
from synthbench.base.errors import UserError
from synthbench.base.patterns import linear_pattern
from synthbench.reporting.figures.forest import forest_figure
from synthbench.reporting.figures.scores import scores_figure, scores_parts
from synthbench.reporting.figures.style import figure_files, figure_style, image_address
from synthbench.reporting.render.csv_files import csv_table, csv_text, seeds_csv
from synthbench.reporting.render.html.page import Picture, html_report
from synthbench.reporting.render.latex import latex_notes, latex_section, latex_table
from synthbench.reporting.render.markdown import NOTES, markdown_notes, markdown_section, markdown_table
from synthbench.reporting.report import Report, ReportFigure
from synthbench.reporting.results import ExperimentResult

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAME_LENGTH = 80
RECORD = ".written.json"
"""File with hashes of the report's inputs and files, to recognise edited files."""
PAGE = "report.html"
FOREST = "forest"
SEEDS = "seeds.csv"
"""File with the scores of each seed, from which anybody can compute the tables again."""

_NOT_IN_NAMES = linear_pattern(r"[^A-Za-z0-9_.,=-]")


def report_folder(output: Path, experiment: str, overrides: Sequence[str]) -> Path:
    """Return the folder of an experiment's report; with overrides, a subfolder of it.

    `overrides` are as on the command line: ("--seeds 0", "--set train.epochs=1") give
    "seeds-0+set-train.epochs=1". Characters other than letters, digits and _.,=- become "-", and long names
    are cut; a name changed by this gets a hash.
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
    """Create the folder and try to write to it; raises UserError on failure."""
    with _one_line(folder):
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass


def write_report(result: ExperimentResult, folder: Path) -> list[Path]:
    """Make a report (`report_files`), write it into `folder` (`place_report`); return its files' paths."""
    files = dict(report_files(result))
    place_report(files, folder, report_inputs(result))
    return [folder / name for name in files]


def report_inputs(result: ExperimentResult) -> str:
    """Return a hash of everything that determines a report's bytes: result, code, matplotlib's version."""
    digest = hashlib.sha256(f"{result.model_dump_json()}\n{version('matplotlib')}\n".encode())
    digest.update(_code())
    return digest.hexdigest()


@cache
def _code() -> bytes:
    """Return a hash of synthbench's Python code, and of the reports' templates, styles and scripts."""
    own, digest = Path(__file__).parent, hashlib.sha256()
    files = {*own.parent.rglob("*.py"), *own.rglob("*.jinja"), *own.rglob("*.css"), *own.rglob("*.js")}
    for file in sorted(files):
        digest.update(file.read_bytes())
    return digest.digest()


def current_report(folder: Path, inputs: str) -> dict[str, bytes] | None:
    """Return the report in a folder, as file -> content; None if its inputs differ or a file was changed."""
    record = _read_record(folder)
    try:
        files = {name: (folder / name).read_bytes() for name in record.files}
    except OSError:
        return None
    is_current = record.inputs == inputs and all(_hash(files[name]) == record.files[name] for name in files)
    return files if is_current else None


def place_report(files: Mapping[str, bytes], folder: Path, inputs: str = "") -> dict[str, str]:
    """Write a report's files into `folder`, each atomically, and remove an earlier report's other files.

    `inputs` is the value of `report_inputs`; without it the next run draws the report again. A file that
    somebody edited is kept under a new name, such as "table.edited.tex". Without a record of the earlier
    report, as in a clone, all files with other content count as edited. Returns edited file -> new name.
    Raises UserError if the folder can't be written.
    """
    with _one_line(folder):
        folder.mkdir(parents=True, exist_ok=True)
        before = _read_record(folder).files
        kept = dict(_keep_edited(before, files, folder))
        for name, content in files.items():
            write_atomically(folder / name, content)
        for stale in before.keys() - files.keys():
            (folder / stale).unlink(missing_ok=True)
        hashes = {name: _hash(content) for name, content in files.items()}
        record = {"inputs": inputs, "files": hashes}
        write_atomically(folder / RECORD, json.dumps(record, indent=1) + "\n")
    return kept


def _keep_edited(
    before: Mapping[str, str], files: Mapping[str, bytes], folder: Path
) -> Iterator[tuple[str, str]]:
    """Copy files that somebody edited, before they are overwritten; yield (file, name of its copy)."""
    for name in dict.fromkeys((*before, *files)):
        file = folder / name
        if not file.is_file():
            continue
        content = file.read_bytes()
        if _hash(content) in (before.get(name), _hash(files.get(name, b""))):
            continue
        names = (f"{file.stem}.edited{number}{file.suffix}" for number in chain([""], count(2)))
        free = next(each for each in names if _is_free(folder / each, content))
        write_atomically(folder / free, content)
        yield name, free


def _is_free(file: Path, content: bytes) -> bool:
    return not file.exists() or file.read_bytes() == content


class _Record(NamedTuple):
    inputs: str
    files: dict[str, str]


def _read_record(folder: Path) -> _Record:
    """Return the record of a folder's report, empty if it is missing or damaged."""
    try:
        record = json.loads((folder / RECORD).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return _Record("", {})
    known = record if isinstance(record, dict) else {}
    # Older versions recorded only the hashes.
    files = known["files"] if isinstance(known.get("files"), dict) else known
    own = {name: str(written) for name, written in files.items() if Path(name).name == name}
    return _Record(str(known.get("inputs", "")), own)


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def report_files(result: ExperimentResult) -> Iterator[tuple[str, bytes]]:
    """Yield names and contents of a report's files, byte for byte the same for equal results.

    They are table.* and seeds.csv, if there are scores; forest.*, if primary rows can be compared; notes.*;
    comparisons.*, if rows have a baseline; audit.*, if data were audited, and labels.*, if an audit compared
    labels with gold; costs.*, if an LLM was asked; the files of `table.figures`; scores.pdf and scores.png;
    and report.html, which contains all of them. Tables come first, so that they exist even if a figure fails.
    """
    report, texts = Report(result), {}
    for name, text in text_files(report):
        texts[name] = text
        yield name, text.encode()
    pictures = []
    with figure_style():
        for name, title, figure in figures(report):
            files = figure_files(name, figure)
            if name != FOREST:  # the page draws it itself
                address = image_address(figure, files[f"{name}.png"])
                pictures.append(Picture(name, title, address, round(figure.get_figwidth(), 3)))
            yield from files.items()
    yield PAGE, html_report(report, pictures, texts).encode()


def text_files(report: Report) -> Iterator[tuple[str, str]]:
    """Yield names and contents of a report's text files, without the HTML page."""
    analysis = report.analysis
    if report.result.has_scores:
        yield "table.tex", latex_table(report.table, analysis)
        yield "table.md", markdown_table(report.table)
        yield "table.csv", csv_table(report.table)
        yield SEEDS, seeds_csv(report.result)
    if report.further_notes:
        yield NOTES, markdown_notes(report.further_notes)
    if notes := latex_notes(report):
        yield "notes.tex", notes
    for section in report.sections:
        if section.blocks:
            yield f"{section.name}.tex", latex_section(section, analysis)
            yield f"{section.name}.md", markdown_section(section)
        yield f"{section.name}.csv", csv_text(section.csv)


def figures(report: Report) -> "Iterator[tuple[str, str, Figure]]":
    """Yield name, title and figure for a report's figures; call it within `figure_style`."""
    has_caption = report.analysis.options.figures.caption
    if report.table.columns:
        for number, table in enumerate(scores_parts(report.table), start=1):
            yield _numbered("scores", number), "Scores", scores_figure(table, has_caption=has_caption)
    if report.forest:
        warning = [report.warning] if report.warning else []
        yield FOREST, "Primary differences", forest_figure(report.forest, warning, has_caption=has_caption)
    for each in report.figures:
        parts: Sequence[ReportFigure] = each.parts
        for number, part in enumerate(parts, start=1):
            figure = part.draw(has_caption=has_caption)
            if figure is not None:
                yield _numbered(each.name, number), each.title, figure


def _numbered(name: str, number: int) -> str:
    """Return the name of a figure's file: "scores", "scores-2"."""
    return name if number == 1 else f"{name}-{number}"


@contextmanager
def _one_line(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        raise UserError(
            f"can't write the report to {folder}: {reason}; name another folder with --output"
        ) from error
