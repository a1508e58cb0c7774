import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from pydantic import ValidationError
from toy_training import TOPICS, context_in, largest_difference, spearman, toy_pairs, weights
from wording import refused

from synthbench.base.runtime import Runtime
from synthbench.data.dataset import SyntheticDataset
from synthbench.data.records import RecordKind, Sentence, Triplet
from synthbench.models.artifact import load
from synthbench.models.building import build_encoder
from synthbench.models.encoder import LengthBatchedEncoder
from synthbench.models.interfaces import Encoder
from synthbench.models.pair_scorer import CosineScorer
from synthbench.models.pretrained import Pretrained
from synthbench.plugins.loading import component
from synthbench.plugins.model_contracts import TrainingContext
from synthbench.training.objectives import contrastive, training_table
from synthbench.training.simcse import SimCSE
from synthbench.training.teaching import training_records

BASE = {"model": "org/name"}
STATIC = {**BASE, "static": True}
TEXTS = ["fish0 fish1 fish2", "ship0", "star1 star2"]


@pytest.fixture(autouse=True)
def _one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.set_num_threads(1)


def triplets(number: int) -> SyntheticDataset:
    """Triplets about two topics, the hard negative about the other."""
    records = []
    for row in range(number):
        fish, ship = (TOPICS[(row + turn) % 2] for turn in range(2))
        records.append(
            Triplet(
                anchor=f"{fish[row % 6]} {fish[row % 5]}",
                positive=f"{fish[row % 4]} {fish[row % 3]} {fish[row % 6]}",
                negative=f"{fish[row % 5]} {ship[row % 6]} {ship[row % 5]}",
                source_id=str(row),
            )
        )
    return SyntheticDataset.create(RecordKind.TRIPLET, records)


def simcse(bert: Path, **fields: Any) -> SimCSE:
    settings = {"base": {"model": str(bert)}, "learning_rate": 1e-3, "batch_size": 8, **fields}
    return SimCSE.model_validate(settings)


def trained(bert: Path, folder: Path, data: SyntheticDataset, **fields: Any) -> TrainingContext:
    context = context_in(folder)
    simcse(bert, **{"max_steps": 6, **fields}).train([data], context)
    return context


def vectors(context: TrainingContext) -> np.ndarray[Any, Any]:
    """The evaluators' encoder."""
    encoder = load(context.output, context.runtime)
    assert isinstance(encoder, Encoder)
    return encoder.encode(TEXTS)


def token_vectors(bert: Path, context: TrainingContext) -> list[torch.Tensor]:
    """What the trained transformer makes of each text's tokens, computed beside sentence-transformers."""
    from transformers import AutoTokenizer, BertModel

    tokenizer = AutoTokenizer.from_pretrained(bert)
    transformer = BertModel.from_pretrained(context.output / "model").eval()
    with torch.no_grad():
        return [transformer(**tokenizer(text, return_tensors="pt")).last_hidden_state[0] for text in TEXTS]


def test_the_entry_point_loads_simcse() -> None:
    assert component("trainers", "simcse") is SimCSE


