"""Rules for every method, tested through its entry point with a case in `method_cases.py`.

Each case runs as a real stage in a real store. The LLM is the sandbox's server, which also refuses, says
nothing, and answers in other forms than it was asked for; trained models have stand-ins.
"""

import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, cast

import pytest
from contract.method_cases import LEAST_REQUESTS, METHOD_CASES, MethodCase
from contract.stand_ins import Context, Model, Reply
from fakes import Lines
from served_llms import Served, attempts, check_against_the_servers_count
from small_experiment import Project

from synthbench.api import (
    ChatAmount,
    Failure,
    GenerationContext,
    Record,
    Runtime,
    SyntheticDataset,
    TrainedModel,
    Unit,
)
from synthbench.config.llm import EndpointLLM, NamedLLM
from synthbench.engine.artifacts import write_dataset
from synthbench.engine.jobs import JobOutcome, StageJob
from synthbench.engine.stage import Operation, Stage
from synthbench.engine.store import Store
from synthbench.engine.workspace import Workspace
from synthbench.llm.endpoint import ChatModel, Price
from synthbench.models import artifact
from synthbench.plugins.loading import component, installed
from synthbench.stages import generation
from synthbench.stages.asking import NEED
from synthbench.stages.generation import SOURCE, Generate
from synthbench.stages.plugin_calls import checked_outputs
from synthbench.worlds.sandbox.llm import MODEL, LLMSettings
from synthbench.worlds.sandbox.llm.serving import LLMServer

PRICE = (1_000_000, 0)
"""A token of a prompt costs a dollar, answers are free."""
EXPERIMENT = "contract"


def asked_of(case: MethodCase) -> ChatAmount:
    """Return the LLM requests that `plan` predicts for the case."""
    method = case.configured()
    sizes = {name: len(each) for name, each in case.data.items()}
    amount = method.asks(sizes) if method.needs_llm() else None
    return amount or ChatAmount(0, 0, 0)


CASES = {
    case.method: case for case in sorted(METHOD_CASES.values(), key=lambda case: asked_of(case).num_requests)
}
"""One case of each method, the one that asks most; of one that can do without the LLM, another without it."""
ASKING = [name for name, case in CASES.items() if case.configured().needs_llm()]
CASES |= {
    f"{case.method} without the LLM": case
    for case in METHOD_CASES.values()
    if case.method in ASKING and not case.configured().needs_llm()
}
REFUSAL = "I'm sorry, but I can't help with that."
MALFORMED = {
    "nothing": "",
    "white space": " \n\t\n ",
    "a refusal": REFUSAL,
    "marks alone": "*** ``` --- 1. 2. 3.",
    "half of a list in JSON": '{"sentences": ["A man is',
    "a number in JSON": "17",
    "a nested answer in JSON": '{"a": {"b": [null, 1, {"c": []}]}, "score": "high", "grade": NaN}',
    "an essay": "Well. " + "This depends on many things, as we shall see. " * 200,
    "other letters": "\u202eكلب\x00 \ufffd 1. 你好 \u2028 2. 👩‍👩‍👧",
    "numbers out of range": "Score: 17\nGrade: -3\nSimilarity: 1e999",
    "no answer": None,
}


class Killed(BaseException):
    """The process ends here: nothing may catch this."""


@dataclass(frozen=True)
class Given(Operation):
    """A data set of the case, or the folder of a fake trained model."""

    kind: ClassVar[str] = "source"
    component: ClassVar[str] = "given"
    version: ClassVar[int] = 1
    name: str
    dataset: SyntheticDataset | None

    def config(self) -> Mapping[str, Any]:
        content = "" if self.dataset is None else self.dataset.manifest.content_hash
        return {"name": self.name, "content": content}

    def run(self, inputs: Mapping[str, Path], work: Workspace) -> None:
        if self.dataset is not None:
            write_dataset(self.dataset, work)


