"""A stranger's artifacts with valid checksums: their code never runs, and they stop no run."""

import json
import shutil
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hub_cache import tiny_bert
from small_experiment import Project, new_project

from synthbench.base.durability import CHECKSUM, seal
from synthbench.base.runtime import Runtime
from synthbench.engine.objects import FolderObjects
from synthbench.engine.patience import PatientObjects
from synthbench.engine.store import recorded_files
from synthbench.models.artifact import load

Change = Callable[[Path, Path], None]
"""Changes the files of a trained model's artifact, so that to load it writes the marker."""


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny base model."""
    folder = tmp_path_factory.mktemp("models") / "bert"
    folder.mkdir()
    tiny_bert(folder)
    return folder


def victim(folder: Path, bert: Path) -> Project:
    """Return a project with one row whose store is a shared folder."""
    (folder / "network").mkdir(parents=True)
    project = new_project(folder, bert)
    base = f'{{model: "{bert}", num_layers: 1, static: false, static_dimension: null}}'
    project.change("variants:\n", f"variants:\n  plain:\n    train.base: {base}\n")
    project.change("seeds: [0, 1]", "seeds: [0]")
    return Project(project.folder, project.home, {"SYNTHBENCH_STORE": str(folder / "network")})


def run(project: Project) -> Any:
    return project.call("run", "small.yaml", "--variant", "plain", "--output", "out")


class Peer:
    """Another user with write access to the store."""

    def __init__(self, network: Path) -> None:
        self.objects = PatientObjects(FolderObjects(network))
        self.network = network

    def commits(self, kind: str) -> dict[str, dict[str, Any]]:
        """Return the records of all artifacts of a kind, by key."""
        keys = [entry.key for entry in self.objects.list("artifacts/")]
        records = {key: json.loads(self.objects.read(key)) for key in keys}
        return {key: record for key, record in records.items() if record["spec"]["kind"] == kind}

    def rewrite(self, kind: str, change: Change, scratch: Path, marker: Path) -> None:
        """Change the files of all artifacts of a kind, and seal them again."""
        for key, record in self.commits(kind).items():
            identity = key.split("/")[2]
            folder = scratch / identity
            shutil.copytree(self.network / "attempts" / identity / record["attempt"], folder)
            change(folder, marker)
            attempt = uuid.uuid4().hex
            shutil.copytree(folder, self.network / "attempts" / identity / attempt)
            kept = {
                name: value for name, value in record.items() if name not in (CHECKSUM, "files", "attempt")
            }
            record = {**kept, "attempt": attempt, "files": recorded_files(folder)}
            self.objects.write(key, seal(record).encode())

    def identities(self, kind: str) -> Iterator[str]:
        """Yield the identities of all artifacts of a kind."""
        return (key.split("/")[2] for key in self.commits(kind))

    def forget(self, kind: str) -> None:
        """Remove the commits of a kind, so that it is computed again."""
        self.objects.delete(self.commits(kind))


def code(marker: Path) -> str:
    return f"""
import pathlib
pathlib.Path({str(marker)!r}).write_text("ran")
from transformers import BertConfig, BertModel
class OwnConfig(BertConfig):
    model_type = "own-bert"
class OwnModel(BertModel):
    config_class = OwnConfig
"""


def _edit(file: Path, **changes: Any) -> None:
    found = json.loads(file.read_text("utf-8")) if file.exists() else {}
    file.write_text(json.dumps({**found, **changes}), encoding="utf-8")


def asks_for_code(folder: Path, marker: Path) -> None:
    """Ask in model.json for what auto_map names."""
    (folder / "model" / "evil.py").write_text(code(marker), encoding="utf-8")
    names = {"AutoConfig": "evil.OwnConfig", "AutoModel": "evil.OwnModel"}
    _edit(folder / "model" / "config.json", model_type="own-bert", auto_map=names)
    _edit(folder / "model.json", trust_remote_code=True)


def test_a_peers_artifact_runs_no_code_in_a_run_that_allows_none(tmp_path: Path, bert: Path) -> None:
    """The issue's attack, end to end: the seal is a plain hash, so anybody's artifact has a right one."""
    project, marker = victim(tmp_path, bert), tmp_path / "marker"
    assert run(project).code == 0
    (table,) = (project.folder / "out").rglob("table.csv")
    before = table.read_bytes()
    peer = Peer(tmp_path / "network")
    peer.rewrite("train", asks_for_code, tmp_path / "scratch", marker)
    peer.forget("evaluate")
    newcomer = Project(project.folder, tmp_path / "home of another", project.environment)
    called = run(newcomer)
    assert not marker.exists()
    assert (called.code, called.errors) == (0, []), called.err
    assert "is damaged" in called.err
    assert "Python code of its own" in called.err
    assert table.read_bytes() == before
    # The refused code is a real attack: it runs if the user allows the folder.
    load(tmp_path / "scratch" / next(peer.identities("train")), Runtime(device="cpu"), trusted=None)
    assert marker.exists()