def test_the_defaults_are_those_of_the_papers() -> None:
    defaults = SimCSE.model_validate({"base": BASE})
    assert (defaults.temperature, defaults.hard_negative_weight) == (0.05, 0.0)
    assert (defaults.batch_size, defaults.learning_rate, defaults.max_length) == (512, 5e-5, 32)
    assert (defaults.scheduler, defaults.warmup_ratio, defaults.weight_decay) == ("linear", 0.0, 0.0)
    assert (defaults.pooling, defaults.learns_from) == ("cls", "triplet")


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ({"base": STATIC, "pooling": "mean", "learns_from": "sentence"}, "needs a base with layers: dropout"),
        ({"base": STATIC}, "is the mean of its token embeddings; say pooling: mean"),
        ({"base": STATIC, "pooling": "mean", "dropout": 0.1}, "dropout would change nothing"),
        (
            {"base": STATIC, "pooling": "mean", "mlm_weight": 0.1, "chunk_size": 8},
            "mlm_weight and chunk_size would change nothing: the base has no layers",
        ),
        ({"base": {**BASE, "pooling": "mean"}}, "`pooling` beside `base`"),
        ({"max_length": 2}, "an input of 2 tokens holds no text"),
        ({"learns_from": "pair", "hard_negative_weight": 1.0}, "a pair has no hard negative"),
        ({"learns_from": "sentence", "hard_negative_weight": 1.0}, "a sentence has no hard negative"),
        ({"learns_from": "sentence", "positives_from": 0.5}, "a sentence is its own positive"),
        ({"learns_from": "sentence", "batch_size": 1}, "batch_size 1 leaves a sentence without negatives"),
        ({"learns_from": "ranking"}, "'triplet', 'pair' or 'sentence'"),
        ({"temperature": 0.0}, "greater than 0"),
        ({"chunk_size": 0}, "greater than or equal to 1"),
        ({"mlp": "sometimes"}, "'kept', 'training' or 'without'"),
    ],
)
def test_a_wrong_value_is_refused(fields: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ValidationError, match=complaint):
        SimCSE.model_validate({"base": BASE, **fields})


def test_supervised_simcse_retains_cls_pooling_and_its_tanh_layer(bert: Path, tmp_path: Path) -> None:
    context = trained(bert, tmp_path, triplets(24))
    saved = weights(tmp_path)
    layer, bias = (
        next(saved[name] for name in saved if name.endswith(f"linear.{end}")) for end in ("weight", "bias")
    )
    expected = [torch.tanh(layer @ tokens[0] + bias).numpy() for tokens in token_vectors(bert, context)]
    assert np.abs(vectors(context) - np.stack(expected)).max() < 1e-5


def test_unsupervised_simcse_has_the_tanh_layer_only_in_training(bert: Path, tmp_path: Path) -> None:
    context = trained(bert, tmp_path / "usual", triplets(24), learns_from="sentence")
    expected = [tokens[0].numpy() for tokens in token_vectors(bert, context)]
    assert np.abs(vectors(context) - np.stack(expected)).max() < 1e-5
    trained(bert, tmp_path / "without", triplets(24), learns_from="sentence", mlp="without")
    assert largest_difference(tmp_path / "usual", tmp_path / "without") > 1e-4


@pytest.mark.parametrize("pooling", ["mean", "max"])
def test_other_poolings_are_retained_without_a_tanh_layer(bert: Path, tmp_path: Path, pooling: str) -> None:
    context = trained(bert, tmp_path, triplets(24), pooling=pooling)
    tokens = token_vectors(bert, context)
    expected = [one.mean(0) if pooling == "mean" else one.max(0).values for one in tokens]
    assert np.abs(vectors(context) - torch.stack(expected).numpy()).max() < 1e-5


def test_the_selected_model_is_the_saved_one(bert: Path, tmp_path: Path) -> None:
    dev = toy_pairs(30, seed=1)
    context = context_in(tmp_path, select=lambda scorer: spearman(scorer, dev))
    summary = simcse(bert, max_steps=9, evaluations=3, learns_from="sentence").train([triplets(24)], context)
    encoder = load(context.output, context.runtime)
    assert isinstance(encoder, Encoder)
    assert spearman(CosineScorer(encoder), dev) == pytest.approx(summary.dev_score, abs=1e-6)


def test_modules_after_the_bases_transformer_are_dropped(bert: Path, tmp_path: Path) -> None:
    context = trained(bert, tmp_path / "first", triplets(24))
    second = simcse(context.output / "model", pooling="mean").build(context_in(tmp_path / "second"))
    plain = build_encoder(Pretrained(model=str(context.output / "model"), pooling="mean"), 0, "cpu")
    assert [type(module).__name__ for module in second] == ["Transformer", "Pooling"]
    assert [type(module).__name__ for module in plain] == ["Transformer", "Pooling", "Dense"]


