"""Each shipped experiment is valid, and names only what the hub's manifests list."""

from functools import cache
from pathlib import Path

import pytest
from manifest_hub import MANIFESTS, held
from shipped_files import SHIPPED, TOGETHER_EVERYTHING

from synthbench.config.experiment import Experiment
from synthbench.config.load import load_experiment
from synthbench.hub.repositories import HubRepository
from synthbench.pipeline.hub_needs import files_on_hub
from synthbench.pipeline.planning import make_sketch


@pytest.fixture(autouse=True)
def from_the_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let sets of test data name the hub, whatever folder of data this machine has."""
    monkeypatch.delenv("SYNTHBENCH_DATA", raising=False)


@cache
def experiment(file: Path) -> Experiment:
    return load_experiment(file)


@cache
def repositories(file: Path) -> list[HubRepository]:
    stages = make_sketch(experiment(file)).stages.values()
    return list(dict.fromkeys(files.repository for files in files_on_hub(stages)))


@pytest.mark.parametrize("file", SHIPPED.values(), ids=lambda path: path.stem)
def test_an_experiment_file_is_valid_and_named_like_its_file(file: Path) -> None:
    found = experiment(file)
    assert found.name == file.stem
    assert found.description
    assert found.variants


@pytest.mark.parametrize("file", SHIPPED.values(), ids=lambda path: path.stem)
def test_every_name_in_a_shipped_file_is_in_the_manifests_at_its_commit(file: Path) -> None:
    known = {(f"{each.kind[:-1]}", name): each for each in held() for name in each.names}
    commits = {(f"{each.kind[:-1]}", name, each.commit) for each in held() for name in each.names}
    for repository in repositories(file):
        name = repository.kind, repository.name
        assert name in known, (
            f"{repository.name} is in no manifest: look it up, and add it to {MANIFESTS.name}"
        )
        if repository.revision is None:
            assert known[name].is_main
        else:
            assert (*name, repository.revision) in commits


def test_the_files_that_are_fetched_name_everything_that_ships() -> None:
    fetched = {each for name in TOGETHER_EVERYTHING for each in repositories(SHIPPED[name])}
    assert {each for file in SHIPPED.values() for each in repositories(file)} == fetched
