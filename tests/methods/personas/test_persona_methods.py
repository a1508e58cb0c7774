"""Both steps: what is asked, which personas are candidates, and which records come of the answers."""

import json
import math
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from contract.stand_ins import TEXTS, Context, Model, in_json, sentences

from synthbench.api import (
    ChatRequest,
    Failure,
    GeneratedData,
    Method,
    Pair,
    Record,
    Sentence,
    SyntheticDataset,
    TrainedModel,
    Unit,
    UserError,
)
from synthbench.plugins.loading import component
from synthbench_personas.candidates import nearest_personas
from synthbench_personas.prompts import SHIPPED, PersonaPrompts

REASONIR = Path(__file__).parents[3] / "experiments/papers/personas/prompts/reasonir.yaml"
PASSAGES = sentences(*TEXTS[:5])
ENCODER = {"base": {"model": "sandbox/encoder"}}


def configured(name: str, **settings: Any) -> Method:
    method: Method = component("methods", name).model_validate_json(json.dumps(settings))
    return method


def units(method: Method, reply: Any = in_json, **datasets: SyntheticDataset) -> list[Unit]:
    sources = {name: datasets[name] for name in ("passages", "personas") if name in datasets}
    made: Iterator[Unit] = method.generate(sources, Context(datasets, reply))
    return list(made)


def records(of: Sequence[Unit]) -> list[Record]:
    return [record for unit in of for record in unit.records]


def asked(method: Method, **datasets: SyntheticDataset) -> dict[str, str]:
    """Return the user's turn by request key."""
    said: dict[str, str] = {}

    def reply(request: ChatRequest) -> str:
        said[request.key] = request.messages[-1]["content"]
        return in_json(request)

    units(method, reply, **datasets)
    return said


def candidates(text: str) -> list[str]:
    (listed,) = re.findall(r'^- "persona": .* One of: (.+)$', text, re.MULTILINE)
    return [re.sub(r"^\d+\. ", "", each) for each in listed.split("; ")]


def nearest_by_hand(text: str, personas: Sequence[str], number: int) -> list[str]:
    """Return the personas of the greatest cosine, computed with plain floats."""

    def cosine(first: str, second: str) -> float:
        a, b = (list(map(float, row)) for row in Model().encode([first, second]))
        product = sum(x * y for x, y in zip(a, b, strict=True))
        return product / math.sqrt(sum(x * x for x in a)) / math.sqrt(sum(y * y for y in b))

    return sorted(personas, key=lambda each: -cosine(text, each))[:number]


def test_the_nearest_personas_are_those_of_a_plain_search() -> None:
    personas = SHIPPED.read().personas
    assert personas is not None and len(personas) > 80
    texts = [f"Passage {number} of many." for number in range(300)]
    found = list(nearest_personas(texts, personas, 5, Model()))
    assert found == [tuple(nearest_by_hand(text, personas, 5)) for text in texts]


def test_equally_near_personas_come_in_the_order_of_the_source() -> None:
    class Flat:
        def encode(self, sentences: Sequence[str]) -> Any:
            return Model().encode(["same"] * len(sentences))

    assert list(nearest_personas(["a"], ("x", "y", "z"), 2, Flat())) == [("x", "y")]


def test_the_llm_chooses_from_the_nearest_personas_in_random_order() -> None:
    method = configured("persona-configurations", encoder=ENCODER, candidates=3, queries_per_passage=4)
    personas = sentences(*(f"person {number}" for number in range(9)))
    said = asked(method, passages=PASSAGES, personas=personas)
    assert len(said) == 20
    orders = set()
    for row, text in enumerate(TEXTS[:5]):
        near = nearest_by_hand(text, personas.column("sentence"), 3)
        shown = [candidates(said[f"s{row}|{index}"]) for index in range(4)]
        assert all(sorted(each) == sorted(near) for each in shown)
        orders |= {tuple(near.index(persona) for persona in each) for each in shown}
    assert len(orders) > 3


def test_without_an_encoder_five_different_personas_are_drawn() -> None:
    said = asked(configured("persona-configurations"), passages=PASSAGES)
    shipped = set(SHIPPED.read().personas or ())
    shown = [candidates(text) for text in said.values()]
    assert all(len(set(each)) == 5 and set(each) <= shipped for each in shown)
    assert len({tuple(each) for each in shown}) == 5


@pytest.mark.parametrize("name", ["persona-configurations", "persona-queries"])
def test_a_source_without_personas_is_refused(name: str) -> None:
    method = configured(name)
    method.check_data({"passages": PASSAGES, "personas": sentences("a cook")})
    with pytest.raises(UserError, match="the source for 'personas' has no records"):
        method.check_data({"passages": PASSAGES, "personas": sentences()})


