"""Experiment files in the docs: tables of keys are those of the code, and examples are valid."""

import re
from pathlib import Path

import pytest
from keys import with_tables
from wording import refused

from synthbench.config.load import load_experiment
from synthbench.config.overrides import Overrides
from synthbench.plugins.loading import installed

DOCS = Path(__file__).parents[2] / "docs"
PAGES = [DOCS / "experiment_files.md", *sorted((DOCS / "keys").glob("*.md"))]
TEXT = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
MOST_WORDS = 4_000
WHOLE, *PIECES = re.findall(r"```yaml\n(.*?)```", TEXT, re.DOTALL)
NAMED = {name: text for text in PIECES for name in re.findall(r"\A# (\S+\.yaml)\n", text)}
PATCHES = [text for text in PIECES if text not in NAMED.values()]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The pages' files, each under its name, and the first as whole.yaml."""
    for name, text in {"whole.yaml": WHOLE, **NAMED}.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def test_the_tables_of_keys_are_current() -> None:
    assert with_tables(TEXT) == TEXT, "run `make docs`"
    without = re.sub(r"^\|.*\n", "", TEXT, flags=re.MULTILINE)
    assert "| `base.model` | text | required | hub id" in with_tables(without)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.stem))
def test_a_page_of_keys_is_short_enough_to_be_read(page: Path) -> None:
    assert len(page.read_text(encoding="utf-8").split()) <= MOST_WORDS


def test_every_built_in_plugin_is_on_a_page() -> None:
    for group in ("methods", "trainers", "evaluators"):
        for name, point in installed(group).items():
            assert not point.value.startswith("synthbench") or f"`{name}`" in TEXT
    for name in installed("steps"):
        assert f"`step: {name}`" in TEXT


def test_an_unknown_table_is_an_error() -> None:
    with refused("'nothing'"):
        with_tables("<!-- keys of nothing -->\n<!-- end -->")


def test_the_complete_example_file_is_valid(folder: Path) -> None:
    experiment = load_experiment(folder / "whole.yaml")
    assert [variant.name for variant in experiment.variants] == ["gold-only", "augsbert"]


@pytest.mark.parametrize("patch", PATCHES, ids=lambda text: str(text.split()[0]))
def test_every_example_is_valid_within_the_complete_file(folder: Path, patch: str) -> None:
    included = "" if "include:" in patch else "include: [whole.yaml]\n"
    (folder / "piece.yaml").write_text(included + patch, encoding="utf-8")
    assert load_experiment(folder / "piece.yaml", Overrides(assignments=("seeds=[0]",))).variants


def test_the_profile_example_is_valid(folder: Path) -> None:
    assert load_experiment(folder / "whole.yaml", Overrides(profile="laptop")).seeds == (0,)
