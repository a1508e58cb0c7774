"""Word vectors are a base like any other without layers."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from toy_training import TOPICS, context_in, largest_difference, toy_pairs
from wording import refused

from synthbench.models.artifact import load
from synthbench.models.interfaces import Encoder
from synthbench.plugins.model_contracts import Trainer
from synthbench.training.bi_encoder import BiEncoder
from synthbench.training.simcse import SimCSE

SETTINGS = {"learning_rate": 0.05, "epochs": 8}


@pytest.fixture
def vectors(tmp_path: Path) -> Path:
    draw = np.random.default_rng(0)
    words = [*(word for topic in TOPICS for word in topic), "unused"]
    lines = (f"{word} " + " ".join(f"{number:.4f}" for number in draw.normal(size=8)) for word in words)
    path = tmp_path / "vectors.txt"
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def trained(trainer: type[Trainer], vectors: Path, folder: Path, **fields: Any) -> Encoder:
    context = context_in(folder)
    settings = {"base": {"model": str(vectors)}, **SETTINGS, **fields}
    trainer.model_validate(settings).train([toy_pairs(90)], context)
    model = load(context.output, context.runtime)
    assert isinstance(model, Encoder)
    return model


@pytest.mark.parametrize(
    ("trainer", "fields"),
    [
        (BiEncoder, {}),
        (SimCSE, {"learns_from": "pair", "pooling": "mean", "batch_size": 10}),
    ],
    ids=["bi-encoder", "simcse"],
)
def test_sentences_of_one_topic_become_similar(
    trainer: type[Trainer], fields: dict[str, Any], vectors: Path, tmp_path: Path
) -> None:
    model = trained(trainer, vectors, tmp_path / "a", **fields)
    found = model.encode(["fish0 fish1", "fish2 fish3", "ship0 ship1", "ship2 unheard"])
    cosines = found @ found.T / np.outer(*[np.linalg.norm(found, axis=1)] * 2)
    assert min(cosines[0, 1], cosines[2, 3]) > max(cosines[0, 2], cosines[1, 3])
    trained(trainer, vectors, tmp_path / "b", **fields)
    assert largest_difference(tmp_path / "a", tmp_path / "b") == 0


def test_words_outside_the_training_sentences_keep_their_vectors(vectors: Path, tmp_path: Path) -> None:
    model = trained(BiEncoder, vectors, tmp_path, weight_decay=0.0)
    (line,) = (line for line in vectors.read_text("utf-8").splitlines() if line.startswith("unused"))
    assert model.encode(["unused"])[0] == pytest.approx([float(number) for number in line.split(" ")[1:]])


def test_settings_that_need_layers_are_refused(vectors: Path, tmp_path: Path) -> None:
    with refused("lora", "layers"):
        trained(BiEncoder, vectors, tmp_path, lora={})
    with refused("gradient_checkpointing", "layers"):
        trained(BiEncoder, vectors, tmp_path, gradient_checkpointing=True)