@pytest.fixture(autouse=True)
def models(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use a fake for every trained model."""
    monkeypatch.setattr(artifact, "load", lambda *_, **__: Model())


@dataclass(frozen=True)
class Place:
    """A store of a case's own, and the LLM that it asks."""

    project: Project
    case: MethodCase
    server: LLMServer
    log: Path

    @property
    def store(self) -> Store:
        return Store(self.project.home / "store")

    @property
    def stage(self) -> Stage:
        return self.with_budget(None)

    def with_budget(self, budget: float | None) -> Stage:
        """Return the stage of the case."""
        method = self.case.configured()
        needs = {
            f"{NEED}{name}": Given(name, None if isinstance(need, TrainedModel) else self.case.data[name])
            for name, need in method.needs().items()
        }
        sources = {f"{SOURCE}{name}": Given(name, each) for name, each in self.case.sources().items()}
        inputs = {name: Stage(operation) for name, operation in (sources | needs).items()}
        llm = NamedLLM("llm", self.llm(budget)) if method.needs_llm() else None
        return Stage(Generate(self.case.method, method, llm), inputs)

    def llm(self, budget: float | None) -> EndpointLLM:
        price = Price(input=PRICE[0], output=PRICE[1], date="2026-11-24")
        return EndpointLLM(
            name="sandbox",
            base_url=self.server.base_url,
            model=MODEL,
            concurrency=2,
            price=price,
            budget_usd=budget,
        )

    def run(self, budget: float | None = None) -> JobOutcome:
        """Run the stage, its inputs first."""
        stage = self.with_budget(budget)
        address = ChatModel("sandbox", self.server.base_url, MODEL)
        for each in (*stage.inputs.values(), stage):
            llm = address if each is stage and each.operation.asked_llm else None
            runtime = Runtime(device="cpu", threads=1)
            outcome = StageJob(self.store, [each], runtime, Lines(), llm=llm, experiment=EXPERIMENT).run()
        return outcome

    def made(self) -> dict[str, bytes]:
        """Return the files of the data set."""
        folder = self.store.folder(self.stage.identity) / "dataset"
        return {file.name: file.read_bytes() for file in folder.iterdir()}

    def answered(self) -> Counter[str]:
        """Return how often each request was answered and billed."""
        return Counter(each.key for each in attempts(self.project) if each.state == "answered")

    def check_ledger(self) -> None:
        """Hold every attempt, and the sum of tokens, against the server's own count."""
        check_against_the_servers_count(self.project, Served(self.server.base_url, self.log), PRICE)


@pytest.fixture
def place(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Place]:
    """A store for the case that the test names, and a server whose answers are often of no use."""
    settings = LLMSettings(refusals=0.1, empty=0.05, malformed=0.3)
    log = tmp_path / "log"
    with log.open("w", encoding="utf-8") as lines:
        server = LLMServer(settings, "127.0.0.1", 0, lines)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            project = Project(tmp_path, tmp_path / "home")
            yield Place(project, CASES[request.param], server, log)
        finally:
            server.shutdown()
            thread.join()
            server.server_close()


def elsewhere(place: Place) -> Place:
    """Return an empty store for the same case."""
    return replace(place, project=replace(place.project, home=place.project.folder / "elsewhere"))


def cases(*names: str) -> Any:
    return pytest.mark.parametrize("place", names, indirect=True)


def test_every_method_has_a_case() -> None:
    for name, point in installed("methods").items():
        if point.dist is not None and point.dist.name != "synthbench":
            continue
        assert name in CASES, f"the method '{name}' has no case: add one to tests/contract/method_cases.py"
        assert name not in ASKING or asked_of(CASES[name]).num_requests >= LEAST_REQUESTS, (
            f"the method '{name}' asks too little: give it a case of {LEAST_REQUESTS} requests or more in"
            " tests/contract/method_cases.py"
        )
        assert not component("methods", name).uses_llm or name in ASKING, (
            f"the method '{name}' can ask an LLM: give it a case that does in tests/contract/method_cases.py"
        )


@cases(*CASES)
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
    assert sum(1 for _ in kills_of(place)) == max(1, sum(map(bool, made)))
    monkeypatch.setattr(generation, "checked_outputs", checked_outputs)
    undisturbed = elsewhere(place)
    if place.case.configured().needs_llm():
        assert max(place.answered().values()) == 1
        place.check_ledger()
    assert not (outcome := undisturbed.run()).error, outcome.error
    assert place.made() == undisturbed.made()
    assert place.answered().keys() == undisturbed.answered().keys()


def kills_of(place: Place) -> Iterator[None]:
    """Run until it ends undisturbed; yield after each kill."""
    while True:
        try:
            outcome = place.run()
        except Killed:
            yield
        else:
            assert not outcome.error, outcome.error
            return


@cases(*ASKING)
def test_a_methods_ledger_equals_the_servers_count_and_its_plan_is_close(place: Place) -> None:
    assert not (outcome := place.run()).error, outcome.error
    place.check_ledger()
    plan, num_answers = asked_of(place.case), place.answered().total()
    assert 0 < num_answers <= plan.num_requests
    tokens = sum(each.prompt_tokens for each in attempts(place.project))
    assert plan.prompt_tokens / plan.num_requests == pytest.approx(tokens / num_answers, rel=0.5)
    assert plan.completion_tokens > 0


@cases(*ASKING)
def test_a_spent_budget_stops_a_method_and_a_larger_one_pays_only_the_rest(place: Place) -> None:
    undisturbed = elsewhere(place)
    assert not undisturbed.run().error
    price = sum(each.prompt_tokens for each in attempts(undisturbed.project))
    stopped = place.run(budget=0.999 * price)
    assert stopped.is_user_error
    assert "budget_usd" in stopped.error[0]
    paid = place.answered()
    assert 0 < paid.total() < undisturbed.answered().total()
    assert not (outcome := place.run(budget=10 * price)).error, outcome.error
    assert place.answered() == undisturbed.answered()
    assert sum(each.prompt_tokens for each in attempts(place.project)) == price
    assert place.made() == undisturbed.made()


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
    outputs = list(checked_outputs(made, case.method, method.record_kind))
    units = [each for each in outputs if isinstance(each, Unit)]
    records = [each for each in outputs if isinstance(each, Record)]
    records += [record for unit in units for record in unit.records]
    return records, sum(sum(unit.dropped.values()) for unit in units) + len(context.counted)
