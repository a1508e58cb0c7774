"""Prompts as data: every method takes a user's file or its content, and identities hold the content."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import pytest
from contract.stand_ins import Context, sentences
from pydantic import ValidationError
from small_experiment import Project
from wording import refused

from synthbench import api
from synthbench.api import (
    LLM,
    ChatAnswer,
    ChatRequest,
    Method,
    Pair,
    RecordKind,
    SyntheticDataset,
    Triplet,
    UserError,
    WithPrompts,
)
from synthbench.base.frozen import CONSTANTS_KEY, in_identity
from synthbench.base.user_files import STARTS_FROM
from synthbench.config.load import load_experiment
from synthbench.config.permissions import what_is_read_outside
from synthbench.pipeline.planning import make_plan
from synthbench.plugins.loading import GROUPS, component, installed

TEXTS = ("A man {sentence} plays\n a harp.", "Rain falls.", "Two dogs run.")
KEYS = "{anchor: a, positive: b, negative: c}"
CASES: Mapping[str, tuple[dict[str, Any], str, str]] = {
    "syncse-partial": ({}, "positive: 'SAY {sentence}'\nnegative: 'SAY {sentence}'\n", "{sentence}"),
    "syncse-sentences": (
        {"size": 40},
        "sentences:\n  prompts: 'SAY {number} {genre} {topics}'\n  topics: [a, b, c, d, e, f]\n"
        "  genres: {g: {description: d, examples: [a, b, c, d, e, f, g, h, i, j]}}\n",
        "{topics}",
    ),
    "brainstorm-tasks": (
        {"size": 20, "category": "long-long"},
        "long-long:\n  tasks: 'SAY {number}'\n  records: '{task}'\n  keys: " + KEYS + "\n",
        "{number}",
    ),
    "brainstorm": (
        {"size": 3, "categories": {"sts": 1}},
        "sts:\n  task: t\n  records: {instruction: 'SAY {way}', pools: {way: [so]}}\n  keys: " + KEYS + "\n",
        "{way}",
    ),
    "claif-pairs": ({}, "fill: 'SAY {mask} {sentence}'\nparaphrase: 'SAY {sentence}'\n", "{mask}"),
    "multicsr-triplets": ({}, "positive: 'SAY {sentence}'\nnegative: 'SAY {sentence}'\n", "{sentence}"),
    "gpl-queries": ({"queries_per_passage": 2}, "queries: 'SAY {passage}'\n", "{passage}"),
    "two-passage-queries": ({}, "queries_of_two: 'SAY {passage} {second}'\n", "{second}"),
    "persona-configurations": (
        {},
        "configuration: 'SAY {personas} {types} {difficulties} {passage}'\n"
        "types: {a: b}\ndifficulties: {c: d}\npersonas: [e, f]\n",
        "{personas}",
    ),
    "graded-documents": ({}, "documents: 'SAY {levels} {query}'\nlevels: [a, b]\n", "{levels}"),
}
"""By method: further settings, the prompts of a user, and a slot that they must not lack."""
SOURCES = {name: sentences(*TEXTS) for name in ("sentences", "queries")}
SOURCES["passages"] = sentences(*TEXTS, "A man sleeps.")
TRIPLETS = SyntheticDataset.create(
    RecordKind.TRIPLET, [Triplet(anchor=f"A{n}", positive=f"P{n}", negative=f"N{n}") for n in range(20)]
)
PAIRS = SyntheticDataset.create(
    RecordKind.PAIR, [Pair(anchor=f"Q{n}?", positive=f"Passage {n}.") for n in range(20)]
)


def configured(name: str, **settings: Any) -> Any:
    return component("methods", name).model_validate_json(json.dumps(settings))


def requests(
    method: Method, monkeypatch: pytest.MonkeyPatch, **sources: SyntheticDataset
) -> list[ChatRequest]:
    """Return all requests of a method, in order of their keys; none is answered."""
    asked: list[ChatRequest] = []

    class Silent:
        def answers(self, due: Iterator[ChatRequest]) -> Iterator[ChatAnswer]:
            for request in due:
                asked.append(request)
                yield ChatAnswer(request, None, "nothing")

    monkeypatch.setattr(Context, "llm", LLM("llm", "a-model", Silent()))
    list(method.generate({**SOURCES, **sources}, Context({})))
    return sorted(asked, key=lambda request: request.key)


def turns(request: ChatRequest) -> Sequence[str]:
    return [message["content"] for message in request.messages]


def test_every_method_that_asks_an_llm_by_prompts_is_tried() -> None:
    ours = [
        (name, component("methods", name))
        for name, point in installed("methods").items()
        if point.dist is None or point.dist.name == "synthbench"
    ]
    assert "methods" in GROUPS
    by_prompts = {name for name, plugin in ours if issubclass(plugin, WithPrompts)}
    # These make their data from those of the others.
    assert by_prompts - set(CASES) == {
        "syncse-scratch",
        "syncse-naive",
        "claif",
        "multicsr",
        "persona-queries",
    }
    asking = {name for name, plugin in ours if plugin.uses_llm}
    assert {name for name in asking - by_prompts if name.split("-")[0] != "augsbert"} == set()


@pytest.mark.parametrize("name", CASES)
def test_a_users_prompts_are_asked_from_a_file_or_the_experiment(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings, text, _ = CASES[name]
    file = tmp_path / "mine.yaml"
    file.write_text(text, encoding="utf-8")
    method = configured(name, **settings, prompts=str(file))
    content = method.model_dump(mode="json")["prompts"]
    asked = requests(method, monkeypatch)
    assert asked and all(any(turn.startswith("SAY ") for turn in turns(each)) for each in asked)
    assert requests(configured(name, **settings, prompts=content), monkeypatch) == asked


@pytest.mark.parametrize("name", CASES)
def test_identities_hold_the_content_of_prompts_and_not_their_path(name: str, tmp_path: Path) -> None:
    settings, text, _ = CASES[name]
    identities = []
    for folder, content in (("a", text), ("b", f"# a remark\n{text}"), ("c", text.replace("SAY", "TELL"))):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "mine.yaml").write_text(content, encoding="utf-8")
        plugin = component("methods", name)
        given = json.dumps({**settings, "prompts": "mine.yaml"})
        method = plugin.model_validate_json(given, context={STARTS_FROM: tmp_path / folder})
        identities.append((in_identity(method), method.revisions()))
    assert identities[0] == identities[1] != identities[2]
    assert "mine.yaml" not in json.dumps(identities)


@pytest.mark.parametrize("name", CASES)
def test_changed_shipped_prompts_change_the_identity_unless_a_users_replace_them(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings, text, _ = CASES[name]
    plugin = component("methods", name)
    shipped = plugin.shipped
    own = shipped.schema.model_validate_json(json.dumps(_loaded(text)))
    assert CONSTANTS_KEY not in in_identity(configured(name, **settings))
    monkeypatch.setattr(type(shipped), "read", lambda self: self.schema.model_validate(own.model_dump()))
    changed = in_identity(configured(name, **{**settings, **_fewer(name)}))
    assert changed[CONSTANTS_KEY]
    mine = configured(name, **{**settings, **_fewer(name)}, prompts=own.model_dump(mode="json"))
    assert CONSTANTS_KEY not in in_identity(mine)


def _loaded(text: str) -> Any:
    from synthbench.api import load_yaml

    return load_yaml(text, "mine.yaml")


def _fewer(name: str) -> dict[str, Any]:
    return {"category": "long-long"} if name == "brainstorm-tasks" else {}


@pytest.mark.parametrize("name", CASES)
def test_a_file_that_lacks_a_slot_is_refused_with_file_line_and_key(name: str, tmp_path: Path) -> None:
    settings, text, slot = CASES[name]
    file = tmp_path / "mine.yaml"
    file.write_text(text.replace(slot, ""), encoding="utf-8")
    with refused("mine.yaml:", "lacks the slot", slot, kind=ValidationError):
        configured(name, **settings, prompts=str(file))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", ":1: must be a mapping of names to prompts, is empty"),
        (b"just a text\n", ":1: must be a mapping of names to prompts, is a single value"),
        (b"queries: [\n", ":1: not valid YAML"),
        (b"{}\n", ":1: has no prompts; known: queries"),
        (b"queries:\n", ":1: has no prompts; known: queries"),
        (b"# mine\nqueris: '{passage}'\n", ":2: queris: unknown key; did you mean 'queries'?"),
        (b"queries:\n  - '{passage}'\n  - '{pasage} {passage}'\n", ":3: queries.1: unknown slot {pasage};"),
        (b"queries: \xff\n", ":1: not UTF-8 (byte 0xFF)"),
        (b"queries:\n  input: '{passage}'\n", ":1: queries.instruction: is missing"),
        (
            b"queries:\n  instruction:\n  input: '{passage}'\n",
            ":2: queries.instruction: must be text, is empty",
        ),
        (b"queries:\n  instruction: a\n  inptu: '{passage}'\n", ":3: queries.inptu: unknown key;"),
        (
            b"queries:\n  instruction: '{passage}'\n  exemplars: [{passage: a, answer: b}, {passage: a}]\n",
            ":1: queries: exemplar 2 needs the keys `answer` and `passage`, has `passage`",
        ),
        (
            b"queries:\n  instruction: '{passage}'\n  exemplars:\n    - {passage: a, answer: 2}\n",
            ":4: queries.exemplars.0.answer: must be text, is 2",
        ),
        (
            b"queries:\n  instruction: '{passage}'\n  exemplars:\n    - {passage: a, answer: ' '}\n",
            ":4: queries.exemplars.0.answer: must not be empty",
        ),
        (
            b"queries: {instruction: '{passage}', exemplars_per_request: 2}\n",
            ":1: queries: exemplars_per_request: 2 of 0 exemplars",
        ),
        (
            b"queries: {instruction: '{passage} {passage}', pools: {passage: [x]}}\n",
            ":1: queries: pools: the method fills {passage}; leave it out",
        ),
        (b"queries: {instruction: '{passage}', pools: {way: [x]}}\n", ":1: queries: lacks the slot {way}"),
    ],
)
def test_a_faulty_file_is_refused_in_one_line(content: bytes, message: str, tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_bytes(content)
    prompts = component("methods", "gpl-queries").shipped.schema
    with pytest.raises(UserError) as raised:
        prompts.of_file(str(file))
    assert f"{file}{message}" in raised.value.messages[0]
    assert "\n" not in raised.value.messages[0]


def test_an_error_never_shows_what_a_file_without_prompts_holds(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("a-secret-of-the-users\n", encoding="utf-8")
    with pytest.raises(ValidationError) as raised:
        configured("gpl-queries", prompts=str(file))
    assert "a-secret" not in str(raised.value)


def test_a_missing_file_is_refused_by_its_name(tmp_path: Path) -> None:
    with refused("nothing.yaml", kind=ValidationError):
        configured("gpl-queries", prompts=str(tmp_path / "nothing.yaml"))


@pytest.mark.parametrize("records", ["Make one.", "Make {{task}}."])
def test_records_of_invented_tasks_need_the_slot_of_the_task(records: str) -> None:
    keys = {"anchor": "a", "positive": "b", "negative": "c"}
    prompts = {"long-long": {"tasks": "Ask for {number}.", "records": records, "keys": keys}}
    with refused("{task}", kind=ValidationError):
        configured("brainstorm", size=1, categories={"long-long": 1}, prompts=prompts)


def test_a_fault_in_a_file_is_one_at_the_experiments_key(project: Project) -> None:
    (project.folder / "mine.yaml").write_text("queries: 'Ask.'\n", encoding="utf-8")
    file = project.folder / "study.yaml"
    file.write_text(STUDY, encoding="utf-8")
    called = project.call("validate", "study.yaml")
    assert called.code == 2
    (error,) = [line for line in called.err.splitlines() if line.startswith("error:")]
    assert "study.yaml:8: data.queries.prompts: " in error
    assert error.endswith("mine.yaml:1: queries: lacks the slot {passage}")


STUDY = """\
experiment: study
llm: sandbox
sources:
  passages: {sandbox: passages, split: test, size: 20}
  search: {sandbox: retrieval, split: test, size: 20}
