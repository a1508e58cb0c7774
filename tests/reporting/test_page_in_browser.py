"""The page in a real browser. `make check-page` installs one; without it these tests skip and say so."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from reporting.browser import CHROMIUM, Tab, in_browser

from synthbench.reporting.files import write_report
from synthbench.reporting.results import ExperimentResult, RunResult

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium: make check-page")

MakeRuns = Callable[..., tuple[RunResult, ...]]
MakeResult = Callable[..., ExperimentResult]
NAMES = "[...document.querySelectorAll('#scores tbody tr:not([hidden]) th')].map(cell => cell.textContent)"


@pytest.fixture(scope="session")
def page(tmp_path_factory: pytest.TempPathFactory, make_runs: MakeRuns, make_result: MakeResult) -> Path:
    """A page with a table of seven rows."""
    scores = {"c": 0.61, "a": 0.75, "b": 0.58, "g": 0.7, "e": 0.625, "d": 0.9, "f": 0.6}
    rows = [make_runs(name, {"STSb": (score, score + 0.01)}) for name, score in scores.items()]
    folder = tmp_path_factory.mktemp("page")
    write_report(make_result(*rows, tasks=("STSb",), compare_to="a"), folder)
    return folder / "report.html"


async def names(tab: Tab) -> Sequence[str]:
    found: list[str] = await tab.run(NAMES)
    return found


def test_clicks_on_a_heading_sort_ascending_descending_and_then_restore(page: Path) -> None:
    async def look(tab: Tab) -> None:
        click = "document.querySelectorAll('#scores thead button')[1].click()"
        as_written = await names(tab)
        assert "".join(as_written) == "cabgedf"
        await tab.run(click)
        assert "".join(await names(tab)) == "dagecfb"
        assert await tab.run("document.querySelector('[aria-sort]').ariaSort") == "descending"
        await tab.run(click)
        assert "".join(await names(tab)) == "bfcegad"
        await tab.run(click)
        assert await names(tab) == as_written
        assert tab.violations == []

    in_browser(page, look)


def test_differences_and_p_values_are_sorted_as_numbers(page: Path) -> None:
    async def look(tab: Tab) -> None:
        async def sorted_by(column: str) -> list[str]:
            heads = "[...document.querySelectorAll('#comparisons table.sortable thead th')]"
            await tab.run(f"{heads}.find(head => head.textContent === '{column}').firstChild.click()")
            rows = "[...document.querySelectorAll('#comparisons table.sortable tbody tr')]"
            index = await tab.run(f"{heads}.findIndex(head => head.textContent === '{column}')")
            texts: list[str] = await tab.run(f"{rows}.map(row => row.cells[{index}].textContent)")
            return texts

        differences = [float(text.replace("−", "-").rstrip("*")) for text in await sorted_by("difference")]
        assert len(differences) == 6
        assert differences == sorted(differences, reverse=True)
        ps = [text.removeprefix("< ") for text in await sorted_by("family: p")]
        assert ps == sorted(ps, key=float, reverse=True)

    in_browser(page, look)


def test_rows_can_be_filtered(page: Path) -> None:
    async def look(tab: Tab) -> None:
        await tab.run(
            "(() => { const field = document.querySelector('#scores input');"
            " field.value = '75.5'; field.dispatchEvent(new Event('input')); })()"
        )
        assert await names(tab) == ["a"]

    in_browser(page, look)


def test_tables_can_be_copied(page: Path) -> None:
    async def look(tab: Tab) -> None:
        await tab.run("document.querySelector('#scores details.copies').open = true")
        await tab.run("document.querySelector('#scores details.copies button').click()")
        said = await tab.run(
            "new Promise(done => setTimeout(() => done(document.querySelector('details.copies button')"
            ".textContent), 200))"
        )
        selected = await tab.run("getSelection().toString().trim()")
        assert said == "Copied" or selected == (page.parent / "table.csv").read_text().strip()

    in_browser(page, look)


def test_without_scripts_the_page_has_the_same_content_and_no_dead_controls(page: Path) -> None:
    async def look(tab: Tab) -> None:
        assert "".join(await names(tab)) == "cabgedf"
        assert await tab.run("document.querySelectorAll('button, input').length") == 0
        assert "of 6 primary comparisons" in await tab.run("document.body.innerText")

    in_browser(page, look, has_scripts=False)


def test_a_foreign_script_does_not_run(page: Path, tmp_path: Path) -> None:
    attacked = tmp_path / "attacked.html"
    text = page.read_text(encoding="utf-8")
    attacked.write_text(text.replace("</main>", "<script>document.title = 'taken'</script></main>"))

    async def look(tab: Tab) -> None:
        assert await tab.run("document.title") == "example – synthbench"
        assert await tab.run("document.querySelectorAll('#scores thead button').length") == 2

    in_browser(attacked, look)


@pytest.mark.parametrize("width", [360, 1100])
def test_only_tables_are_wider_than_the_window(page: Path, width: int) -> None:
    async def look(tab: Tab) -> None:
        assert await tab.run("document.documentElement.scrollWidth") <= width

    in_browser(page, look, size=(width, 800))
