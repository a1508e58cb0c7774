"""Texts from scratch: first texts for pairs, or texts of classes."""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from dino_context import FOLLOWS, Context, by_key, in_order
from small_models import scripted_model

from synthbench.api import Failure, Runtime, Sentence, Unit
from synthbench_dino import DINOTexts

CLASSES = {
    "sport": {"instruction": 'A headline about sport: "', "counterlabels": ["food"]},
    "food": {"instruction": 'A headline about food: "'},
    "weather": {"instruction": 'Task: Write a headline about the weather.\nHeadline: "'},
}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("scripted")
    scripted_model(FOLLOWS, folder)
    return str(folder)


@pytest.fixture(scope="module")
def units(model: str) -> dict[str, Unit]:
    return by_key(dino_texts(model), {})


def dino_texts(model: str, **settings: Any) -> DINOTexts:
    written = {"language_model": {"model": model}, "labels": CLASSES, "size": 20, "max_new_tokens": 6}
    return DINOTexts.model_validate({**written, "top_k": 0, **settings})


def test_each_label_gets_an_equal_share(units: Mapping[str, Unit]) -> None:
    labels = Counter(record.label for unit in units.values() for record in unit.records)
    assert labels == {"sport": 7, "food": 7, "weather": 6}


def test_a_text_has_its_provenance(units: Mapping[str, Unit], model: str) -> None:
    assert sorted(units, key=int) == [unit.key for unit in in_order(units)] == list(map(str, range(20)))
    instructions = {
        "sport": 'A headline about sport: "',
        "food": 'A headline about food: "',
        "weather": "Task: Write a headline about the weather.",
    }
    written = [(unit, record) for unit in units.values() for record in unit.records]
    assert sum(isinstance(record, Sentence) for _, record in written) > 15
    for unit, record in written:
        assert (record.source_id, record.method, record.generator) == (unit.key, "dino-texts", model)
        assert (record.instruction, record.seed) == (instructions[record.label], 0)


def test_a_text_ends_with_its_quotation_mark_and_is_one_line(units: Mapping[str, Unit]) -> None:
    for unit in units.values():
        (record,) = unit.records
        if isinstance(record, Sentence):
            assert record.sentence.strip()
            assert not set('"\n') & set(record.sentence)


@pytest.mark.parametrize("sequences", [1, 7, 64])
def test_the_number_of_sequences_does_not_change_the_texts(
    model: str, units: Mapping[str, Unit], sequences: int
) -> None:
    context = Context(Runtime(device="cpu", threads=1, sequences=sequences))
    assert by_key(dino_texts(model), {}, context) == units


def test_a_larger_size_starts_with_the_texts_of_a_smaller_one(model: str, units: Mapping[str, Unit]) -> None:
    larger = by_key(dino_texts(model, size=26), {})
    assert len(larger) == 26
    assert {key: larger[key] for key in units} == units


def test_texts_of_one_prompt_differ() -> None:
    written = by_key(dino_texts("sandbox/lm", size=12, max_new_tokens=20, top_p=0.9, decay=0.0), {})
    texts = {text for unit in written.values() for record in unit.records for text in record.texts()}
    assert len(texts) > 6


def test_finished_units_are_not_generated_again(model: str, units: Mapping[str, Unit]) -> None:
    finished = frozenset(sorted(units)[::2])
    rest = by_key(dino_texts(model), {}, Context(finished_units=finished))
    assert rest == {key: unit for key, unit in units.items() if key not in finished}


def test_a_text_that_can_not_be_generated_is_a_failure(tmp_path: Path) -> None:
    scripted_model({'"': {"c": 1.0}, "c": {"c": 1.0}}, tmp_path)
    for unit in by_key(dino_texts(str(tmp_path), tries=3), {}).values():
        (failure,) = unit.records
        assert isinstance(failure, Failure)
        assert (failure.reason, failure.raw_text, failure.attempts) == ("3 unclosed", "cccccc", 3)
        assert unit.dropped == {"unclosed": 3}


def test_dropped_attempts_are_counted(units: Mapping[str, Unit]) -> None:
    assert {reason for unit in units.values() for reason in unit.dropped} == {"unclosed", "newline", "empty"}
    for unit in units.values():
        assert isinstance(unit.records[0], Sentence) or sum(unit.dropped.values()) == 5
