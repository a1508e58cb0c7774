"""The text files of a report, without its figures and page."""

from pathlib import Path

from synthbench.reporting.files import place_report, report_files, report_inputs, text_files
from synthbench.reporting.report import Report
from synthbench.reporting.results import ExperimentResult


def text_of(result: ExperimentResult, name: str) -> str:
    """Return the content of a file of that name; empty if the report has none."""
    return dict(text_files(Report(result))).get(name, "")


def write_report(result: ExperimentResult, folder: Path) -> list[Path]:
    """Write a report's files into `folder` and return their paths: `report_files`, then `place_report`."""
    files = dict(report_files(result))
    place_report(files, folder, report_inputs(result))
    return [folder / name for name in files]
