"""The step that mines hard negatives by sentence-transformers' miner."""

import random
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from applying import Sources, apply_steps
from pydantic import ValidationError
from rank_bm25 import BM25Okapi
from wording import refused

from synthbench.base.runtime import Runtime
from synthbench.data.dataset import SyntheticDataset
from synthbench.data.records import Pair, RecordKind, Triplet
from synthbench.models.pretrained import Pretrained
from synthbench.preparing import mining
from synthbench.preparing.mining import DrawNegatives, MineNegatives

if TYPE_CHECKING:
    from numpy.typing import NDArray

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
    from synthbench.models.building import build_encoder
    from synthbench.models.encoder import LengthBatchedEncoder

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


def test_anchors_are_encoded_as_queries_and_positives_as_passages(monkeypatch: pytest.MonkeyPatch) -> None:
    class Recorded:
        def __init__(self, kind: str = "sentence") -> None:
            self.kind = kind

        def encode(self, sentences: Sequence[str]) -> "NDArray[np.float32]":
            read[self.kind] = {*read.get(self.kind, set()), *sentences}
            return np.array([[len(sentence), 1.0] for sentence in sentences], np.float32)

        @property
        def of_queries(self) -> "Recorded":
            return Recorded("query")

        @property
        def of_passages(self) -> "Recorded":
            return Recorded("passage")

    read: dict[str, set[str]] = {}
    monkeypatch.setattr(Sources, "encoder", lambda self, need: Recorded(), raising=False)
    mined(data())
    anchors, positives = (set(texts) for texts in zip(*PAIRS, strict=True))
    assert read == {"query": anchors, "passage": positives}


def test_a_second_miner_adds_to_the_negatives_of_the_first() -> None:
    first = data(Triplet)
    found = mined(first, number=2, add=True)
    assert all(one.negative == "Nothing." for one in found)
    assert [one.further_negatives for one in found] == [one.negatives for one in mined(first, number=2)]


def test_several_negatives_are_ordered_by_nearness_and_survive_storage() -> None:
    one = mined(data(), number=3)[0]
    assert len(one.negatives) == 3
    assert one.negative == PAIRS[1][1]
    stored = SyntheticDataset.create(RecordKind.TRIPLET, [one])
    assert next(iter(stored)) == one
    assert one.texts() == (one.anchor, one.positive, *one.negatives)


def test_a_triplets_own_negative_is_replaced() -> None:
    assert "Nothing." not in {one.negative for one in mined(data(Triplet))}


def test_the_nearest_texts_can_be_skipped() -> None:
    first = mined(data())[0]
    assert mined(data(), skip=1)[0].negative != first.negative


def test_texts_that_are_too_near_are_no_negatives_and_records_without_negatives_are_counted() -> None:
    step = MineNegatives.model_validate({"encoder": ENCODER, "max_score": -0.9})
    found = apply_steps(data(), [step])
    assert len(found) == 0
    assert found.manifest.dropped == {"mine-negatives: no negative passes": 5}


def test_the_order_of_records_does_not_matter() -> None:
    shuffled = list(data())
    random.Random(1).shuffle(shuffled)
    expected = {one.id: one.negatives for one in mined(data(), number=2)}
    assert {one.id: one.negatives for one in mined(data().with_records(shuffled), number=2)} == expected


WORDY = [
    ("what is the red dog doing?", "The red dog sleeps."),
    ("where does a dog sleep?", "A dog sleeps in the yard."),
    ("who saw the red kite?", "Anna saw the red kite!"),
    ("who saw the red kite?", "It was Anna."),
    ("how old is Ben?", "Ten."),
]


def mined_by_words(**options: object) -> dict[str, tuple[str, ...]]:
    records = [
        Pair(id=str(number), anchor=anchor, positive=positive)
        for number, (anchor, positive) in enumerate(WORDY)
    ]
    step = MineNegatives.model_validate({"miner": "bm25", **options})
    return {
        one.id: one.negatives
        for one in apply_steps(SyntheticDataset.create(RecordKind.PAIR, records), [step])
    }


