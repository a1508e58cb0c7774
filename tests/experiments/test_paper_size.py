"""Experiments on the hub's models and data run as their files stand, on tiny stand-ins under the same names.

A new file with models at commits or data of the hub is tested without a line here, if `stand_ins.BUILDERS`
knows its models.
"""

from pathlib import Path
from typing import Any

import pytest
from hub_cache import HubCache
from small_experiment import Place, finished
from stand_ins import add_models, add_tasks, smaller

from synthbench.config.documents import read_document
from synthbench.config.load import load_experiment

EXPERIMENTS = Path(__file__).parents[2] / "experiments"


def documents() -> dict[str, dict[str, Any]]:
    """Return the experiment files that name something on the hub."""
    files = {file.stem: file.read_text(encoding="utf-8") for file in sorted(EXPERIMENTS.glob("*.yaml"))}
    return {
        name: read_document(EXPERIMENTS / f"{name}.yaml").data
        for name, text in files.items()
        if "revision: " in text or "origin: hub" in text
    }


FILES = documents()


def test_there_are_files_of_paper_size() -> None:
    assert {"table2_ablation", "dino_table1", "dino_table3", "dino_table5"} <= FILES.keys()


@pytest.mark.experiments
@pytest.mark.parametrize("name", FILES)
def test_a_file_of_paper_size_runs_with_its_amounts_reduced(
    name: str, tmp_path: Path, hub_cache: HubCache
) -> None:
    document = FILES[name]
    data = tmp_path / "data"
    data.mkdir()
    commits = add_models(hub_cache, document) | add_tasks(hub_cache, data, document)
    place = Place(tmp_path, tmp_path / "home", hub_cache.environment())
    file = EXPERIMENTS / f"{name}.yaml"
    arguments = [*smaller(document), "--data", str(data), "--seeds", "0", "--set", "runtime.threads=1"]

    called = finished(place.start("run", str(file), *arguments))

    assert (called.code, called.errors) == (0, [])
    (report,) = (tmp_path / "reports" / name).glob("*")
    rows = {variant.name for variant in load_experiment(file).variants}
    tables = "".join(table.read_text(encoding="utf-8") for table in report.glob("*.md"))
    assert {row for row in rows if row not in tables} == set()
    if (report / "table.md").is_file():
        assert "published" in (report / "table.md").read_text(encoding="utf-8")
    specs = [spec.read_text("utf-8") for spec in (place.home / "store").glob("artifacts/*/*/stage.json")]
    assert {commit for commit in commits if not any(commit in spec for spec in specs)} == set()
