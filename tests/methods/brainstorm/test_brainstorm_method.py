"""The requests of both steps, and the records from their answers."""

import json
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pytest
from contract.stand_ins import Context, in_json, sentences
from pydantic import ValidationError
from wording import refused

from synthbench.api import ChatRequest, Failure, GenerationContext, SyntheticDataset, Triplet, Unit
from synthbench_brainstorm import Brainstorm, BrainstormTasks
from synthbench_brainstorm.prompts import SHIPPED, Category, CategoryPrompts, prompts_of
from synthbench_brainstorm.requests import Chats

ALL = tuple(Category)
WITH_TASKS = [category for category in ALL if category is not Category.STS]
TASKS = {
    f"tasks of {category}": sentences(
        *(f"Find {kind} of {category}" for kind in ("a text", "a note", "a name"))
    )
    for category in WITH_TASKS
}


@dataclass
class Asked:
    """Answers, and records the requests."""

    reply: Callable[[ChatRequest], str | None] = in_json

    def __post_init__(self) -> None:
        self.requests: dict[str, ChatRequest] = {}

    def __call__(self, request: ChatRequest) -> str | None:
        self.requests[request.key] = request
        return self.reply(request)


def configured(**settings: Any) -> Brainstorm:
    return Brainstorm.model_validate_json(json.dumps(settings))


def pools_of(prompts: CategoryPrompts) -> Mapping[str, tuple[str, ...]]:
    (records,) = prompts.records
    return records.pools


def units(
    method: Brainstorm | BrainstormTasks,
    asked: Asked | None = None,
    data: Mapping[str, SyntheticDataset] = TASKS,
    finished: frozenset[str] = frozenset(),
) -> list[Unit]:
    context = Context(data, asked or Asked(), finished_units=finished)
    made = list(method.generate({}, cast("GenerationContext", context)))
    assert all(isinstance(each, Unit) for each in made)
    return sorted(cast("list[Unit]", made), key=lambda unit: unit.position)


def triplets(method: Brainstorm, asked: Asked | None = None) -> list[Triplet]:
    records = [record for unit in units(method, asked) for record in unit.records]
    return [record for record in records if isinstance(record, Triplet)]


def test_categories_get_their_shares_and_sum_to_the_size() -> None:
    method = configured(size=11, categories={"sts": 1, "short-long": 2, "long-long": 0.5})
    found = Counter(record.subset for record in triplets(method))
    assert found == {"short-long": 6, "long-long": 2, "sts": 3}
    assert list(found) == ["short-long", "long-long", "sts"]
    assert Counter(record.subset for record in triplets(configured(size=10))) == dict.fromkeys(
        map(str, ALL), 2
    )


def test_tables_name_listed_categories_whose_share_rounds_to_no_record() -> None:
    alone = configured(size=2, categories={"sts": 1, "short-long": 1}).table_notes()
    found = configured(size=2, categories={"sts": 1, "short-long": 9}).table_notes()
    assert found == (*alone, "Brainstorm's size of 2 gives no record to sts, whose shares round to 0.")


def test_the_instruction_precedes_the_query_and_other_texts_have_none() -> None:
    for record in triplets(configured(size=10)):
        assert record.anchor.startswith(f"Instruct: {record.instruction}\nQuery: The ")
        assert record.positive.startswith("The ") and record.negative.startswith("The ")
    bare = triplets(configured(size=10, instructions=False))
    assert [record.anchor.partition("Query: ")[2] for record in triplets(configured(size=10))] == [
        record.anchor for record in bare
    ]
    assert all(record.instruction for record in bare)


def test_a_record_is_requested_with_its_task_and_drawn_values() -> None:
    asked = Asked()
    for record in triplets(configured(size=40), asked):
        prompt = asked.requests[record.source_id].messages[-1]["content"]
        assert "{task}" not in prompt and "English" in prompt
        assert record.subset == "sts" or record.instruction in prompt
        category = Category(record.subset)
        for pool in pools_of(prompts_of(SHIPPED.read(), category)).values():
            assert any(value in prompt for value in pool)
    assert {request.sampling["temperature"] for request in asked.requests.values()} == {1.0}


def test_sts_has_one_instruction_and_keeps_its_two_grades() -> None:
    method = configured(size=30, categories={"sts": 1})
    assert method.needs() == {}
    found = triplets(method)
    assert {record.instruction for record in found} == {"Find texts that mean nearly the same"}
    high, low = ({record.label.split(" and ")[place] for record in found} for place in (0, 1))
    assert high == {"4", "4.5", "5"} and low == {"2.5", "3", "3.5"}


def test_other_categories_and_sizes_do_not_change_a_categorys_requests() -> None:
    def prompts_of(**settings: Any) -> dict[str, Any]:
        asked = Asked()
        units(configured(**settings), asked)
        return {key: (request.messages, request.sample) for key, request in asked.requests.items()}

    few, more = prompts_of(size=10), prompts_of(size=20, categories={"sts": 1, "short-short": 1})
    shared = few.keys() & more.keys()
    assert len(shared) == 4
    assert all(few[key] == more[key] for key in shared)
    other = prompts_of(size=10, seed=1)
    assert all(few[key][1] != other[key][1] for key in few)


