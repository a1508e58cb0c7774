"""Pairs: the language model writes second texts for first texts, some per label."""

import dataclasses
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from dino_context import FOLLOWS, X1, Context, by_key, in_order, sentences
from pydantic import ValidationError
from small_models import scripted_model
from wording import refused

from synthbench.api import (
    Failure,
    GeneratedData,
    Runtime,
    ScoredPair,
    SyntheticDataset,
    Unit,
    UserError,
)
from synthbench_dino import DINO, DINOTexts

LABELS = ("1", "0.5", "0")
FIRST_TEXTS = (X1, "the dog eats.", "two boys play the piano.", 'she says "no" twice.', "a cat")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The folder of a model that looks at the latest byte only."""
    folder = tmp_path_factory.mktemp("scripted")
    scripted_model(FOLLOWS, folder)
    return str(folder)


@pytest.fixture(scope="module")
def x1() -> SyntheticDataset:
    return sentences(*FIRST_TEXTS)


@pytest.fixture(scope="module")
def units(model: str, x1: SyntheticDataset) -> dict[str, Unit]:
    """The output for all first texts."""
    return by_key(dino(model), {"x1": x1})


def dino(model: str, **settings: Any) -> DINO:
    written = {"language_model": {"model": model}, "task": "sts", "max_new_tokens": 6, "top_k": 0}
    return DINO.model_validate({**written, **settings})


def pairs(unit: Unit) -> list[ScoredPair]:
    return [record for record in unit.records if isinstance(record, ScoredPair)]


def failures(unit: Unit) -> list[Failure]:
    return [record for record in unit.records if isinstance(record, Failure)]


def test_each_first_text_and_label_gives_a_unit(units: Mapping[str, Unit], x1: SyntheticDataset) -> None:
    assert set(units) == {f"{text.id}|{label}" for text in x1 for label in LABELS}


def test_a_pair_has_its_provenance(units: Mapping[str, Unit], x1: SyntheticDataset, model: str) -> None:
    phrases = {
        "1": "mean the same thing",
        "0.5": "are somewhat similar",
        "0": "are on completely different topics",
    }
    for text in x1:
        for label, phrase in phrases.items():
            for pair in pairs(units[f"{text.id}|{label}"]):
                assert (pair.sentence1,) == text.texts()
                assert pair.score == float(label)
                assert (pair.label, pair.source_id, pair.method) == (label, text.id, "dino")
                assert (pair.generator, pair.seed, pair.split) == (model, 0, "train")
                assert pair.instruction == f"Task: Write two sentences that {phrase}."


def test_second_texts_are_closed_distinct_single_lines_and_not_the_first_text(
    units: Mapping[str, Unit],
) -> None:
    assert sum(len(pairs(unit)) for unit in units.values()) > 15
    for unit in units.values():
        written = [pair.sentence2 for pair in pairs(unit)]
        assert len(set(written)) == len(written) <= 2
        assert all(text.strip() and '"' not in text and "\n" not in text for text in written)
        assert all(pair.sentence2 != pair.sentence1 for pair in pairs(unit))


def test_units_follow_the_order_of_first_texts_and_labels(
    units: Mapping[str, Unit], x1: SyntheticDataset
) -> None:
    assert [unit.key for unit in in_order(units)] == [f"{text.id}|{name}" for text in x1 for name in LABELS]
    assert [unit.position for unit in in_order(units)] == list(range(len(x1) * len(LABELS)))


@pytest.mark.parametrize("sequences", [1, 7, 64])
def test_the_number_of_sequences_does_not_change_the_texts(
    model: str, x1: SyntheticDataset, units: Mapping[str, Unit], sequences: int
) -> None:
    context = Context(Runtime(device="cpu", threads=1, sequences=sequences))
    assert by_key(dino(model), {"x1": x1}, context) == units


def test_other_first_texts_and_their_order_do_not_change_a_text(
    model: str, x1: SyntheticDataset, units: Mapping[str, Unit]
) -> None:
    backwards = sentences(*FIRST_TEXTS[3:0:-1])
    for key, unit in by_key(dino(model), {"x1": backwards}).items():
        assert dataclasses.replace(unit, position=0) == dataclasses.replace(units[key], position=0)


def test_finished_units_are_not_generated_again(
    model: str, x1: SyntheticDataset, units: Mapping[str, Unit]
) -> None:
    finished = frozenset(sorted(units)[::2])
    context = Context(finished_units=finished)
    rest = by_key(dino(model), {"x1": x1}, context)
    assert rest == {key: unit for key, unit in units.items() if key not in finished}
    assert context.progress.num_done == context.progress.tasks[0][1] == len(units)


def test_a_finished_run_generates_nothing(
    model: str, x1: SyntheticDataset, units: Mapping[str, Unit]
) -> None:
    assert by_key(dino(model), {"x1": x1}, Context(finished_units=frozenset(units))) == {}


def test_another_seed_gives_other_texts(model: str, x1: SyntheticDataset, units: Mapping[str, Unit]) -> None:
    other = by_key(dino(model, seed=1), {"x1": x1})
    assert texts(other) != texts(units)
    assert {pair.seed for unit in other.values() for pair in pairs(unit)} == {1}


def texts(units: Mapping[str, Unit]) -> dict[str, list[str]]:
    return {key: [pair.sentence2 for pair in pairs(unit)] for key, unit in units.items()}


class TestWhatComesToNothing:
    def test_attempts_are_counted_by_reason(self, units: Mapping[str, Unit]) -> None:
        reasons = {"unclosed", "newline", "empty", "identical", "duplicate"}
        assert {reason for unit in units.values() for reason in unit.dropped} == reasons
        for unit in units.values():
            num_attempts = len(pairs(unit)) + sum(unit.dropped.values())
            assert len(pairs(unit)) == 2 or num_attempts == 5

    def test_too_few_usable_texts_are_one_failure(self, model: str, x1: SyntheticDataset) -> None:
        hard = dino(model, samples=4, tries=4)
        failed = [(unit, failures(unit)) for unit in by_key(hard, {"x1": x1}).values()]
        assert any(pairs(unit) for unit, noted in failed if noted), "what there is stays"
        for unit, noted in failed:
            assert len(noted) == (len(pairs(unit)) < 4)
            for failure in noted:
                assert (failure.attempts, failure.method, failure.seed) == (4, "dino", 0)
                assert f"{failure.source_id}|{failure.label}" == unit.key
                assert failure.instruction.startswith("Task: Write two sentences that ")
                counted = {word: int(n) for n, word in re.findall(r"(\d+) (\w+)", failure.reason)}
                assert counted.pop("kept", 0) == len(pairs(unit))
                assert counted == dict(unit.dropped)

    def test_a_failure_holds_the_last_generated_text(self, tmp_path: Path) -> None:
        scripted_model({'"': {"c": 1.0}, "c": {"c": 1.0}}, tmp_path)
        for unit in by_key(dino(str(tmp_path)), {"x1": sentences("a dog")}).values():
            (failure,) = unit.records
            assert isinstance(failure, Failure)
            assert (failure.reason, failure.raw_text, failure.attempts) == ("5 unclosed", "cccccc", 5)
            assert unit.dropped == {"unclosed": 5}

    @pytest.mark.parametrize("text", ["two\nlines", "an end\n", "a\rreturn", "a separator\u2028in it"])
    def test_a_first_text_with_a_line_break_gives_failures(self, model: str, text: str) -> None:
        broken = sentences("a dog", text)
        units = by_key(dino(model), {"x1": broken})
        assert [unit.position for unit in in_order(units)] == list(range(6))
        for unit in in_order(units)[:3]:
            assert unit.records[0].source_id == next(iter(broken)).id
            assert pairs(unit)
        for unit, label in zip(in_order(units)[3:], LABELS, strict=True):
            (failure,) = failures(unit)
            assert (failure.reason, failure.attempts) == ("the first text holds a line break", 0)
            assert (failure.label, failure.source_id) == (label, list(broken)[1].id)

    def test_a_first_text_longer_than_the_context_fails_and_the_others_succeed(self, model: str) -> None:
        units = in_order(by_key(dino(model), {"x1": sentences("long " * 100, "a dog")}))
        for unit in units[:3]:
            (failure,) = unit.records
            assert isinstance(failure, Failure)
            assert failure.reason == "prompt and max_new_tokens together are longer than the model's context"
            assert failure.attempts == 0
        assert all(pairs(unit) for unit in units[3:])

    def test_failures_are_not_retried_by_the_next_run(self, model: str) -> None:
        x1 = sentences("two\nlines", "long " * 100)
        units = by_key(dino(model), {"x1": x1})
        assert by_key(dino(model), {"x1": x1}, Context(finished_units=frozenset(units))) == {}


def test_a_first_text_may_contain_quotation_marks(units: Mapping[str, Unit], x1: SyntheticDataset) -> None:
    quoted = next(text for text in x1 if '"' in text.texts()[0])
    assert all(pairs(units[f"{quoted.id}|{label}"]) for label in LABELS)


def test_progress_and_results_are_reported(model: str, x1: SyntheticDataset) -> None:
    context = Context()
    units = by_key(dino(model), {"x1": x1}, context)
    assert context.progress.tasks == [("writing pairs", len(units))]
    assert context.progress.num_done == len(units)
    num_pairs = sum(len(pairs(unit)) for unit in units.values())
    assert re.match(
        rf"  {num_pairs} pairs, [\d.,]+ per second; dropped: \d+ \w+, ", context.progress.said[-1]
    )


@pytest.mark.parametrize("dtype", ["fp32", "bf16", "fp16"])
def test_tables_say_that_texts_in_half_precision_depend_on_batch_and_device(dtype: str) -> None:
    language_model = {"model": "gpt2-xl", "dtype": dtype}
    labels = {"sport": {"instruction": 'Task: Write about sport.\nText: "'}}
    methods = (
        DINO.model_validate({"language_model": language_model, "task": "sts"}),
        DINOTexts.model_validate({"language_model": language_model, "size": 1, "labels": labels}),
    )
    told = {tuple(method.table_notes()) for method in methods}
    note = (
        f"DINO's texts were written in {dtype}. Its rounding depends on batch size and device, which are no"
        " part of a stage's identity: another machine may write other texts, and each row that is trained on"
        " them may score otherwise."
    )
    assert told == ({()} if dtype == "fp32" else {(note,)})


def test_counterlabels_matter_only_with_decay() -> None:
    x1 = sentences("A man plays the guitar.", "The dog eats bread.")
    debiased, plain = (
        texts(by_key(dino("sandbox/lm", max_new_tokens=20, decay=decay), {"x1": x1}))
        for decay in (100.0, 0.0)
    )
    prompts = dino("sandbox/lm").task.model_dump(mode="json")["labels"]
    without = {"labels": {name: {**label, "counterlabels": []} for name, label in prompts.items()}}
    assert texts(by_key(dino("sandbox/lm", max_new_tokens=20, task=without), {"x1": x1})) == plain
    assert all((debiased[key] == plain[key]) for key in plain if key.endswith("|1"))
    assert any((debiased[key] != plain[key]) for key in plain if key.endswith("|0"))


class TestFirstTextsToBeWritten:
    def test_generated_first_texts_are_a_dependency_of_the_method(self, model: str) -> None:
        settings = {"seed": 3, "tries": 4, "x1": {"size": 10, "top_p": 0.8}}
        (name, need), *others = dino(model, decay=50.0, **settings).needs().items()
        assert (name, others) == ("x1", [])
        assert isinstance(need, GeneratedData)
        assert (need.method, dict(need.sources)) == ("dino-texts", {})
        config = need.config
        assert config["language_model"]["model"] == model
        assert (config["size"], config["decay"], config["top_k"], config["top_p"]) == (10, 0.0, 0, 0.8)
        assert (config["seed"], config["tries"], config["max_new_tokens"]) == (3, 4, 6)
        instructions = [label["instruction"] for label in config["labels"].values()]
        assert list(config["labels"]) == list(LABELS)
        assert all(re.fullmatch(r'Task: [^\n]+\nSentence 1: "', prompt) for prompt in instructions)
        assert not any(label["counterlabels"] for label in config["labels"].values())

    def test_first_texts_do_not_depend_on_settings_for_second_texts(self, model: str) -> None:
        one, other = (dino(model, x1={"size": 10}, decay=decay).needs() for decay in (0.0, 100.0))
        assert one == other

    def test_first_texts_from_a_source_are_no_dependency(self, model: str) -> None:
        assert dino(model).needs() == {}

    def test_generated_first_texts_get_second_texts(
        self, model: str, x1: SyntheticDataset, units: Mapping[str, Unit]
    ) -> None:
        scratch = dino(model, x1={"size": len(x1)})
        assert by_key(scratch, {}, Context(needed=x1)) == units

    @pytest.mark.parametrize(
        ("settings", "given", "message"),
        [
            ({}, (), "no first texts: give a source of sentences as the role x1, or have them written with"),
            ({"x1": {"size": 3}}, ("x1",), "the role x1 gives the first texts, and `x1:` has them written"),
        ],
    )
    def test_first_texts_have_exactly_one_origin(
        self, model: str, settings: dict[str, Any], given: Sequence[str], message: str
    ) -> None:
        with pytest.raises(UserError, match=message):
            dino(model, **settings).check_sources(given)
        with pytest.raises(UserError, match=message):
            next(dino(model, **settings).generate({name: sentences("a") for name in given}, Context()))

    def test_first_texts_may_come_from_a_source_or_be_generated(self, model: str) -> None:
        dino(model).check_sources({"x1"})
        dino(model, x1={"size": 3}).check_sources(())


def test_more_samples_than_tries_are_refused(model: str) -> None:
    with refused("3", "4", kind=ValidationError):
        dino(model, samples=4, tries=3)
