"""Rules for every method, tested through its entry point with a case in `method_cases.py`.

Each case runs as a real stage in a real store, and asks the sandbox's LLM (`asking_cases.py`).
"""

from collections.abc import Iterator
from typing import Any, cast

import pytest
from contract.asking_cases import (
    MALFORMED,
    REFUSAL,
    Killed,
    Place,
    cases,
    check_against_an_undisturbed_run,
    check_budget,
    check_every_plugin_has_a_case,
    check_ledger_and_plan,
    run_in_spite_of_kills,
)
from contract.method_cases import METHOD_CASES, MethodCase
from contract.stand_ins import Context, Reply

from synthbench.api import Failure, GenerationContext, Method, Record, SyntheticDataset, Unit
from synthbench.stages import generation
from synthbench.stages.plugin_calls import checked_outputs

CASES = {case.name: case for case in sorted(METHOD_CASES.values(), key=lambda case: case.asks().num_requests)}
"""One case of each method, the one that asks most; of one that can do without the LLM, another without it."""
ASKING = {name: case for name, case in CASES.items() if case.configured().needs_llm()}
CASES |= {
    f"{case.name} without the LLM": case
    for case in METHOD_CASES.values()
    if case.name in ASKING and not case.configured().needs_llm()
}


def test_every_method_that_may_ask_an_llm_has_a_case_that_does() -> None:
    check_every_plugin_has_a_case(Method, ASKING)


@cases(CASES)
def test_a_kill_after_each_unit_gives_the_same_bytes_and_repeats_no_request(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []

    def killed(*arguments: Any) -> Iterator[Record | Unit]:
        for output in checked_outputs(*arguments):
            key = output.key if isinstance(output, Unit) else ""
            assert not key or key not in made, f"{key} was made before"
            made.append(key)
            yield output
            # Units are journalled by now. Records without a unit are not: for them one kill suffices.
            if key or len(made) == 1:
                raise Killed

    monkeypatch.setattr(generation, "checked_outputs", killed)
    assert run_in_spite_of_kills(place) == max(1, sum(map(bool, made)))
    monkeypatch.setattr(generation, "checked_outputs", checked_outputs)
    check_against_an_undisturbed_run(place)


@cases(ASKING)
def test_a_methods_ledger_equals_the_servers_count_and_its_plan_is_close(place: Place) -> None:
    check_ledger_and_plan(place)


@cases(ASKING)
def test_a_spent_budget_stops_a_method_and_a_larger_one_pays_only_the_rest(place: Place) -> None:
    check_budget(place)


@pytest.mark.parametrize("name", [name for name in CASES if name not in ASKING])
def test_a_methods_plan_states_its_computation(name: str) -> None:
    case = CASES[name]
    expected = case.configured().expected({role: len(each) for role, each in case.data.items()})
    assert expected.num_records is not None or expected.work is not None


@pytest.mark.parametrize("answer", MALFORMED)
@pytest.mark.parametrize("name", ASKING)
def test_useless_answers_become_failures_or_drops(name: str, answer: str) -> None:
    records, dropped = outcome_of(CASES[name], lambda _: MALFORMED[answer])
    assert records or dropped
    for record in records:
        if isinstance(record, Failure):
            assert record.reason
        else:
            assert MALFORMED[answer] is not None
            assert all(text.strip() and REFUSAL not in text for text in record.texts())
    usable = [record for record in records if not isinstance(record, Failure)]
    SyntheticDataset.create(CASES[name].configured().record_kind, usable)


def outcome_of(case: MethodCase, reply: Reply) -> tuple[list[Record], int]:
    """Return the records of a case where the LLM answers so, and how many were dropped."""
    context = Context(case.data, reply)
    method = case.configured()
    made = method.generate(case.sources(), cast("GenerationContext", context))
    outputs = list(checked_outputs(made, case.name, method.record_kind))
    units = [each for each in outputs if isinstance(each, Unit)]
    records = [each for each in outputs if isinstance(each, Record)]
    records += [record for unit in units for record in unit.records]
    return records, sum(sum(unit.dropped.values()) for unit in units) + len(context.counted)
