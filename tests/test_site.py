"""The docs site: every page has its place, every link leads somewhere, nothing comes from elsewhere."""

import csv
import re
import statistics
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from api_pages import as_directives, names_in, with_tables
from gallery import with_reports
from ruamel.yaml import YAML
from scipy import stats
from stage import site_path, stage

import synthbench
from synthbench import api
from synthbench.python.results import Results
from synthbench.statistics.differences import Difference, Noise
from synthbench.statistics.families import Simultaneous, simultaneous

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
CONFIGURATION = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")


def text_of(name: str) -> str:
    return (DOCS / name).read_text(encoding="utf-8")


def test_every_page_of_docs_is_in_the_navigation() -> None:
    listed = set(re.findall(r"(?:- |: )([\w/]+\.md)$", CONFIGURATION, re.MULTILINE))
    pages = {page.name for page in DOCS.glob("*.md")}
    assert not pages - listed, "add these pages to `nav` of mkdocs.yml"
    assert len(re.findall(r"[\w/]+\.md$", CONFIGURATION, re.MULTILINE)) == len(listed), (
        "a page is there twice"
    )


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built strictly: a dead link or anchor, or a page that is not there, fails."""
    folder = tmp_path_factory.mktemp("website")
    stage(folder / "build" / "pages")
    (folder / "mkdocs.yml").write_text(CONFIGURATION, encoding="utf-8")
    command = [str(Path(sys.executable).parent / "zensical"), "build", "--strict"]
    built = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stdout + built.stderr
    return folder / "site"


def test_the_site_has_every_page(site: Path) -> None:
    assert {page.stem for page in DOCS.glob("*.md")} <= {page.stem for page in site.glob("*.html")}
    assert (site / "reports" / "augsbert_redrawn" / "table.html").is_file()
    assert (site / "reports" / "which_method_real" / "frontier.png").is_file()


def test_pages_load_nothing_from_other_sites(site: Path) -> None:
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        loaded = re.findall(r"<(?:script|img|iframe|link)\b[^>]*?\b(?:src|href)=\"?([^\"\s>]+)", text)
        assert not [each for each in loaded if "//" in each], page


def test_the_reference_has_signatures_and_docstrings(site: Path) -> None:
    text = (site / "api.html").read_text(encoding="utf-8")
    assert 'id="synthbench.api.Method.generate"' in text
    assert str(Results.comparisons.func.__doc__).partition(",")[0] in text


def test_the_reference_lists_every_public_name_once() -> None:
    listed = names_in(text_of("api.md"), "synthbench.api")
    public = {name for name in vars(api) if not name.startswith("_")}
    assert not public - set(listed), "name these in docs/api.md and run `make docs`"
    assert sorted(listed) == sorted(public), "docs/api.md names what is gone, or a name twice"
    assert {*names_in(text_of("api.md"), "synthbench"), "__version__"} == set(synthbench.__all__)


def test_the_tables_of_names_and_reports_are_current() -> None:
    assert with_tables(text_of("api.md")) == text_of("api.md"), "run `make docs`"
    assert with_reports(text_of("gallery.md")) == text_of("gallery.md"), "run `make docs`"


def test_a_table_of_names_becomes_reference_entries() -> None:
    page = "# A\n\n<!-- names of synthbench: run, load -->\n| old |\n<!-- end -->\nend\n"
    assert as_directives(page) == "# A\n\n::: synthbench.run\n\n::: synthbench.load\n\n\nend\n"
    assert "| `load` | Return an experiment's last tracked results" in with_tables(page)


class TestStaging:
    @pytest.fixture
    def root(self, tmp_path: Path) -> Path:
        files = {
            "docs/index.md": "# A\n\n[b](../benchmarks/README.md#x) [c](../experiments/c.yaml)\n\n"
            "```\n[d](../d.md)\n```\n\n![p](../reports/r/scores.png) [e](https://e.org/a.md) [f](#a)\n",
            "benchmarks/README.md": "# Speed\n\n## x\n\n[back](../docs/index.md)\n",
            "experiments/c.yaml": "experiment: c\n",
            "website/site.css": "",
            "reports/r/scores.png": "",
        }
        for name, text in files.items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(text, encoding="utf-8")
        return tmp_path

    def test_links_out_of_docs_lead_to_pages_of_the_site(self, root: Path) -> None:
        assert stage(root / "pages", root) == 4
        index = (root / "pages" / "index.md").read_text(encoding="utf-8")
        assert "[b](benchmarks/index.md#x) [c](experiments/c.yaml.md)" in index
        assert "[d](../d.md)" in index, "code stays as it is"
        assert "![p](reports/r/scores.png) [e](https://e.org/a.md) [f](#a)" in index
        assert "[back](../index.md)" in (root / "pages/benchmarks/index.md").read_text(encoding="utf-8")

    def test_source_files_become_pages(self, root: Path) -> None:
        stage(root / "pages", root)
        page = (root / "pages/experiments/c.yaml.md").read_text(encoding="utf-8")
        assert page == "# c.yaml\n\n`experiments/c.yaml`\n\n```yaml\nexperiment: c\n```\n"

    def test_a_link_without_a_target_fails_the_build(self, root: Path) -> None:
        (root / "docs/index.md").write_text("[x](../nothing.md)", encoding="utf-8")
        with pytest.raises(FileNotFoundError, match="nothing"):
            stage(root / "pages", root)

    def test_the_docs_folder_is_the_root_of_the_site(self) -> None:
        assert site_path("docs/faq.md") == "faq.md"
        assert site_path("reports/a/table.md") == "reports/a/table.md"


def test_the_citation_names_this_version() -> None:
    citation = YAML(typ="safe").load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["cff-version"] == "1.2.0"
    assert citation["version"] == synthbench.__version__
    assert citation["authors"] == [{"name": "synthbench contributors"}]


class TestWorkedExample:
    """docs/statistics_example.md: its numbers follow from the scores on it, and are the report's."""

    page = text_of("statistics_example.md")

    @pytest.fixture
    def report(self) -> dict[tuple[str, str], dict[str, str]]:
        """The STSb comparisons of the report, by row and baseline."""
        header, *lines = (ROOT / "reports/generators_real/comparisons.csv").read_text("utf-8").splitlines()
        rows = [dict(zip(header.split(","), line.split(","), strict=True)) for line in lines]
        return {(row["row"], row["against"]): row for row in rows if row["column"] == "STSb"}

    def test_the_worked_test_on_the_page_follows_step_by_step_from_its_scores(
        self, report: dict[tuple[str, str], dict[str, str]]
    ) -> None:
        scores = re.findall(r"^\| \d \| ([\d.]+) \| ([\d.]+) \|$", self.page, re.MULTILINE)
        before, after = ([float(value) for value in values] for values in zip(*scores, strict=True))
        difference = statistics.fmean(after) - statistics.fmean(before)
        deviations = [statistics.stdev(each) for each in (before, after)]
        errors = [deviation**2 / 5 for deviation in deviations]
        error = sum(errors) ** 0.5
        found = stats.ttest_ind(after, before, equal_var=False)
        low, high = found.confidence_interval(0.95)
        assert f"differ by **{difference:.3f}**" in self.page
        assert f"deviations are {deviations[0]:.3f} and {deviations[1]:.3f}" in self.page
        assert [f"{each:.5f}" for each in errors] == ["0.00294", "0.00091"]
        assert f"root is {error:.3f}" in self.page
        assert f"t = {difference:.3f} / {error:.3f} = {found.statistic:.2f}" in self.page
        assert f"= {found.df:.2f}.\n" in self.page
        assert f"± {stats.t.ppf(0.975, found.df):.3f}" in self.page
        assert f"**{low:.3f} to {high:.3f}**" in self.page
        assert f"**{found.pvalue:.3f}**" in self.page
        ours = report["gpt-3.5", "back-translation"]
        assert difference == pytest.approx(float(ours["difference"]), abs=0.001)
        assert difference > 0 < float(ours["seeds_low"])

    def test_the_items_noise_and_the_family_on_the_page_follow_from_the_report(
        self, report: dict[tuple[str, str], dict[str, str]]
    ) -> None:
        noise = [
            _item_noise(report[pair])
            for pair in (
                ("gpt-3.5", "back-translation"),
                ("llama-3", "back-translation"),
                ("llama-3", "gpt-3.5"),
            )
        ]
        items = [each.squared_error for each in noise]
        lines = (ROOT / "reports/generators_real/table.csv").read_text("utf-8").splitlines()
        table = {row["row"]: row for row in csv.DictReader(lines) if row["column"] == "STSb"}
        rows = ("back-translation", "gpt-3.5", "llama-3")
        shared, *errors = (float(table[row]["sd"]) ** 2 / 5 for row in rows)
        gains = [float(report[row, rows[0]]["difference"]) for row in rows[1:]]
        differences = [
            Difference(
                gain,
                (
                    Noise(shared + own, (shared + own) ** 2 / (shared**2 / 4 + own**2 / 4)),
                    of_items,
                ),
            )
            for gain, own, of_items in zip(gains, errors, noise[:2], strict=True)
        ]
        whole = [each.whole.squared_error for each in differences]
        covariance = (items[0] + items[1] - items[2]) / 2
        correlation = (covariance + shared) / (whole[0] * whole[1]) ** 0.5
        first, second = simultaneous(differences, [np.array([[1.0, correlation], [correlation, 1.0]])])

        for name, error in zip(("gpt-3.5 − back", "llama-3 − back", "llama-3 − gpt"), items, strict=True):
            (line,) = re.findall(rf"^\| {re.escape(name)}.* \| ([\d.]+) \|$", self.page, re.MULTILINE)
            assert line == f"{error:.4f}"
        assert f"| seeds | {shared + errors[0]:.4f} |" in self.page
        assert f"| both | {whole[0]:.4f} |" in self.page
        assert f"root is {whole[0] ** 0.5:.3f}" in self.page
        reach = differences[0].half_width
        assert f"**−{reach - gains[0]:.3f} to {gains[0] + reach:.3f}**, with p = " in self.page
        assert f"p = {differences[0].p_value:.2f}." in self.page
        assert (
            f"{gains[1]:.3f} ahead of back-translation, ± {differences[1].half_width:.3f} over seeds and"
            f" items, p = {differences[1].p_value:.2f}" in self.page
        )
        assert f"= {covariance:.4f}, that over seeds is" in self.page
        assert f"error, {shared:.4f}." in self.page
        assert f"= {correlation:.2f}.\n" in self.page
        assert f"gpt-3.5 {_interval(first)}, llama-3 {_interval(second)}." in self.page
        assert f"adjusted p is **{first.p_value:.2f}**" in self.page
        assert f"that of llama-3 {second.p_value:.2f}." in self.page


def _item_noise(line: dict[str, str]) -> Noise:
    """Return the noise of test items: that over seeds and items less that over seeds (Satterthwaite)."""
    whole, seeds = (
        Noise(
            ((float(line[f"{kind}_high"]) - float(line[f"{kind}_low"])) / 2 / stats.t.ppf(0.975, freedom))
            ** 2,
            freedom,
        )
        for kind in ("items", "seeds")
        for freedom in [float(line[f"{kind}_df"])]
    )
    error = whole.squared_error - seeds.squared_error
    rest = (
        whole.squared_error**2 / whole.degrees_of_freedom - seeds.squared_error**2 / seeds.degrees_of_freedom
    )
    return Noise(error, error**2 / rest)


def _interval(found: Simultaneous) -> str:
    ends = (f"{end:.2f}" for end in (found.value - found.half_width, found.value + found.half_width))
    return " to ".join(ends).replace("-", "−")
