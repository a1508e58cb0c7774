"""Rules for every prepare step that may ask an LLM, tested with its case in `step_cases.py`.

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
from contract.stand_ins import Context
from contract.step_cases import STEP_CASES

from synthbench.api import LLM, ChatAnswer, Step, StepContext, SyntheticDataset


class Counting(Context):
    """A context that counts drops alone."""

    def measure(self, name: str, value: float) -> None: ...


def test_every_step_that_may_ask_an_llm_has_a_case_that_does() -> None:
    check_every_plugin_has_a_case(Step, STEP_CASES)


@cases(STEP_CASES)
def test_a_kill_after_each_answer_gives_the_same_bytes_and_repeats_no_request(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    answered: set[str] = set()

    def killed(*arguments: Any) -> Iterator[ChatAnswer]:
        for answer in original(*arguments):
            yield answer
            if (request := repr(answer.request)) not in answered:
                answered.add(request)
                raise Killed

    original = LLM.answers
    monkeypatch.setattr(LLM, "answers", killed)
    assert run_in_spite_of_kills(place) == place.answered().total()
    monkeypatch.setattr(LLM, "answers", original)
    check_against_an_undisturbed_run(place)


@cases(STEP_CASES)
def test_a_steps_ledger_equals_the_servers_count_and_its_plan_is_close(place: Place) -> None:
    check_ledger_and_plan(place)
    assert len(place.records()) > 0, "nothing is left that other tests could compare"


@cases(STEP_CASES)
def test_a_spent_budget_stops_a_step_and_a_larger_one_pays_only_the_rest(place: Place) -> None:
    check_budget(place)


@pytest.mark.parametrize("answer", MALFORMED)
@pytest.mark.parametrize("name", STEP_CASES)
def test_records_with_useless_answers_are_dropped_and_counted(name: str, answer: str) -> None:
    case = STEP_CASES[name]
    records, step = case.data["data"], case.configured()
    context = Counting(case.data, lambda _: MALFORMED[answer])

    made = list(step.apply(records, cast("StepContext", context)))

    assert len(made) + sum(context.counted.values()) == len(records)
    assert not made or name == "write-negatives", "no useless answer is a grade"
    assert all(text.strip() and REFUSAL not in text for record in made for text in record.texts())
    SyntheticDataset.create(step.kind_after(records.kind), made)