def test_the_bases_own_modules_are_kept_where_pooling_says_so(bert: Path, tmp_path: Path) -> None:
    first = trained(bert, tmp_path / "first", triplets(24))
    base = build_encoder(Pretrained(model=str(first.output / "model")), 0, "cpu")
    own = simcse(first.output / "model", pooling="own").build(context_in(tmp_path / "second"))
    assert [type(module).__name__ for module in own] == ["Transformer", "Pooling", "Dense"]
    assert np.allclose(own.eval().encode(TEXTS), base.encode(TEXTS))


@pytest.mark.parametrize(
    ("base", "fields"),
    [
        ({}, {}),
        ({"static": True}, {"pooling": "mean", "learning_rate": 1e-1}),
        ({"static": True}, {"pooling": "mean", "learning_rate": 1e-1, "mlp": "kept"}),
    ],
    ids=["transformer", "static", "static with a layer"],
)
def test_the_trained_model_separates_triplets(
    base: dict[str, Any], fields: dict[str, Any], bert: Path, tmp_path: Path
) -> None:
    data, base = triplets(40), {"model": str(bert), **base}
    context = trained(
        bert, tmp_path, data, **{"base": base, "max_steps": 60, "learning_rate": 5e-3, **fields}
    )

    def share_nearer(model: Encoder) -> float:
        scorer = CosineScorer(model)
        sides = (
            scorer.score(list(zip(data.column("anchor"), data.column(side), strict=True)))
            for side in ("positive", "negative")
        )
        return float(np.mean(np.subtract(*sides) > 0))

    untrained = LengthBatchedEncoder(build_encoder(Pretrained.model_validate(base), 0, "cpu"))
    after = load(context.output, context.runtime)
    assert isinstance(after, Encoder)
    assert share_nearer(after) > 0.95 > share_nearer(untrained)


def test_the_hard_negative_weight_and_the_temperature_affect_training(bert: Path, tmp_path: Path) -> None:
    trained(bert, tmp_path / "plain", triplets(24), no_duplicates=True)
    for name, fields in {
        "weight": {"hard_negative_weight": 2.0},
        "temperature": {"temperature": 0.5},
    }.items():
        trained(bert, tmp_path / name, triplets(24), no_duplicates=True, **fields)
        assert largest_difference(tmp_path / "plain", tmp_path / name) > 1e-4


def test_the_dropout_defaults_to_that_of_the_base(bert: Path, tmp_path: Path) -> None:
    assert dropouts(simcse(bert).build(context_in(tmp_path))) == {0.1}
    assert dropouts(simcse(bert, dropout=0.3).build(context_in(tmp_path))) == {0.3}
    model = simcse(bert, dropout=0.0).build(context_in(tmp_path)).train()
    first, second = (model(model.preprocess(TEXTS))["sentence_embedding"] for _ in range(2))
    assert torch.equal(first, second)


def test_a_saved_model_with_only_token_embeddings_is_a_static_base_too(bert: Path, tmp_path: Path) -> None:
    embeddings = tmp_path / "embeddings"
    build_encoder(Pretrained(model=str(bert), static=True), 0, "cpu").save(str(embeddings))
    with refused(str(embeddings), "learns_from", "sentence"):
        simcse(embeddings, learns_from="sentence", pooling="mean").build(context_in(tmp_path))
    model = simcse(embeddings, pooling="mean").build(context_in(tmp_path))
    assert [type(module).__name__ for module in model] == ["StaticEmbedding"]


def dropouts(model: torch.nn.Module) -> set[float]:
    return {layer.p for layer in model.modules() if isinstance(layer, torch.nn.Dropout)}


def test_training_on_sentences_needs_dropout(bert: Path, tmp_path: Path) -> None:
    with refused("positive"):
        simcse(bert, learns_from="sentence", dropout=0.0).build(context_in(tmp_path))


