"""Pickled weights that hold more than weights, or nothing: one line names the cure, no code is run."""

import os
import pickle
from pathlib import Path

import pytest
import torch
from hub_cache import tiny_bert
from wording import refused

from synthbench.models.building import build_encoder
from synthbench.models.pretrained import Pretrained


class Code:
    """An object that runs a command when it is unpickled."""

    def __init__(self, command: str) -> None:
        self.command = command

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.system, (self.command,)


@pytest.fixture(scope="module")
def without_weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pickled")
    tiny_bert(folder)
    (folder / "model.safetensors").unlink()
    return folder


@pytest.mark.parametrize("kind", ["code", "zipped code", "no weights", "garbage", "nothing"])
def test_pickled_weights_that_can_not_be_loaded_are_reported_with_advice(
    without_weights: Path, tmp_path: Path, kind: str
) -> None:
    file, code = without_weights / "pytorch_model.bin", Code(f"touch {tmp_path}/it-ran")
    if kind in ("zipped code", "no weights"):
        torch.save({"a": code} if kind == "zipped code" else [1, 2], file)
    else:
        file.write_bytes({"code": pickle.dumps(code), "garbage": b"garbage", "nothing": b""}[kind])
    with refused("model.safetensors") as caught:
        build_encoder(Pretrained(model=str(without_weights)), 0, "cpu")
    assert len(caught.value.messages) == 1
    assert "\n" not in caught.value.messages[0]
    assert not (tmp_path / "it-ran").exists()
