"""Experiments on hub models and data are fetched from a hub on loopback, then run unchanged without any hub.

The hub has what `hub_manifests.yaml` lists, with tiny contents. An LLM that a file names is asked for under
its own name, at an address on loopback.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from chat_stand_in import KEY, chat_service
from manifest_hub import ManifestHub, manifest_hub
from shipped_files import SHIPPED
from small_experiment import Project, finished
from stand_ins import add_folder_tasks, smaller

from synthbench.config.documents import read_document
from synthbench.config.load import load_experiment
from synthbench.config.recipes import with_recipes

WITH_PROMPTS_OF_OUR_OWN = ("brainstorm", "claif", "graded", "multicsr", "persona", "syncse")
"""Beginnings of methods whose papers' prompts are reconstructed, which tables say."""


def documents() -> dict[str, dict[str, Any]]:
    """Return the experiment files that name something on the hub, without the sources they take away."""
    found = {name: with_recipes(read_document(file)).data for name, file in SHIPPED.items()}
    for data in found.values():
        sources = data.get("sources", {})
        data["sources"] = {name: source for name, source in sources.items() if source is not None}
    marks = ("'revision': ", "'origin': 'hub'", "'hub': ")
    return {name: data for name, data in found.items() if any(mark in repr(data) for mark in marks)}


def llms(document: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return a file's LLMs by the keys under which it has them."""
    named = {f"llms.{name}": section for name, section in document.get("llms", {}).items()}
    return named if document.get("llm") is None else {"llm": document["llm"]}


def note(key: str, section: dict[str, Any]) -> str:
    """Return a table's note on an LLM."""
    _, _, name = key.partition("llms.")
    return f"LLM{f' {name}' if name else ''}: {section['model']} ({section['name']})."


def has_reconstructed_prompts(document: dict[str, Any]) -> bool:
    """Whether a method of the file asks in our own words, where the paper has its own."""
    return any(f"'method': '{name}" in repr(document) for name in WITH_PROMPTS_OF_OUR_OWN)


FILES = documents()

pytestmark = pytest.mark.experiments


def test_files_of_paper_size_are_found() -> None:
    assert {"table2_ablation", "dino_table1", "dino_table3", "dino_table5"} <= FILES.keys()
    assert {f"{name}_scifact" for name in ("encoders", "gecko", "gpl", "negatives")} <= FILES.keys()
    assert {"graded_msmarco", "languages_syncse", "released_data"} <= FILES.keys()
    assert {f"syncse_table{number}" for number in (2, 3, 4, 5, 6, 7, 8, 13, 14)} <= FILES.keys()
    assert {f"augsbert_table{name}" for name in ("5", "6", "7_8", "9_10", "11", "12", "13")} <= FILES.keys()


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a home that all files share, as a user's: tables of the same trainings do not train twice."""
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def hub() -> Iterator[ManifestHub]:
    with manifest_hub() as running:
        yield running


@pytest.mark.parametrize("name", FILES)
def test_a_file_of_paper_size_is_fetched_and_runs_offline_with_its_amounts_reduced(
    name: str, tmp_path: Path, home: Path, hub: ManifestHub
) -> None:
    document = FILES[name]
    data = tmp_path / "data"
    data.mkdir()
    add_folder_tasks(data, document)
    asked = llms(document)
    variables = {section["key_variable"] for section in asked.values()}
    environment = {**hub.environment(home / "huggingface"), **dict.fromkeys(variables, KEY)}
    file = SHIPPED[name]
    fetching = Project(tmp_path, home, environment)
    fetched = finished(fetching.start("fetch", str(file), "--data", str(data)))
    assert (fetched.code, fetched.err.count("error")) == (0, 0)
    project = Project(tmp_path, home, {**environment, "HF_HUB_OFFLINE": "1"})
    arguments = [*smaller(document), "--data", str(data), "--seeds", "0", "--set", "runtime.threads=1"]

    with chat_service() as base_url:
        # The only change besides amounts: requests go to an LLM on this machine.
        arguments += [text for key in asked for text in ("--set", f"{key}.base_url={base_url}")]
        called = finished(project.start("run", str(file), *arguments))

    assert (called.code, called.errors) == (0, [])
    (report,) = (tmp_path / "reports" / name).glob("*")
    variants = load_experiment(file).variants
    rows = {variant.name for variant in variants}
    tables = "".join(table.read_text(encoding="utf-8") for table in report.glob("*.md"))
    assert {row for row in rows if row not in tables} == set()
    assert "published" in tables or not document.get("table", {}).keys() & {"published", "costs"}
    if asked:
        assert all(note(key, section) in tables for key, section in asked.items())
        assert "reconstructed p" in tables or not has_reconstructed_prompts(document)
        assert (report / "costs.md").is_file()
        assert KEY not in called.out + called.err + tables
    settings = [setting for variant in variants for setting in variant.parameters.items()]
    commits = {str(value) for path, value in settings if path.endswith(".revision") and value}
    specs = [spec.read_text("utf-8") for spec in (project.home / "store").glob("artifacts/*/*/stage.json")]
    assert {commit for commit in commits if not any(commit in spec for spec in specs)} == set()


def test_gpl_on_scifact_runs_to_its_end_in_the_sandbox(tmp_path: Path, home: Path) -> None:
    project = Project(tmp_path, home)
    file = SHIPPED["gpl_scifact"]
    called = finished(project.start("run", str(file), "--profile", "sandbox", "--seeds", "0"))
    assert (called.code, called.errors) == (0, [])