def test_every_request_of_a_category_draws_new_values() -> None:
    found = prompts_of(SHIPPED.read(), Category.SHORT_LONG)
    chats = [Chats(Category.SHORT_LONG, found, 0).for_record(number, "a task") for number in range(400)]
    for name, pool in pools_of(found).items():
        counts = Counter(chat.values[name] for chat in chats)
        assert counts.keys() == set(pool)
        assert min(counts.values()) > 0.6 * 400 / len(pool)
    assert len({chat.sample for chat in chats}) == 400


def test_finished_units_are_not_requested_again() -> None:
    method = configured(size=10)
    whole = units(method)
    asked = Asked()
    rest = units(method, asked, finished=frozenset(unit.key for unit in whole[:7]))
    assert rest == whole[7:]
    assert set(asked.requests) == {unit.key for unit in whole[7:]}


def test_an_unusable_answer_is_a_failure_that_stores_the_answer() -> None:
    replies = {"sts/0": None, "sts/1": '{"S1": "a', "sts/2": '{"S1": "a", "S2": "A", "S3": "b"}'}
    asked = Asked(lambda request: replies[request.key])
    made = units(configured(size=3, categories={"sts": 1}), asked)
    failures = [cast("Failure", unit.records[0]) for unit in made]
    assert [failure.reason for failure in failures] == [
        "content filter",
        "JSON that ends too early",
        "S2: equal to S1",
    ]
    assert [failure.raw_text for failure in failures] == ["", *list(replies.values())[1:]]
    assert [dict(unit.dropped) for unit in made] == [{}, {failures[1].reason: 1}, {failures[2].reason: 1}]


def test_distinct_tasks_are_used_up_to_their_number() -> None:
    listed = [f"Task {number}" for number in range(22)]
    listed[3] = "task 2."
    method = BrainstormTasks.model_validate_json('{"category": "long-long", "size": 30}')
    replies = {"0": json.dumps(listed), "1": json.dumps({"tasks": listed[:4]})}
    first, second = units(method, Asked(lambda request: replies[request.key]))
    assert [record.texts()[0] for record in first.records] == [*listed[:3], *listed[4:20]]
    assert first.dropped == {"more than were asked for": 2, "duplicate in a list": 1}
    assert second.dropped == {"missing in a list": 6, "duplicate in a list": 1}
    assert {record.subset for record in (*first.records, *second.records)} == {"long-long"}


def test_a_category_without_tasks_is_refused() -> None:
    with refused("short-long", "no usable task"):
        units(configured(size=5), data={**TASKS, "tasks of short-long": sentences()})


@pytest.mark.parametrize(
    ("settings", "facts"),
    [
        ({"size": 5, "categories": {"bitext": 1}}, ("categories", "short-long")),
        ({"size": 5, "categories": {"sts": 0}}, ("sts", "greater than 0")),
        ({"size": 5, "categories": {"sts": 1e308, "short-long": 1e308}}, ("sts", "less than or equal to")),
        ({"size": 5, "categories": {}}, ("categories", "at least 1")),
        ({"size": 5, "languages": []}, ("languages",)),
    ],
)
def test_faulty_settings_are_refused(settings: dict[str, Any], facts: tuple[str, ...]) -> None:
    with refused(*facts, kind=ValidationError):
        configured(**settings)


def test_sts_requests_no_tasks() -> None:
    with refused("sts", "one task for all records", kind=ValidationError):
        BrainstormTasks.model_validate_json('{"category": "sts", "size": 20}')


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        (
            "sts: {records: Write, keys: {anchor: a, positive: b, negative: c}}",
            (":1", "`task`"),
        ),
        (
            "sts:\n  task: x\n  records: y\n  keys: {anchor: a, positive: b}",
            (":4", "keys.negative", "missing"),
        ),
        (
            "long-long:\n  tasks: '{number}'\n  records: y\n  keys: {anchor: a, positive: b, negative: c}",
            ("{task}",),
        ),
        ("short-lnog: {}", ("short-lnog", "short-long")),
    ],
)
def test_a_fault_in_a_file_of_prompts_has_file_line_and_key(
    text: str, facts: tuple[str, ...], tmp_path: Path
) -> None:
    file = tmp_path / "prompts.yaml"
    file.write_text(text, encoding="utf-8")
    with refused("prompts.yaml", *facts, kind=ValidationError):
        configured(size=5, prompts=str(file), categories={"sts": 1})


def test_a_users_prompts_are_used_and_noted(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(
        "sts:\n  task: Match\n  records:\n    instruction: |\n"
        '      Three {unit}s as JSON: {"a": ...}\n      - "a": x\n      - "b": x\n      - "c": x\n'
        "    pools: {unit: [word]}\n"
        "  keys: {anchor: b, positive: a, negative: c}\n",
        encoding="utf-8",
    )
    method = configured(size=2, prompts=str(file), categories={"sts": 1})
    asked = Asked()
    found = triplets(method, asked)
    assert asked.requests["sts/0"].messages[0]["content"].startswith('Three words as JSON: {"a": ...}')
    assert all(record.anchor.startswith("Instruct: Match\nQuery: The b of ") for record in found)
    assert method.table_notes() == ("Prompts for tasks and records: the experiment's own.",)
    assert method.revisions() == {}
    both = configured(size=2, prompts=str(file), categories={"sts": 1, "long-long": 1})
    assert both.table_notes()[0].endswith("in our own words; but the experiment's own for `sts`.")
    assert both.needs() == configured(size=2, categories={"long-long": 1}).needs()


def test_the_former_key_for_prompts_is_refused() -> None:
    with refused("prompt_file", "`prompts`", kind=ValidationError):
        configured(size=2, prompt_file="mine.yaml")