@pytest.mark.parametrize(("settings", "least"), [({}, 0.9), ({"positives_from": 0.5}, 0.5)])
def test_scored_pairs_are_converted_for_training(
    settings: dict[str, float], least: float, bert: Path, tmp_path: Path
) -> None:
    data = toy_pairs(60)
    context = context_in(tmp_path)
    summary = simcse(bert, learns_from="pair", max_steps=2, **settings).train([data], context)
    assert summary.num_records == sum(score >= least for score in data.column("score"))


def test_the_default_threshold_is_not_in_the_identity(bert: Path) -> None:
    assert "positives_from" not in simcse(bert).model_dump()
    assert simcse(bert, positives_from=0.5).model_dump()["positives_from"] == 0.5


def test_data_that_can_not_be_converted_are_refused(bert: Path, tmp_path: Path) -> None:
    sentences = SyntheticDataset.create(RecordKind.SENTENCE, [Sentence(sentence="fish0")])
    with refused("sentence", "triplet"):
        simcse(bert).train([sentences], context_in(tmp_path))


def with_further(data: SyntheticDataset, every: int) -> SyntheticDataset:
    """Give every n-th triplet a further negative: a word that no other text has."""
    return data.with_records(
        replace(one, further_negatives=("whale", "shark")[: row % 3]) if row % every == 0 else one
        for row, one in enumerate(data)
    )


@pytest.mark.parametrize("fields", [{}, {"chunk_size": 3}, {"no_duplicates": True}, {"base": "static"}])
def test_records_may_have_different_numbers_of_negatives(
    bert: Path, tmp_path: Path, fields: dict[str, Any]
) -> None:
    if fields.get("base") == "static":
        fields = {"base": {"model": str(bert), "static": True}, "pooling": "mean"}
    made = {
        every: trained(bert, tmp_path / str(every), with_further(triplets(24), every), **fields)
        for every in (1, 100)
    }
    several, one = (vectors(context) for context in made.values())
    assert np.isfinite(several).all()
    assert not np.array_equal(several, one)


def test_without_further_negatives_the_training_table_has_no_further_columns() -> None:
    objective = contrastive(RecordKind.TRIPLET, 0.05)
    assert training_table([triplets(4)], objective).column_names == ["anchor", "positive", "negative"]
    table = training_table([with_further(triplets(4), 1), triplets(2)], objective)
    texts = ["anchor", "positive", "negative", "negative2", "negative3"]
    assert table.column_names == [*texts, "num_negatives", "temperature"]
    assert table["num_negatives"].to_pylist() == [1, 2, 3, 1, 1, 1]
    assert all(math.isnan(temperature) for temperature in table["temperature"].to_pylist())
    assert training_records(table, None, None, Runtime())[0].column_names == [*texts, "label"]


def test_a_part_may_have_its_own_temperature(bert: Path, tmp_path: Path) -> None:
    objective = contrastive(RecordKind.TRIPLET, 0.05)
    table = training_table([triplets(2), triplets(1)], objective, temperatures=[0.05, 0.5])
    assert table["temperature"].to_pylist() == [*[pytest.approx(0.05)] * 2, 0.5]
    made = {}
    for name, temperatures in {"none": (), "own": (None,), "other": (1.0,)}.items():
        context = replace(context_in(tmp_path / name), temperatures=temperatures)
        fields = {"base": {"model": str(bert)}, "max_steps": 3, "batch_size": 6, "learning_rate": 1e-2}
        SimCSE.model_validate({**fields, "learns_from": "triplet"}).train([triplets(12)], context)
        made[name] = vectors(context)
    assert np.allclose(made["none"], made["own"], atol=1e-6)
    assert not np.allclose(made["none"], made["other"], atol=1e-4)


def test_the_training_table_has_a_column_for_each_negative() -> None:
    table = training_table([with_further(triplets(4), 1), triplets(2)], contrastive(RecordKind.TRIPLET, 0.05))
    assert table["negative2"].to_pylist() == ["", "whale", "whale", "", "", ""]
