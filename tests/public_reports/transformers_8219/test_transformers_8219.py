"""huggingface/transformers #8219: layers that a checkpoint lacks are random, after a mere warning.

A checkpoint without a weight of the network itself is no base, whatever it is to become. New heads and
poolers are drawn by the seed, as before.
"""

from collections.abc import Callable
from pathlib import Path

import pytest
from hub_cache import tiny_bert
from safetensors.torch import load_file, save_file
from torch import Tensor
from wording import refused

from synthbench.models.building import build_cross_encoder, build_encoder, build_language_model
from synthbench.models.pretrained import Pretrained

Weights = dict[str, Tensor]
CHANGES: dict[str, Callable[[Weights], Weights]] = {
    "no second layer": lambda found: {name: each for name, each in found.items() if ".layer.1." not in name},
    "one weight": lambda found: {
        n: each for n, each in found.items() if not n.endswith("2.output.dense.bias")
    },
    "other names": lambda found: {name.replace("bert.", "model.", 1): each for name, each in found.items()},
    "no embeddings": lambda found: {
        n: each for n, each in found.items() if "decoder" not in n and "word" not in n
    },
    "no positions": lambda found: {n: each for n, each in found.items() if "position_embeddings" not in n},
    "no norm of the embeddings": lambda found: {
        n: each for n, each in found.items() if "embeddings.LayerNorm" not in n
    },
}
BUILDERS: dict[str, Callable[[Pretrained], object]] = {
    "encoder": lambda base: build_encoder(base, 0, "cpu"),
    "cross-encoder": lambda base: build_cross_encoder(base, 0, "cpu"),
    "masked": lambda base: build_language_model(base, 0),
}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bert")
    tiny_bert(folder)
    return folder


@pytest.fixture
def changed(whole: Path, tmp_path: Path, request: pytest.FixtureRequest) -> Pretrained:
    for file in whole.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    weights = CHANGES[request.param](load_file(whole / "model.safetensors"))
    save_file(weights, tmp_path / "model.safetensors", {"format": "pt"})
    return Pretrained(model=str(tmp_path))


@pytest.mark.parametrize("changed", CHANGES, indirect=True)
def test_a_checkpoint_without_all_weights_is_refused_as_a_base(changed: Pretrained) -> None:
    with refused(changed.model, "lack"):
        build_encoder(changed, 0, "cpu")


@pytest.mark.parametrize("kind", ["cross-encoder", "masked"])
@pytest.mark.parametrize("changed", ["no second layer", "no positions"], indirect=True)
def test_every_model_kind_refuses_a_checkpoint_without_all_weights(changed: Pretrained, kind: str) -> None:
    with refused(changed.model, "lack"):
        BUILDERS[kind](changed)


@pytest.mark.parametrize("kind", BUILDERS)
def test_requested_new_heads_and_fewer_layers_are_accepted(whole: Path, kind: str) -> None:
    assert BUILDERS[kind](Pretrained(model=str(whole), num_layers=2))
