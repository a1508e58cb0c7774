import math
from collections import Counter
from pathlib import Path

import pytest
import torch
from toy_training import toy_pairs
from wording import refused

from synthbench.base.errors import UserError
from synthbench.data.dataset import SyntheticDataset
from synthbench.data.records import RecordKind, Sentence
from synthbench.models.building import build_cross_encoder, build_encoder
from synthbench.models.pretrained import Pretrained
from synthbench.training.objectives import BINARY_CROSS_ENTROPY, COSINE_SIMILARITY, training_table


def test_cosine_similarity_is_the_mean_squared_difference_of_cosine_and_score(bert: Path) -> None:
    model = build_encoder(Pretrained(model=str(bert), static=True, static_dimension=2), 0, "cpu")
    with torch.no_grad():
        for word, vector in {"fish0": (1.0, 0.0), "ship0": (0.0, 2.0), "star0": (3.0, 4.0)}.items():
            model[0].embedding.weight[model[0].tokenizer.token_to_id(word)] = torch.tensor(vector)
    features = [model.preprocess(column) for column in (["fish0", "fish0"], ["ship0", "star0"])]
    loss = COSINE_SIMILARITY.loss(model)(features, torch.tensor([0.5, 1.0]))
    # Cosines 0 and 3/5: ((0 - 0.5)^2 + (0.6 - 1)^2) / 2
    assert loss.item() == pytest.approx((0.25 + 0.16) / 2, abs=1e-6)


def test_binary_cross_entropy_is_that_of_the_sigmoid_and_the_score(bert: Path) -> None:
    model = build_cross_encoder(Pretrained(model=str(bert)), 0, "cpu").eval()
    pairs = [("fish0 fish1", "ship0"), ("star0", "star1 star2")]
    probabilities = model.predict(pairs)
    scores = (0.25, 1.0)
    expected = -sum(
        score * math.log(probability) + (1 - score) * math.log(1 - probability)
        for score, probability in zip(scores, probabilities, strict=True)
    ) / len(scores)
    columns = [list(column) for column in zip(*pairs, strict=True)]
    loss = BINARY_CROSS_ENTROPY.loss(model)(columns, torch.tensor(scores))
    assert loss.item() == pytest.approx(expected, abs=1e-6)


def test_the_training_table_holds_the_training_part_of_all_data_in_order() -> None:
    first, held_out, second = toy_pairs(3), toy_pairs(5, seed=1, split="dev"), toy_pairs(2, seed=2)
    table = training_table([first, held_out, second], COSINE_SIMILARITY)
    assert table.column_names == ["sentence1", "sentence2", "score"]
    assert table["sentence1"].to_pylist() == first.column("sentence1") + second.column("sentence1")


def test_both_orders_repeats_gold_pairs_but_not_synthetic_ones() -> None:
    gold, held_out = toy_pairs(3), toy_pairs(5, seed=1, split="dev")
    silver = toy_pairs(2, seed=2, method="augsbert")
    rows = [
        tuple(row.values())
        for row in training_table([gold, silver, held_out], COSINE_SIMILARITY, both_orders=True).to_pylist()
    ]
    as_given = [(pair.sentence1, pair.sentence2, pair.score) for pair in (*gold, *silver)]
    assert rows == [*as_given, *((second, first, score) for first, second, score in as_given[:3])]


def test_data_without_training_records_are_an_error() -> None:
    with refused("5", "split", "'train'"):
        training_table([toy_pairs(5, split="dev")], COSINE_SIMILARITY)
    with refused("train"):
        training_table([], COSINE_SIMILARITY)


def test_data_that_can_not_become_scored_pairs_are_refused() -> None:
    sentences = SyntheticDataset.create(RecordKind.SENTENCE, [Sentence(sentence="fish0 fish1")])
    with pytest.raises(UserError):
        training_table([sentences], COSINE_SIMILARITY)


def test_a_weight_is_the_number_of_times_a_record_occurs_per_epoch() -> None:
    data = toy_pairs(10)
    once = training_table([data, data], COSINE_SIMILARITY)
    assert training_table([data, data], COSINE_SIMILARITY, weights=(1.0, 1.0)).equals(once)
    texts = [row["sentence1"] + row["sentence2"] for row in once.to_pylist()[:10]]
    weighted = training_table([data], COSINE_SIMILARITY, weights=(2.3,)).to_pylist()
    found = Counter(row["sentence1"] + row["sentence2"] for row in weighted)
    assert len(weighted) == 23
    assert sum(found.values()) - 2 * len(texts) == 3
    half = training_table([data], COSINE_SIMILARITY, weights=(0.5,)).num_rows
    assert half == 5
    shuffled = data.with_records(reversed(list(data)))
    both = [
        training_table([each], COSINE_SIMILARITY, weights=(0.5,)).to_pylist() for each in (data, shuffled)
    ]
    assert sorted(map(str, both[0])) == sorted(map(str, both[1]))
