"""CLAIF's masks and MultiCSR's curation, worked out by hand."""

from typing import Any

import pytest
from contract.stand_ins import Context
from pydantic import ValidationError
from wording import refused

from synthbench.api import RecordKind, SyntheticDataset, Triplet, Unit
from synthbench_claif.masking import MASK, masked
from synthbench_multicsr import MultiCSR

WORDS = "one two three four five six seven eight nine ten"


@pytest.mark.parametrize(("rate", "number"), [(0.1, 1), (0.3, 3), (0.35, 4), (0.8, 8), (1.0, 10)])
def test_the_share_of_masked_words_is_rounded_up_and_other_words_stay(rate: float, number: int) -> None:
    words = masked(WORDS, rate, 0.0, 7, "id").split()
    assert words.count(MASK) == number
    assert all(word in (MASK, old) for word, old in zip(words, WORDS.split(), strict=True))


def test_consecutive_masks_become_one() -> None:
    assert masked(WORDS, 1.0, 1.0, 7, "id") == MASK


@pytest.mark.parametrize(
    ("grades", "kept"),
    [((5, 1), "b"), ((3, 2), "b"), ((1, 5), "c"), ((3, 3), ""), ((2, 0), ""), ((5, 4), "")],
)
def test_grades_swap_or_drop_a_triplet(grades: tuple[int, int], kept: str) -> None:
    triplet = Triplet(anchor="a", positive="b", negative="c")
    data = {"triplets": SyntheticDataset.create(RecordKind.TRIPLET, [triplet])}
    answers = {"Sentence 2: b": grades[0], "Sentence 2: c": grades[1]}

    def reply(request: object) -> str:
        text = request.messages[-1]["content"]  # type: ignore[attr-defined]
        return next(str(grade) for line, grade in answers.items() if line in text)

    (unit,) = MultiCSR().generate({}, Context(data, reply))  # type: ignore[arg-type]
    assert isinstance(unit, Unit)
    assert [getattr(record, "positive", "") for record in unit.records] == ([kept] if kept else [])
    assert sum(unit.dropped.values()) == (not kept)
    for record in unit.records:
        assert isinstance(record, Triplet)
        assert record.scores == (max(grades) / 5, min(grades) / 5)


@pytest.mark.parametrize(
    ("grades", "thresholds"),
    [((0, 5), (3, 3, 1)), ((0, 10), (6, 6, 2)), ((0, 1), (0.6, 0.6, 0.2)), ((-5, 5), (1, 1, 2))],
)
def test_thresholds_that_are_not_given_fit_the_scale(
    grades: tuple[int, int], thresholds: tuple[float, float, float]
) -> None:
    method = MultiCSR.model_validate({"judge": {"grades": grades}})
    assert (method.positive_from, method.negative_to, method.gap) == thresholds
    assert MultiCSR.model_validate(method.model_dump()) == method
    given = MultiCSR.model_validate({"judge": {"grades": grades}, "positive_from": grades[1], "gap": 0.5})
    assert (given.positive_from, given.negative_to, given.gap) == (grades[1], thresholds[1], 0.5)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"positive_from": 6}, ("positive_from", "from 0 to 5", "is 6")),
        ({"negative_to": -1}, ("negative_to", "from 0 to 5", "is -1")),
        ({"gap": 5.5}, ("gap", "from 0 to 5", "is 5.5")),
        ({"judge": {"grades": (1, 3)}, "positive_from": 0}, ("positive_from", "from 1 to 3")),
        ({"judge": {"grades": (1, 3)}, "gap": 3}, ("gap", "from 0 to 2")),
    ],
)
def test_a_threshold_outside_the_scale_is_refused(settings: dict[str, Any], words: tuple[str, ...]) -> None:
    with refused(*words, kind=ValidationError):
        MultiCSR.model_validate(settings)