defaults:
  data:
    queries: {method: gpl-queries, sources: {passages: passages}, prompts: mine.yaml}
  train: {trainer: bi-encoder, base: {model: sandbox/encoder}, loss: {name: multiple-negatives}}
  evaluate: {retrieval: {evaluator: retrieval, tasks: [search]}}
"""


@pytest.fixture
def project(tmp_path: Path) -> Project:
    (tmp_path / "study").mkdir()
    return Project(tmp_path / "study", tmp_path / "home")


def test_a_file_of_prompts_outside_the_experiments_folder_is_named(project: Project) -> None:
    own = project.folder.parent / "mine.yaml"
    own.write_text("queries: 'Ask about {passage}'\n", encoding="utf-8")
    file = project.folder / "study.yaml"
    file.write_text(STUDY.replace("mine.yaml", str(own)), encoding="utf-8")
    assert list(what_is_read_outside(load_experiment(file), project.home)) == [
        f"reads outside {project.folder}: {own}"
    ]


def test_prompts_are_a_grid_axis(project: Project) -> None:
    (project.folder / "mine.yaml").write_text("queries: 'Ask about {passage}'\n", encoding="utf-8")
    grid = "grid:\n  prompts:\n    file: {}\n    shipped: {data.queries.prompts: null}\n    inline:"
    text = f"{STUDY}{grid} {{data.queries.prompts: {{queries: 'Query for {{passage}}'}}}}\n"
    file = project.folder / "study.yaml"
    file.write_text(text, encoding="utf-8")
    stages = make_plan(load_experiment(file)).stages.values()
    asked = [
        stage.operation.config().get("prompts") for stage in stages if stage.operation.kind == "generate"
    ]
    assert [content and content["queries"][0]["instruction"] for content in asked] == [
        "Ask about {passage}",
        None,
        "Query for {passage}",
    ]


def test_a_function_takes_prompts_as_the_documentation_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = Path(__file__).parents[2] / "docs" / "own_llm_method.md"
    (code,) = re.findall(r"```python\n(class SentencePrompt.*?)```", page.read_text("utf-8"), re.DOTALL)
    names: dict[str, Any] = {**vars(api), "ClassVar": ClassVar, "Iterator": Iterator}
    exec(code, names)
    shown = names["paraphrased"]
    (tmp_path / "mine.yaml").write_text("paraphrase: 'Anew: {sentence}'\n", encoding="utf-8")
    for prompts, begins in ((None, "Paraphrase: "), (str(tmp_path / "mine.yaml"), "Anew: ")):
        given = {} if prompts is None else {"prompts": prompts}
        asked = requests(shown.model_validate_json(json.dumps(given)), monkeypatch)
        assert [turns(each)[0] for each in asked] == [f"{begins}{' '.join(text.split())}" for text in TEXTS]
    (tmp_path / "mine.yaml").write_text("paraphrase: 'Anew.'\n", encoding="utf-8")
    with pytest.raises(ValidationError, match=r"mine.yaml:1: paraphrase: lacks the slot {sentence}"):
        shown.model_validate_json(json.dumps({"prompts": str(tmp_path / "mine.yaml")}))


def test_each_request_draws_one_of_several_prompts_and_of_each_pool(monkeypatch: pytest.MonkeyPatch) -> None:
    two = [{"instruction": "A {way} {passage}", "pools": {"way": ["x", "y"]}}, "B {passage}"]
    method = configured("gpl-queries", queries_per_passage=40, prompts={"queries": two})
    asked = [turns(each)[-1][:3] for each in requests(method, monkeypatch)]
    assert {*asked} == {"A x", "A y", "B A", "B R", "B T"}


def test_what_is_filled_in_is_on_one_line_and_not_searched_for_slots(monkeypatch: pytest.MonkeyPatch) -> None:
    method = configured("multicsr-triplets", prompts={"positive": "P {sentence}", "negative": "N {sentence}"})
    said = {turns(each)[-1] for each in requests(method, monkeypatch)}
    assert "P A man {sentence} plays a harp." in said


def test_doubled_braces_stand_for_single_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    text = 'Say {{passage}} as {"a": {"b": 1}} of {passage}'
    method = configured("gpl-queries", queries_per_passage=1, prompts={"queries": text})
    said = {turns(each)[0] for each in requests(method, monkeypatch)}
    assert 'Say {passage} as {"a": {"b": 1}} of Rain falls.' in said


def test_an_instruction_is_a_system_message_where_the_input_is_the_users_turn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    exemplars = [{"passage": "It rains.", "answer": "why?"}]
    prompt = {"instruction": "Ask.", "input": "P: {passage}", "exemplars": exemplars}
    method = configured("gpl-queries", queries_per_passage=1, prompts={"queries": prompt})
    for request in requests(method, monkeypatch):
        assert [each["role"] for each in request.messages] == ["system", "user", "assistant", "user"]
        assert turns(request)[:3] == ["Ask.", "P: It rains.", "why?"]


@pytest.mark.parametrize(
    ("name", "source", "kinds"),
    [
        ("gpl-queries", PAIRS, {"0": "Q{}?"}),
        ("syncse-partial", TRIPLETS, {"positive": "P{}", "negative": "N{}"}),
        ("multicsr-triplets", TRIPLETS, {"positive": "P{}", "negative": "N{}"}),
    ],
)
def test_exemplars_come_from_a_source_the_same_for_every_request_and_order(
    name: str, source: SyntheticDataset, kinds: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = {"queries_per_passage": 1} if name == "gpl-queries" else {}
    method = configured(name, **settings, num_exemplars=3)
    asked = requests(method, monkeypatch, exemplars=source)
    answers_of = {
        kind: {tuple(turns(each)[2:-1:2]) for each in asked if each.key.startswith(kind)} for kind in kinds
    }
    for kind, shape in kinds.items():
        (answers,) = answers_of[kind]
        assert len(answers) == 3
        assert {*answers} <= {shape.format(number) for number in range(20)}
    turned = SyntheticDataset.create(source.kind, list(source)[::-1])
    assert requests(method, monkeypatch, exemplars=turned) == asked
    other = configured(name, **settings, num_exemplars=3, seed=1)
    assert [turns(each) for each in requests(other, monkeypatch, exemplars=source)] != [*map(turns, asked)]


def test_the_number_of_exemplars_and_their_source_need_each_other() -> None:
    with refused("num_exemplars", "such as 4"):
        configured("gpl-queries").check_sources(["passages", "exemplars"])
    with refused("num_exemplars", "'exemplars'"):
        configured("gpl-queries", num_exemplars=4).check_sources(["passages"])
    with refused("num_exemplars: 21", "20 records"):
        configured("gpl-queries", num_exemplars=21).check_data({"exemplars": PAIRS})


def test_the_shipped_exemplars_and_a_users_prompts_exclude_each_other() -> None:
    with refused("prompt:", "`prompts`", kind=ValidationError):
        configured("gpl-queries", prompt="few-shot", prompts={"queries": "{passage}"})
