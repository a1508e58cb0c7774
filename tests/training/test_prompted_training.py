"""Prompts in training: anchors are read as queries, positives and negatives as passages."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from toy_training import context_in, toy_pairs

from synthbench.data.conversions import convert
from synthbench.data.dataset import SyntheticDataset
from synthbench.data.records import Pair, RecordKind, Triplet
from synthbench.models.artifact import load
from synthbench.models.interfaces import Encoder
from synthbench.plugins.model_contracts import Trainer
from synthbench.training.bi_encoder import BiEncoder
from synthbench.training.simcse import SimCSE

QUERY, PASSAGE = "fish0 ", "star1 "
PROMPTS = {"prompts": {"query": QUERY, "passage": PASSAGE}}
COURSE: dict[str, Any] = {"max_steps": 4, "batch_size": 6, "learning_rate": 1e-2}


def vectors(trainer: Trainer, data: SyntheticDataset, folder: Path, texts: list[str]) -> Any:
    torch.set_num_threads(1)
    context = context_in(folder)
    trainer.train([data], context)
    model = load(context.output, context.runtime)
    assert isinstance(model, Encoder)
    return model.encode(texts)


def triplets(query: str = "", passage: str = "") -> SyntheticDataset:
    pairs = [one for one in convert(toy_pairs(24), RecordKind.PAIR) if isinstance(one, Pair)]
    made = [
        Triplet(anchor=query + a.anchor, positive=passage + a.positive, negative=passage + b.positive)
        for a, b in zip(pairs, pairs[1:] + pairs[:1], strict=True)
    ]
    return SyntheticDataset.create(RecordKind.TRIPLET, made)


def test_simcse_encodes_anchors_as_queries_and_positives_and_negatives_as_passages(
    bert: Path, tmp_path: Path
) -> None:
    def trainer(**base: Any) -> SimCSE:
        return SimCSE.model_validate(
            {"base": {"model": str(bert), **base}, "learns_from": "triplet", **COURSE}
        )

    prompted = vectors(trainer(**PROMPTS), triplets(), tmp_path / "a", ["ship1 ship2"])
    by_hand = vectors(trainer(), triplets(QUERY, PASSAGE), tmp_path / "b", [QUERY + "ship1 ship2"])
    np.testing.assert_allclose(prompted, by_hand, atol=1e-6)


def test_both_sentences_of_a_scored_pair_are_encoded_as_queries(bert: Path, tmp_path: Path) -> None:
    data = toy_pairs(12)
    prefixed = data.with_records(
        [
            type(one)(sentence1=QUERY + one.sentence1, sentence2=QUERY + one.sentence2, score=one.score)
            for one in data
        ]
    )
    made = [
        vectors(
            BiEncoder.model_validate({"base": {"model": str(bert), **base}, **COURSE}),
            records,
            tmp_path / name,
            [text],
        )
        for name, base, records, text in (
            ("a", PROMPTS, data, "ship1"),
            ("b", {}, prefixed, QUERY + "ship1"),
        )
    ]
    np.testing.assert_allclose(*made, atol=1e-6)
