"""Queries that a sequence-to-sequence model writes, as GPL's T5 does."""

import json
from typing import Any

import pytest
from contract.stand_ins import Context, sentences
from pydantic import ValidationError
from small_models import random_t5
from wording import refused

from synthbench.api import Failure, Pair, Seq2SeqModel, Unit
from synthbench_gpl import GPLQueries, method
from synthbench_gpl.method import SEQ2SEQ

PASSAGES = ("The Danube rises in the Black Forest.", "Rain falls.", "A dog runs at noon.", "Ten.")


@pytest.fixture(scope="module")
def t5(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("t5")
    random_t5(folder)
    return str(folder)


def queries(t5: str, **options: Any) -> GPLQueries:
    settings = {"seq2seq": {"model": t5, "max_new_tokens": 9}, "queries_per_passage": 3, **options}
    return GPLQueries.model_validate_json(json.dumps(settings))


def generated(writer: GPLQueries, finished: frozenset[str] = frozenset()) -> list[Unit]:
    context = Context({})
    context.finished_units = finished  # type: ignore[misc]
    return list(writer.generate({"passages": sentences(*PASSAGES)}, context))


def test_each_passage_is_a_unit_with_its_queries_and_no_llm_is_used(t5: str) -> None:
    units = sorted(generated(queries(t5)), key=lambda unit: unit.position)

    assert [unit.position for unit in units] == [0, 1, 2, 3]
    for unit, passage in zip(units, PASSAGES, strict=True):
        pairs = [record for record in unit.records if isinstance(record, Pair)]
        assert {pair.positive for pair in pairs} <= {passage}
        assert {(pair.generator, pair.instruction) for pair in pairs} <= {(t5, SEQ2SEQ)}
        assert len(unit.records) + sum(unit.dropped.values()) == 3
    assert not queries(t5).needs_llm()
    assert GPLQueries().needs_llm()


def test_a_resumed_run_writes_the_same_queries_as_an_uninterrupted_one(t5: str) -> None:
    whole = {unit.key: unit for unit in generated(queries(t5))}
    done = frozenset(list(whole)[:2])

    rest = generated(queries(t5), done)

    assert {unit.key: unit for unit in rest} == {key: unit for key, unit in whole.items() if key not in done}


def test_batches_and_chunks_change_no_query_but_another_seed_does(
    t5: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = {unit.key: unit.records for unit in generated(queries(t5))}
    monkeypatch.setattr(method, "AT_ONCE", 2)
    monkeypatch.setattr(method, "CHUNK", 2)

    assert {unit.key: unit.records for unit in generated(queries(t5))} == whole
    assert {unit.key: unit.records for unit in generated(queries(t5, seed=1))} != whole


def test_costs_are_estimated_before_the_run(t5: str) -> None:
    expected = queries(t5).expected({"passages": 100})
    more = queries(t5, queries_per_passage=6).expected({"passages": 100})

    assert expected.num_records == 300
    assert expected.work is not None
    assert more.work is not None
    assert 0 < (expected.work.operations or 0) < (more.work.operations or 0)
    assert queries(t5).asks({"passages": 100}) is None
    assert set(queries(t5).revisions()) == {t5}


@pytest.mark.parametrize("setting", [{"prompt": "few-shot"}, {"sampling": {"top_p": 0.5}}])
def test_the_llms_settings_are_refused_with_a_seq2seq_model(t5: str, setting: dict[str, Any]) -> None:
    with refused(next(iter(setting)), "seq2seq", kind=ValidationError):
        queries(t5, **setting)


def test_the_seq2seq_model_is_in_the_identity_only_if_it_is_used(t5: str) -> None:
    assert "seq2seq" not in GPLQueries().model_dump()
    assert queries(t5).model_dump()["seq2seq"]["top_k"] == 25


def test_unusable_texts_are_failures_with_a_reason(t5: str, monkeypatch: pytest.MonkeyPatch) -> None:
    useless = ["", " \n", "I'm sorry, but I can't help with that."]
    monkeypatch.setattr(Seq2SeqModel, "texts", lambda *_: [useless] * len(PASSAGES))
    records = [record for unit in generated(queries(t5)) for record in unit.records]
    assert len(records) == 3 * len(PASSAGES)
    assert all(isinstance(record, Failure) and record.reason for record in records)
