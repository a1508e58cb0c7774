"""The sandbox's checkpoints: what ships is whole, and damage is told."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from wording import refused

from synthbench.base.durability import file_hash
from synthbench.models import reference
from synthbench.worlds.sandbox import shipped

LARGEST = 12_000_000


@pytest.fixture
def checkpoints(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of shipped checkpoints with one, "lm", that may be damaged."""
    folder = tmp_path / "checkpoints"
    (folder / "lm").mkdir(parents=True)
    (folder / "lm" / "config.json").write_text("{}", encoding="utf-8")
    (folder / "lm" / "model.safetensors").write_bytes(b"weights")
    checksums = {file.name: file_hash(file) for file in (folder / "lm").iterdir()}
    (folder / shipped.CHECKSUMS_FILE).write_text(json.dumps({"lm": checksums}), encoding="utf-8")
    monkeypatch.setattr(shipped, "CHECKPOINTS", folder)
    shipped.forget()
    yield folder
    shipped.forget()


def test_a_shipped_checkpoint_is_a_model_name(checkpoints: Path) -> None:
    assert reference.resolve("sandbox/lm") == str(checkpoints / "lm")


def test_a_checkpoint_that_is_not_there_names_the_nearest(checkpoints: Path) -> None:
    with refused("sandbox/ml"):
        reference.resolve("sandbox/ml")


def test_a_damaged_file_and_a_missing_one_are_named(checkpoints: Path) -> None:
    (checkpoints / "lm" / "model.safetensors").write_bytes(b"weighta")
    with refused("sandbox/lm", "model.safetensors"):
        reference.resolve("sandbox/lm")
    shipped.forget()
    (checkpoints / "lm" / "model.safetensors").unlink()
    with refused("model.safetensors"):
        reference.resolve("sandbox/lm")
    (checkpoints / shipped.CHECKSUMS_FILE).write_text("{", encoding="utf-8")
    with refused("checksums.json"):
        reference.resolve("sandbox/lm")


def test_what_ships_is_whole_and_small() -> None:
    known = json.loads((shipped.CHECKPOINTS / shipped.CHECKSUMS_FILE).read_text(encoding="utf-8"))
    assert set(known) == {"lm", "encoder", "cross-encoder"}
    for name in known:
        assert shipped.folder(f"sandbox/{name}") == shipped.CHECKPOINTS / name
    files = [path for path in shipped.CHECKPOINTS.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) < LARGEST
