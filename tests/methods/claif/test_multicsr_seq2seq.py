"""Stage 1 of MultiCSR by a sequence-to-sequence model, as the paper's Flan-T5."""

import json
from typing import Any

import pytest
from contract.stand_ins import Context, sentences
from pydantic import ValidationError
from small_models import random_t5
from wording import refused

from synthbench.api import Failure, GeneratedData, Seq2SeqModel, Triplet, Unit
from synthbench_multicsr import MultiCSR, MultiCSRTriplets
from synthbench_multicsr.prompts import SHIPPED

SENTENCES = ("A man plays a guitar.", "Rain falls.", "Two dogs run along the wet beach.")


@pytest.fixture(scope="module")
def t5(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("t5")
    random_t5(folder)
    return str(folder)


def writer(t5: str, **options: Any) -> MultiCSRTriplets:
    settings = {"seq2seq": {"model": t5, "max_new_tokens": 9}, **options}
    return MultiCSRTriplets.model_validate_json(json.dumps(settings))


def written(method: MultiCSRTriplets, finished: frozenset[str] = frozenset()) -> dict[str, Unit]:
    context = Context({})
    context.finished_units = finished  # type: ignore[misc]
    units = method.generate({"sentences": sentences(*SENTENCES)}, context)
    return {unit.key: unit for unit in units}


def answering(monkeypatch: pytest.MonkeyPatch, answer: str) -> list[str]:
    """Let the model write one text, "{number}" in it replaced; return the prompts that it reads."""
    prompts: list[str] = []

    def texts(_: Seq2SeqModel, inputs: list[str], keys: list[list[str]], seed: int) -> list[list[str]]:
        prompts.extend(inputs)
        return [[answer.format(number=f"{key} {seed}")] for (key,) in keys]

    monkeypatch.setattr(Seq2SeqModel, "texts", texts)
    return prompts


def test_each_sentence_is_prompted_with_both_instructions_and_their_exemplars(
    t5: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    prompts = answering(monkeypatch, "It says {number}.")
    units = written(writer(t5))
    assert len(prompts) == 2 * len(SENTENCES)
    shipped = SHIPPED.read()
    for (asked,) in (shipped.positive or (), shipped.negative or ()):
        own = [prompt for prompt in prompts if prompt.startswith(asked.instruction)]
        assert len(own) == len(SENTENCES)
        assert all(given in prompt for prompt in own for each in asked.exemplars for given in each.values())
        assert {prompt.rpartition("Input: ")[2] for prompt in own} == {
            f"{sentence} Output:" for sentence in SENTENCES
        }
    (triplet,) = next(iter(units.values())).records
    assert isinstance(triplet, Triplet)
    assert triplet.anchor in SENTENCES
    assert triplet.positive.startswith("It says positive|")
    assert triplet.negative.startswith("It says negative|")
    assert triplet.generator == t5


def test_a_resumed_run_writes_the_same_texts_as_an_undisturbed_one(t5: str) -> None:
    whole = written(writer(t5))
    done = frozenset(list(whole)[:1])
    assert written(writer(t5), done) == {key: unit for key, unit in whole.items() if key not in done}
    assert written(writer(t5, seed=1)) != whole


@pytest.mark.parametrize("answer", ["", "* * *", "I'm sorry, but I can't help with that."])
def test_unusable_texts_are_failures_with_a_reason(
    t5: str, answer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    answering(monkeypatch, answer)
    for unit in written(writer(t5)).values():
        (failure,) = unit.records
        assert isinstance(failure, Failure)
        assert failure.reason.startswith("positive: ")


def test_the_curation_reads_the_methods_triplets_and_ignores_the_llms_settings(t5: str) -> None:
    curated = MultiCSR.model_validate_json(json.dumps({"seq2seq": {"model": t5}, "seed": 3}))
    (need,) = curated.needs().values()
    assert isinstance(need, GeneratedData)
    stage1 = MultiCSRTriplets.model_validate_json(json.dumps(need.config))
    assert (stage1.seed, stage1.needs_llm(), curated.needs_llm()) == (3, False, True)
    assert stage1.revisions().keys() == {t5}
    assert "seq2seq" not in MultiCSR().model_dump()


@pytest.mark.parametrize("setting", ["temperature", "top_p"])
def test_the_llms_settings_are_refused_with_a_seq2seq_model(t5: str, setting: str) -> None:
    with refused(setting, "seq2seq", kind=ValidationError):
        writer(t5, **{setting: 0.5})
