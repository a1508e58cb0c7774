"""The check that tests read only files tracked by git."""

from pathlib import Path

import pytest
from tracked_only import ROOT, ignored

pytest_plugins = ["pytester"]


def test_results_of_runs_are_git_ignored_and_project_files_are_not() -> None:
    paths = [
        "README.md",
        "reports/quickstart/table.md",
        "reports/published/dino_table2.csv",
        ".venv/x",
        "a/__pycache__/b",
    ]
    assert ignored(paths) == ["reports/quickstart/table.md"]


@pytest.mark.parametrize("read", ["open(path)", "next(path.parent.iterdir())", "path.read_bytes()"])
def test_a_test_that_reads_an_ignored_file_fails(read: str, pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        f"""
        from contextlib import suppress
        from pathlib import Path

        def test_reading():
            path = Path({ROOT!r}) / "site" / "nothing" / "page.html"
            with suppress(OSError):
                {read}
        """
    )
    outcome = pytester.runpytest_inprocess("-p", "tracked_only")
    outcome.assert_outcomes(passed=1, errors=1)
    outcome.stdout.fnmatch_lines(["*not there in a fresh clone: ['site/nothing*"])


def test_tracked_files_may_be_read(pytester: pytest.Pytester) -> None:
    readme = Path(ROOT) / "README.md"
    pytester.makepyfile(f"def test_reading():\n    assert open({str(readme)!r}).read()\n")
    pytester.runpytest_inprocess("-p", "tracked_only").assert_outcomes(passed=1)
