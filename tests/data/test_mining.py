"""The step that mines hard negatives by sentence-transformers' miner."""

import random

import pytest
from applying import Sources, apply_steps
from wording import refused

from synthbench.data.dataset import SyntheticDataset
from synthbench.data.records import Pair, RecordKind, Triplet
from synthbench.models.pretrained import Pretrained
from synthbench.preparing.mining import MineNegatives
from synthbench.runtime import Runtime

PAIRS = [
    ("A man plays a guitar.", "A man is playing the guitar."),
    ("A woman plays a guitar.", "A woman is playing the guitar."),
    ("Two dogs run on the beach.", "Some dogs are running on the beach."),
    ("A dog runs on the beach.", "A dog is running on the beach."),
    ("It rains in the north.", "There is rain in the north."),
]
ENCODER = {"base": {"model": "sandbox/encoder"}}


@pytest.fixture(autouse=True)
def _encoder(monkeypatch: pytest.MonkeyPatch) -> None:
    from synthbench.models.encoder import LengthBatchedEncoder
    from synthbench.models.pretrained import build_encoder

    model = LengthBatchedEncoder(build_encoder(Pretrained(model="sandbox/encoder"), 0, "cpu"))
    monkeypatch.setattr(Sources, "encoder", lambda self, need: model, raising=False)
    assert Runtime(device="cpu")


def data(kind: type[Pair | Triplet] = Pair) -> SyntheticDataset:
    more = {"negative": "Nothing."} if kind is Triplet else {}
    records = [
        kind(id=str(number), anchor=anchor, positive=positive, **more)
        for number, (anchor, positive) in enumerate(PAIRS)
    ]
    return SyntheticDataset.create(records[0].kind, records)


def mined(given: SyntheticDataset, **options: object) -> list[Triplet]:
    found = apply_steps(given, [MineNegatives.model_validate({"encoder": ENCODER, **options})])
    assert found.kind is RecordKind.TRIPLET
    return list(found)


def test_pairs_become_triplets_with_the_nearest_other_positive() -> None:
    found = mined(data())
    assert [one.id for one in found] == ["0", "1", "2", "3", "4"]
    assert [one.negative for one in found[:4]] == [PAIRS[number][1] for number in (1, 0, 3, 2)]
    assert all(one.negative != one.positive and not one.further_negatives for one in found)


def test_a_second_miner_adds_to_the_negatives_of_the_first() -> None:
    first = data(Triplet)
    found = mined(first, number=2, add=True)
    assert all(one.negative == "Nothing." for one in found)
    assert [one.further_negatives for one in found] == [one.negatives for one in mined(first, number=2)]


def test_several_negatives_are_kept_nearest_first_and_survive_storage() -> None:
    one = mined(data(), number=3)[0]
    assert len(one.negatives) == 3
    assert one.negative == PAIRS[1][1]
    stored = SyntheticDataset.create(RecordKind.TRIPLET, [one])
    assert next(iter(stored)) == one
    assert one.texts() == (one.anchor, one.positive, *one.negatives)


def test_a_triplets_own_negative_is_replaced() -> None:
    assert "Nothing." not in {one.negative for one in mined(data(Triplet))}


def test_near_texts_may_be_passed_over() -> None:
    first = mined(data())[0]
    assert mined(data(), skip=1)[0].negative != first.negative


def test_what_is_too_near_is_no_negative_and_records_without_any_are_counted() -> None:
    step = MineNegatives.model_validate({"encoder": ENCODER, "max_score": -0.9})
    found = apply_steps(data(), [step])
    assert len(found) == 0
    assert found.manifest.dropped == {"mine-negatives: no negative passes": 5}


def test_the_order_of_records_makes_no_difference() -> None:
    shuffled = list(data())
    random.Random(1).shuffle(shuffled)
    expected = {one.id: one.negatives for one in mined(data(), number=2)}
    assert {one.id: one.negatives for one in mined(data().with_records(shuffled), number=2)} == expected


def test_too_few_texts_are_one_line() -> None:
    one = SyntheticDataset.create(RecordKind.PAIR, [Pair(anchor="a", positive="b")])
    with refused("mine-negatives", "1 different", "more than 1"):
        mined(one)
