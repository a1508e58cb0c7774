"""A method or step as a stage in a store of its own, and the LLM that it asks, for the contract tests.

The LLM is the sandbox's server, which also refuses, says nothing, and answers in other forms than it was
asked for; trained models have stand-ins.
"""

import json
import threading
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import pytest
from contract.stand_ins import Reply, numbered
from fakes import Lines
from served_llms import Served, attempts, check_against_the_servers_count
from small_experiment import Project

from synthbench.api import ChatAmount, Method, Runtime, Step, SyntheticDataset
from synthbench.config.llm import EndpointLLM, NamedLLM
from synthbench.engine.artifacts import read_dataset, write_dataset
from synthbench.engine.jobs import JobOutcome, StageJob
from synthbench.engine.stage import Operation, Stage
from synthbench.engine.store import Store
from synthbench.engine.workspace import Workspace
from synthbench.llm.endpoint import ChatModel, Price
from synthbench.plugins.loading import component, installed
from synthbench.worlds.sandbox.llm import MODEL, LLMSettings
from synthbench.worlds.sandbox.llm.serving import LLMServer

LEAST_REQUESTS = 5
"""Minimum number of requests of one case per plug-in that asks an LLM, so that a budget can end halfway."""
PRICE = (1_000_000, 0)
"""A token of a prompt costs a dollar, answers are free."""
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
class PluginCase(ABC):
    """A plug-in by its entry point, with its settings, and its data.

    `data` are data sets by the names under which the plug-in reads them. `reply` is the stand-in for the LLM
    in golden outputs; other tests ask the sandbox's.
    """

    group: ClassVar[str]
    name: str
    settings: Mapping[str, Any]
    data: Mapping[str, SyntheticDataset]
    reply: Reply = numbered

    def configured(self) -> Any:
        """Return the plug-in with its settings, as an experiment file would give them."""
        return component(self.group, self.name).model_validate_json(json.dumps(self.settings))

    def asks(self) -> ChatAmount:
        """Return the LLM requests that `plan` predicts."""
        plugin = self.configured()
        return (self.predicted(plugin) if plugin.needs_llm() else None) or ChatAmount(0, 0, 0)

    @abstractmethod
    def predicted(self, plugin: Any) -> ChatAmount | None:
        """Return the plug-in's own prediction."""

    @abstractmethod
    def stage(self, llm: NamedLLM | None) -> Stage:
        """Return the stage, with the data as its inputs."""


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


@dataclass(frozen=True)
class Place:
    """A store of a case's own, and the LLM that it asks."""

    project: Project
    case: PluginCase
    server: LLMServer
    log: Path

    @property
    def store(self) -> Store:
        return Store(self.project.home / "store")

    def stage(self, budget: float | None = None) -> Stage:
        asks = self.case.configured().needs_llm()
        return self.case.stage(NamedLLM("llm", self.llm(budget)) if asks else None)

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
        stage = self.stage(budget)
        address = ChatModel("sandbox", self.server.base_url, MODEL)
        for each in (*stage.inputs.values(), stage):
            llm = address if each is stage and each.operation.asked_llm else None
            runtime = Runtime(device="cpu", threads=1)
            outcome = StageJob(self.store, [each], runtime, Lines(), llm=llm, experiment="contract").run()
        return outcome

    def made(self) -> dict[str, bytes]:
        """Return the files of the data set."""
        folder = self.store.folder(self.stage().identity) / "dataset"
        return {file.name: file.read_bytes() for file in folder.iterdir()}

    def records(self) -> SyntheticDataset:
        """Return the data set."""
        return read_dataset(self.store.folder(self.stage().identity))

    def answered(self) -> Counter[str]:
        """Return how often each request was answered and billed."""
        return Counter(each.key for each in attempts(self.project) if each.state == "answered")

    def check_ledger(self) -> None:
        """Hold every attempt, and the sum of tokens, against the server's own count."""
        check_against_the_servers_count(self.project, Served(self.server.base_url, self.log), PRICE)

    def elsewhere(self) -> "Place":
        """Return an empty store for the same case."""
        return replace(self, project=replace(self.project, home=self.project.folder / "elsewhere"))


@contextmanager
def place_for(case: PluginCase, folder: Path) -> Iterator[Place]:
    """Yield a store for the case, and a server whose answers are often of no use."""
    settings = LLMSettings(refusals=0.1, empty=0.05, malformed=0.3)
    log = folder / "log"
    with log.open("w", encoding="utf-8") as lines:
        server = LLMServer(settings, "127.0.0.1", 0, lines)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield Place(Project(folder, folder / "home"), case, server, log)
        finally:
            server.shutdown()
            thread.join()
            server.server_close()


def cases(known: Mapping[str, PluginCase]) -> Any:
    """Run a test once for each case."""
    given = [pytest.param(case, id=name) for name, case in known.items()]
    return pytest.mark.parametrize("place", given, indirect=True)


def check_every_plugin_has_a_case(base: type[Method] | type[Step], known: Mapping[str, PluginCase]) -> None:
    """Each of ours that may ask an LLM needs a case which asks it often enough."""
    asked = {case.name: case.asks().num_requests for case in known.values()}
    (group,) = {case.group for case in known.values()}
    for name, point in installed(group).items():
        plugin = component(group, name)
        may_ask = plugin.uses_llm or plugin.needs_llm is not base.needs_llm
        if point.dist is not None and point.dist.name == "synthbench" and may_ask:
            assert asked.get(name, 0) >= LEAST_REQUESTS, (
                f"'{name}' of {group} can ask an LLM: give it a case of {LEAST_REQUESTS} requests or more"
            )


def run_in_spite_of_kills(place: Place) -> int:
    """Run until it ends undisturbed; return how often it was killed."""
    for num_kills in range(1000):
        try:
            outcome = place.run()
        except Killed:
            continue
        assert not outcome.error, outcome.error
        return num_kills
    raise AssertionError("killed again and again")


def check_against_an_undisturbed_run(place: Place) -> None:
    """Same bytes as without kills, the same requests, none twice, and all in the ledger."""
    undisturbed = place.elsewhere()
    if place.case.configured().needs_llm():
        assert max(place.answered().values()) == 1
        place.check_ledger()
    assert not (outcome := undisturbed.run()).error, outcome.error
    assert place.made() == undisturbed.made()
    assert place.answered().keys() == undisturbed.answered().keys()


def check_ledger_and_plan(place: Place) -> None:
    """The ledger equals the server's own count, and what `plan` predicts is close."""
    assert not (outcome := place.run()).error, outcome.error
    place.check_ledger()
    plan, num_answers = place.case.asks(), place.answered().total()
    assert 0 < num_answers <= plan.num_requests
    tokens = sum(each.prompt_tokens for each in attempts(place.project))
    assert plan.prompt_tokens / plan.num_requests == pytest.approx(tokens / num_answers, rel=0.5)
    assert plan.completion_tokens > 0


def check_budget(place: Place) -> None:
    """A spent budget stops the stage, and a larger one pays only the rest."""
    undisturbed = place.elsewhere()
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