def test_bm25_finds_the_passages_with_the_rarest_common_words_whatever_their_punctuation() -> None:
    expected = {}
    texts = sorted({positive for _, positive in WORDY})
    plain = [re.findall(r"\w+", text.lower()) for text in texts]
    okapi = BM25Okapi(plain)
    for number, (anchor, _) in enumerate(WORDY):
        scores = okapi.get_scores(re.findall(r"\w+", anchor.lower()))
        own = {positive for other, positive in WORDY if other == anchor}
        ranked = sorted(zip(-scores, texts, strict=True))
        expected[str(number)] = tuple(text for score, text in ranked if score < 0 and text not in own)

    found = mined_by_words(number=5)

    assert found == {key: texts for key, texts in expected.items() if texts}
    assert found["2"] == found["3"] == ("The red dog sleeps.", "A dog sleeps in the yard.")[: len(found["2"])]
    assert "4" not in found  # no other passage has a word of its question


def test_bm25_skips_the_nearest_and_needs_no_encoder() -> None:
    every = mined_by_words(number=5)
    passed = {key: texts[1:3] for key, texts in every.items() if texts[1:3]}
    assert passed
    assert mined_by_words(number=2, skip=1) == passed
    assert MineNegatives.model_validate({"miner": "bm25"}).is_plain


@pytest.mark.parametrize(
    ("options", "facts"),
    [
        ({}, ("encoder", "miner: bm25")),
        ({"miner": "bm25", "encoder": ENCODER}, ("bm25", "encoder")),
        ({"miner": "bm25", "max_score": 0.9}, ("bm25", "max_score")),
        ({"miner": "bm25", "margin": 0.1}, ("bm25", "margin")),
    ],
)
def test_each_miner_accepts_only_its_own_settings(options: dict[str, object], facts: tuple[str, ...]) -> None:
    with refused(*facts, kind=ValidationError):
        MineNegatives.model_validate(options)


def test_the_miner_is_in_the_identity_only_if_it_is_bm25() -> None:
    assert "miner" not in MineNegatives(encoder=ENCODER).model_dump()
    assert MineNegatives(miner="bm25").model_dump()["miner"] == "bm25"


MINERS = [{"encoder": ENCODER}, {"miner": "bm25"}]


@pytest.mark.parametrize("miner", MINERS)
@pytest.mark.parametrize("skip", [0, 1])
def test_an_anchor_that_is_another_pairs_positive_is_not_its_own_negative(
    miner: dict[str, object], skip: int
) -> None:
    asked = "what is the way to cook red rice on the stove?"
    texts = [
        ("how do I cook red rice?", asked),
        (asked, "is there a way to cook red rice?"),
        ("who likes rice?", "Anna likes the red rice."),
        ("who cooks?", "Ben likes the way to the red stove."),
    ]
    records = [Pair(id=str(n), anchor=one, positive=other) for n, (one, other) in enumerate(texts)]
    step = MineNegatives.model_validate({**miner, "number": 2, "skip": skip})

    found = {one.id: one for one in apply_steps(SyntheticDataset.create(RecordKind.PAIR, records), [step])}

    assert set(found["1"].negatives) <= {"Anna likes the red rice.", "Ben likes the way to the red stove."}
    assert len(found["1"].negatives) == 2 - skip
    assert all(one.anchor not in one.negatives for one in found.values())


class OnACircle:
    """An encoder of numbers in degrees: near numbers have near vectors."""

    of_queries = of_passages = property(lambda self: self)

    def encode(self, sentences: Sequence[str]) -> "NDArray[np.float32]":
        angles = np.radians([float(re.sub("[a-z]", "", sentence)) for sentence in sentences])
        return np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)


