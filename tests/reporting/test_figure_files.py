"""Figures as files: the same bytes for the same figure, no output, and unchanged matplotlib settings."""

import os
import subprocess
import sys
from pathlib import Path

import matplotlib
import pytest

from synthbench.reporting.figures.scores import scores_figure
from synthbench.reporting.figures.style import figure_files, figure_style
from synthbench.reporting.model.analysis import Analysis
from synthbench.reporting.model.build import build_table
from synthbench.reporting.results import ExperimentResult

PROGRAM = """
import sys
from pathlib import Path
from synthbench.reporting.results import ExperimentResult
from synthbench.reporting.files import write_report
assert "matplotlib" not in sys.modules
write_report(ExperimentResult.model_validate_json(Path("result.json").read_text("utf-8")), Path(sys.argv[1]))
assert "matplotlib.pyplot" not in sys.modules
"""


def files(result: ExperimentResult) -> dict[str, bytes]:
    with figure_style():
        return figure_files("scores", scores_figure(build_table(Analysis(result))))


def test_another_process_writes_the_same_bytes_and_prints_nothing(
    small_result: ExperimentResult, tmp_path: Path
) -> None:
    (tmp_path / "result.json").write_text(small_result.model_dump_json(), encoding="utf-8")
    # A new settings folder has no font cache yet.
    settings = {"MPLCONFIGDIR": str(tmp_path / "settings"), "SOURCE_DATE_EPOCH": "1", "MPLBACKEND": "TkAgg"}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, "out"],
        cwd=tmp_path,
        env={**os.environ, **settings, "PYTHONHASHSEED": "7"},
        capture_output=True,
        check=True,
    )

    assert (done.stdout, done.stderr) == (b"", b"")
    here = files(small_result)
    assert here == {name: (tmp_path / "out" / name).read_bytes() for name in here}


def test_the_pdf_has_embedded_fonts_and_no_date_and_the_png_print_resolution(
    small_result: ExperimentResult,
) -> None:
    written = files(small_result)

    pdf, png = written["scores.pdf"], written["scores.png"]
    assert pdf.startswith(b"%PDF")
    assert b"/FontFile2" in pdf
    assert b"Date" not in pdf
    assert b"/Subtype /Image" not in pdf
    assert png.startswith(b"\x89PNG")
    dots_per_metre = int.from_bytes(png[png.index(b"pHYs") + 4 :][:4], "big")
    assert dots_per_metre * 0.0254 == pytest.approx(200, abs=0.5)


def test_the_users_matplotlib_settings_are_ignored_and_restored(
    small_result: ExperimentResult, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = files(small_result)
    monkeypatch.setitem(matplotlib.rcParams, "font.size", 30.0)
    monkeypatch.setitem(matplotlib.rcParams, "savefig.bbox", "tight")
    before = dict(matplotlib.rcParams)

    assert files(small_result) == expected
    assert dict(matplotlib.rcParams) == before


@pytest.mark.filterwarnings("error")
def test_a_character_missing_from_all_fonts_causes_no_warning(small_result: ExperimentResult) -> None:
    runs = tuple(run.model_copy(update={"variant": "漢字"}) for run in small_result.runs[:3])

    assert len(files(small_result.model_copy(update={"runs": runs}))) == 2