def test_requests_depend_on_the_seed_and_not_on_the_passages_order() -> None:
    method = configured("persona-configurations")
    backwards = SyntheticDataset.create(PASSAGES.kind, list(PASSAGES)[::-1])
    assert asked(method, passages=PASSAGES) == asked(method, passages=backwards)
    assert asked(configured("persona-configurations", seed=1), passages=PASSAGES) != asked(
        method, passages=PASSAGES
    )


def test_a_configuration_is_the_passage_with_what_was_chosen() -> None:
    def reply(request: ChatRequest) -> str:
        return '{"persona": 3, "type": "Yes or no", "difficulty": "school"}'

    method = configured("persona-configurations", seed=7)
    third = {key: candidates(text)[2] for key, text in asked(method, passages=PASSAGES).items()}
    (first, *others) = records(units(method, reply, passages=PASSAGES))
    assert len(others) == 4
    assert first == Sentence(
        id="s0|0",
        sentence=TEXTS[0],
        subset="yes_or_no",
        label="school",
        instruction=third["s0|0"],
        source_id="s0",
        method="persona-configurations",
        generator="a-model",
        seed=7,
    )


@pytest.mark.parametrize(
    ("name", "reason"),
    [("persona-configurations", "no JSON"), ("persona-queries", "no JSON")],
)
def test_an_answer_that_cannot_be_used_is_a_failure_and_counted(name: str, reason: str) -> None:
    chosen = {"subset": "summary", "label": "school", "instruction": "a cook"}
    data = {"passages": PASSAGES, "configurations": sentences(*TEXTS[:5], **chosen)}
    made = units(configured(name), lambda _: "What a passage", **data)
    assert [unit.dropped for unit in made] == [{reason: 1}] * 5
    failures = [record for record in records(made) if isinstance(record, Failure)]
    assert [(each.reason, each.raw_text) for each in failures] == [(reason, "What a passage")] * 5


def test_a_query_is_asked_for_the_chosen_person_type_and_difficulty() -> None:
    chosen = {"subset": "background", "label": "research", "instruction": "a judge", "source_id": "s9"}
    said: list[str] = []

    def reply(request: ChatRequest) -> str:
        said.append(request.messages[-1]["content"])
        return '{"query": "why do bees dance?"}'

    method = configured("persona-queries", seed=3)
    data = {"passages": PASSAGES, "configurations": sentences(TEXTS[0], **chosen)}
    (record,) = records(units(method, reply, **data))
    prompts = SHIPPED.read()
    assert prompts.types is not None and prompts.difficulties is not None
    for text in ("a judge", TEXTS[0], prompts.types["background"], prompts.difficulties["research"]):
        assert text in said[0]
    (length,) = re.findall(r"^Length: (.+)$", said[0], re.MULTILINE)
    assert record == Pair(
        anchor="why do bees dance?",
        positive=TEXTS[0],
        subset="background",
        label="research",
        instruction=f"a judge; {length}",
        source_id="s9",
        method="persona-queries",
        generator="a-model",
        seed=3,
    )


def test_rows_that_differ_in_queries_alone_share_their_configurations() -> None:
    settings = {"encoder": ENCODER, "queries_per_passage": 2, "seed": 4}
    plain = configured("persona-queries", **settings)
    (need,) = plain.needs().values()
    assert isinstance(need, GeneratedData)
    asking = configured(need.method, **need.config)
    assert asking == configured("persona-configurations", **settings)
    assert isinstance(asking.needs()["encoder"], TrainedModel)
    own = {"query": "{passage} {persona} {type} {difficulty}"}
    others = configured("persona-queries", **settings, prompts=own, query_sampling={"temperature": 0.0})
    assert others.needs() == plain.needs()
    types = configured("persona-queries", **settings, prompts={**own, "types": {"a": "b"}})
    assert types.needs() != plain.needs()


def test_prompts_after_reasonir_ask_for_long_queries_which_cost_more() -> None:
    prompts = PersonaPrompts.of_file(str(REASONIR))
    assert prompts.named == ("query", "types", "difficulties")
    lengths = [text for prompt in prompts.query or () for text in prompt.pools["length"]]
    assert "1000 to 2000 words" in lengths
    number = {"passages": 100, "configurations": 100}
    short = configured("persona-queries").asks(number)
    long = configured("persona-queries", prompts=str(REASONIR)).asks(number)
    assert short is not None and long is not None
    assert short.num_requests == long.num_requests == 100
    assert long.completion_tokens > 10 * short.completion_tokens


def test_a_prompt_without_its_slot_is_refused_with_file_and_line(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text("types: {a: b}\nquery: 'Ask {passage} for {persona} as {type}'\n", encoding="utf-8")
    with pytest.raises(UserError) as raised:
        PersonaPrompts.of_file(str(file))
    assert raised.value.messages == (f"{file}:2: query: lacks the slot {{difficulty}}",)
