"""What a publisher and a container need: metadata, paths of the Dockerfile, one version in all places."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

import synthbench

ROOT = Path(__file__).parents[1]
REPOSITORY = "https://git.example.org/synthbench"


def metadata(**addresses: str) -> dict[str, Any]:
    """Return the wheel's metadata if the publisher names these addresses."""
    others = {name: value for name, value in os.environ.items() if not name.startswith("SYNTHBENCH_")}
    done = subprocess.run(
        [sys.executable, "-m", "hatchling", "metadata"],
        cwd=ROOT,
        env=others | addresses,
        check=True,
        capture_output=True,
        text=True,
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_the_wheel_has_the_addresses_that_the_publisher_names() -> None:
    found = metadata(SYNTHBENCH_REPOSITORY=REPOSITORY, SYNTHBENCH_SITE="https://docs.example.org/")
    assert found["urls"]["Repository"] == REPOSITORY
    assert found["urls"]["Documentation"] == "https://docs.example.org"
    links = re.findall(r"\]\(([^)]+)\)", found["readme"]["text"])
    assert links
    assert all(link.startswith("https://") for link in links if not link.startswith("#"))
    assert f"]({REPOSITORY}/blob/main/docs/sandbox.md)" in found["readme"]["text"]


def test_without_an_address_the_wheel_names_none() -> None:
    found = metadata()
    assert not found.get("urls")
    assert found["readme"]["text"] == (ROOT / "README.md").read_text("utf-8")
    assert found["authors"]
    assert found["keywords"]
    assert "Typing :: Typed" in found["classifiers"]


def test_the_version_is_the_same_in_package_and_citation() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    assert citation["version"] == synthbench.__version__
    assert f"## {synthbench.__version__} " in (ROOT / "CHANGELOG.md").read_text("utf-8")


def test_the_dockerfile_copies_what_is_there_and_the_build_context_has_it() -> None:
    lines = (ROOT / "Dockerfile").read_text("utf-8").splitlines()
    copied = [name for line in lines if line.startswith("COPY ") for name in line.split()[1:-1]]
    sent = {name.removeprefix("!") for name in (ROOT / ".dockerignore").read_text("utf-8").split()}
    assert {"pyproject.toml", "synthbench", "hatch_build.py"} <= set(copied)
    assert all((ROOT / name).exists() for name in copied)
    assert set(copied) <= sent


@pytest.mark.parametrize("file", [".github/workflows/ci.yml", ".devcontainer/devcontainer.json"])
def test_what_they_call_exists(file: str) -> None:
    content = yaml.safe_load((ROOT / file).read_text("utf-8"))
    if file.endswith(".json"):
        assert content["postCreateCommand"] == "make .venv/installed"
    else:
        assert {"run": ".ci/run"} in content["jobs"]["run"]["steps"]
        assert os.access(ROOT / ".ci" / "run", os.X_OK)