@pytest.mark.parametrize("options", [{"max_score": 0.9}, {"margin": 0.2}, {"max_score": 0.9, "number": 3}])
@pytest.mark.parametrize("skip", [0, 2])
def test_the_nearest_permitted_text_is_found_however_many_are_too_near(
    options: dict[str, float], skip: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Sources, "encoder", lambda self, need: OnACircle(), raising=False)
    angles = [0.1 * number for number in range(60)] + [60.0, 71.0, 83.0, 96.0, 110.0]
    records = [Pair(id=str(n), anchor=f"{a}", positive=f"{a + 0.01}p") for n, a in enumerate(angles)]
    given = SyntheticDataset.create(RecordKind.PAIR, records)

    found = {one.id: one.negatives for one in mined(given, skip=skip, **options)}

    for number, angle in enumerate(angles):
        cosines = [float(np.cos(np.radians(angle - other - 0.01))) for other in angles]
        most = min(options.get("max_score", 1.0), cosines[number] - options.get("margin", 0.0))
        ranked = sorted((-each, n) for n, each in enumerate(cosines) if each <= most and n != number)
        chosen = ranked[skip : skip + int(options.get("number", 1))]
        assert found.get(str(number), ()) == tuple(records[n].positive for _, n in chosen)


def test_only_anchors_that_lack_negatives_are_searched_further(monkeypatch: pytest.MonkeyPatch) -> None:
    from sentence_transformers import util

    searched: list[set[str]] = []
    whole = util.mine_hard_negatives

    def recorded(data: Any, *args: Any, **options: Any) -> Any:
        searched.append(set(data["anchor"]))
        return whole(data, *args, **options)

    monkeypatch.setattr(util, "mine_hard_negatives", recorded)
    monkeypatch.setattr(Sources, "encoder", lambda self, need: OnACircle(), raising=False)
    angles = [0.1 * number for number in range(30)] + [60.0, 110.0]
    records = [Pair(id=str(n), anchor=f"{a}", positive=f"{a + 0.01}p") for n, a in enumerate(angles)]
    mined(SyntheticDataset.create(RecordKind.PAIR, records), max_score=0.9)

    assert searched == [set(map(str, angles)), set(map(str, angles[:-2]))]


def test_a_search_in_parts_finds_the_same_negatives(monkeypatch: pytest.MonkeyPatch) -> None:
    at_once = mined(data(), number=2)
    monkeypatch.setattr(mining, "NEIGHBOURS", 1)
    assert mined(data(), number=2) == at_once


@pytest.mark.parametrize("options", [{"number": 6}, {"number": 6, "max_score": 1.0}])
def test_an_encoders_missing_negatives_are_measured(options: dict[str, object]) -> None:
    found = apply_steps(data(), [MineNegatives.model_validate({"encoder": ENCODER, **options})])
    assert [len(one.negatives) for one in found] == [4] * 5
    assert found.manifest.measured == {"mine-negatives: negatives fewer than asked for": 10.0}


def test_texts_without_a_common_word_are_no_negatives_and_missing_ones_are_measured() -> None:
    texts = [("red kite", "a red kite"), ("red dog", "the dog"), ("我喜欢狗", "狗很好"), ("old", "boat")]
    records = [Pair(id=str(n), anchor=one, positive=other) for n, (one, other) in enumerate(texts)]
    step = MineNegatives.model_validate({"miner": "bm25", "number": 2})

    found = apply_steps(SyntheticDataset.create(RecordKind.PAIR, records), [step])

    assert {one.id: one.negatives for one in found} == {"1": ("a red kite",)}
    assert found.manifest.measured == {"mine-negatives: negatives fewer than asked for": 7.0}
    assert found.manifest.dropped == {"mine-negatives: no negative passes": 3}


def test_drawn_negatives_replace_their_triplets_and_drop_none() -> None:
    triplets = [
        Triplet(id=str(number), anchor=anchor, positive=positive, negative="no", further_negatives=("never",))
        for number, (anchor, positive) in enumerate(PAIRS)
    ]
    found = apply_steps(SyntheticDataset.create(RecordKind.TRIPLET, triplets), [DrawNegatives(number=2)])
    assert len(found) == 10
    assert found.manifest.dropped == {"draw-negatives": 0}


def test_too_few_texts_are_refused_in_one_line() -> None:
    one = SyntheticDataset.create(RecordKind.PAIR, [Pair(anchor="a", positive="b")])
    with refused("mine-negatives", "1 different", "more than 1"):
        mined(one)
