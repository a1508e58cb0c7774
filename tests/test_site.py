"""The docs site: every page has its place, every link leads somewhere, nothing comes from elsewhere."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from api_pages import as_directives, names_in, with_tables
from gallery import with_reports
from ruamel.yaml import YAML
from scipy import stats
from stage import site_path, stage

import synthbench
from synthbench import api

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
    assert (site / "reports" / "augsbert_real" / "table.html").is_file()
    assert (site / "reports" / "augsbert_real" / "scores.png").is_file()


def test_pages_load_nothing_from_other_sites(site: Path) -> None:
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        loaded = re.findall(r"<(?:script|img|iframe|link)\b[^>]*?\b(?:src|href)=\"?([^\"\s>]+)", text)
        assert not [each for each in loaded if "//" in each], page


def test_the_reference_has_signatures_and_docstrings(site: Path) -> None:
    text = (site / "api.html").read_text(encoding="utf-8")
    assert 'id="synthbench.api.Method.generate"' in text
    assert "The comparisons of the report, as in its comparisons.csv" in text


def test_the_reference_lists_every_public_name_once() -> None:
    listed = names_in(text_of("api.md"), "synthbench.api")
    assert not set(api.__all__) - set(listed), "name these in docs/api.md and run `make docs`"
    assert sorted(listed) == sorted(api.__all__), "docs/api.md names what is gone, or a name twice"
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
        scores = re.findall(r"^\| \d \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \|$", self.page, re.MULTILINE)
        differences = [float(after) - float(before) for before, after, _ in scores]
        assert [f"{each:.3f}" for each in differences] == [shown for *_, shown in scores]
        mean = sum(differences) / 5
        deviation = (sum((each - mean) ** 2 for each in differences) / 4) ** 0.5
        error = deviation / 5**0.5
        t = float(stats.t.ppf(0.975, 4))
        p = float(2 * stats.t.sf(mean / error, 4))
        assert f"is **{mean:.3f}**" in self.page
        assert f"deviation is {deviation:.3f}" in self.page
        assert f"{deviation:.3f} / √5 = {error:.3f}" in self.page
        assert f"t = {mean:.3f} / {error:.3f} = {mean / error:.2f}" in self.page
        assert f"± {t:.3f}" in self.page
        assert f"**{mean - t * error:.3f} to {mean + t * error:.3f}**" in self.page
        assert f"**{p:.3f}**" in self.page
        ours = report["gpt-3.5", "back-translation"]
        assert mean == pytest.approx(float(ours["difference"]), abs=0.001)
        assert mean - t * error == pytest.approx(float(ours["seeds_low"]), abs=0.001)
        assert p == pytest.approx(float(ours["seeds_p"]), abs=0.001)

    def test_the_holm_adjusted_values_on_the_page_are_the_reports(
        self, report: dict[tuple[str, str], dict[str, str]]
    ) -> None:
        assert f"has {len(report)} [comparisons]" in self.page
        by_p = sorted(report.items(), key=lambda item: float(item[1]["seeds_p"]))
        adjusted, lines = 0.0, []
        for index, ((row, against), values) in enumerate(by_p):
            p, factor = float(values["seeds_p"]), len(by_p) - index
            adjusted = max(adjusted, p * factor)
            assert adjusted == pytest.approx(float(values["seeds_p_holm"]), rel=1e-4)
            lines.append(f"| {row} − {against} | {p:.4f} | {factor} | {p * factor:.4f} | {adjusted:.4f} |")
        table = "\n".join(line.replace("**", "") for line in self.page.splitlines())
        assert "\n".join(lines[-7:]) in table

    def test_the_item_noise_on_the_page_is_the_reports(
        self, report: dict[tuple[str, str], dict[str, str]]
    ) -> None:
        ours = report["gpt-3.5", "back-translation"]
        low, high = float(ours["items_low"]), float(ours["items_high"])
        both = ((high - low) / 2 / float(stats.t.ppf(0.975, float(ours["items_df"])))) ** 2
        seeds = (
            (float(ours["seeds_high"]) - float(ours["seeds_low"])) / 2 / float(stats.t.ppf(0.975, 4))
        ) ** 2
        assert f"| seeds: 0.114² / 5 | {seeds:.4f} |" in self.page
        assert f"| test pairs | {both - seeds:.4f} |" in self.page
        assert f"| both | {both:.4f} |" in self.page
        assert f"root is {both**0.5:.3f}" in self.page
        assert f"**−{-low:.3f} to {high:.3f}**" in self.page

    def test_the_example_of_bold_on_the_page_is_the_reports(
        self, report: dict[tuple[str, str], dict[str, str]]
    ) -> None:
        second = report["triplets-snli-4200", "triplets-snli"]
        assert f"by {-float(second['difference']):.2f}, " in self.page
        low, high = -float(second["items_high"]), -float(second["items_low"])
        assert f"from −{-low:.2f} to {high:.2f} over" in self.page
