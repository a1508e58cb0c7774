"""The estimator of `plan` and `run`: how many seconds a stage takes."""

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from synthbench.base.runtime import Runtime
from synthbench.config.llm import SHORT_FORM
from synthbench.engine.stage import Stage
from synthbench.engine.store import Store
from synthbench.estimates.facts import Known, work_of, works_on
from synthbench.estimates.gpus import Gpu
from synthbench.estimates.machine import CPU, DATA_CENTRE_GPU, Machine, this_machine
from synthbench.models.work import Work

MOST_READ = 1000
"""Artifacts that are read, the newest first: a store may hold many thousands."""
NEAREST = 5
Key = tuple[str, str, str]
"""Kind, component and model: stages with the same key differ in amount alone."""


@dataclass(frozen=True)
class Timed:
    """A past stage: its seconds as predicted by operations, its amount, and its true seconds."""

    predicted: float | None
    amount: float | None
    seconds: float


class Past:
    """Past stages by kind, component and model; those of this run come first."""

    def __init__(self) -> None:
        self.own: dict[Key, list[Timed]] = defaultdict(list)
        self.stored: dict[Key, list[Timed]] = defaultdict(list)

    def seconds(self, key: Key, predicted: float | None, amount: float | None) -> float | None:
        """Return the seconds of a stage by the past ones nearest in size, None if there is none."""
        similar = self.own.get(key) or self.stored.get(key)
        if not similar:
            return None
        for size, name in ((predicted, "predicted"), (amount, "amount")):
            sized = [(getattr(each, name), each.seconds) for each in similar if getattr(each, name)]
            if size and sized:
                sized.sort(key=lambda each: abs(math.log(each[0] / size)))
                nearest = sum(predicted_one for predicted_one, _ in sized[:NEAREST])
                return float(size * sum(took for _, took in sized[:NEAREST]) / nearest)
        return sum(each.seconds for each in similar) / len(similar)


@dataclass(frozen=True)
class StageTiming:
    """Seconds for each stage and each call (a step, text, request or record); share of a device's rate."""

    fixed: float
    call: float
    efficiency: float


PRICES: Mapping[str, StageTiming] = {
    "train": StageTiming(1.0, 0.02, 0.5),
    "evaluate": StageTiming(0.15, 2e-5, 0.75),
    "generate": StageTiming(1.0, 1e-5, 0.75),
}
"""Measured on two cores of a server (docs/plan.md); on a GPU they are assumed."""
LIGHT = StageTiming(0.05, 1e-5, 1.0)
"""For stages that only read and write records."""


@dataclass(frozen=True)
class Estimate:
    """Seconds, or None; then `unknown` says what is missing."""

    seconds: float | None
    is_from_past: bool = False
    unknown: str = ""


class Estimator:
    """Estimates seconds by similar stages of this run, else of the store, else by floating-point operations.

    Without `past`, for another device, operations alone count.
    """

    def __init__(self, known: Known, machine: Machine, past: Past | None = None) -> None:
        self.machine = machine
        self._known = known
        self._past = past
        self._works: dict[str, Work | None] = {}

    def on_a_gpu(self) -> "Estimator | None":
        """Return an estimator for a data-centre GPU, None if this is one for a GPU."""
        return Estimator(self._known, DATA_CENTRE_GPU) if self.machine.device == CPU else None

    @classmethod
    def for_gpu(cls, gpu: Gpu, known: Known) -> "Estimator":
        """Return an estimator for a GPU that is not here, by its data sheet."""
        return cls(known, Machine(gpu.name, 1, 0.0, is_measured=False, gpu=gpu))

    def estimate(self, stage: Stage) -> Estimate:
        """Return how long a stage will take."""
        work = self._work(stage)
        predicted = predict(stage.kind, work, self.machine)
        if self._past is not None:
            known = self._past.seconds(_key(stage, work), predicted, work.calls if work else None)
            if known is not None:
                return Estimate(known, is_from_past=True)
        return Estimate(predicted, unknown="" if predicted is not None else _what_is_unknown(stage, work))

    def seconds(self, stage: Stage) -> float | None:
        """Return how many seconds a stage will take, None if that is unknown."""
        return self.estimate(stage).seconds

    def sort(self, stage: Stage) -> tuple[Key, Work | None]:
        """Return what a stage's estimate depends on."""
        work = self._work(stage)
        return _key(stage, work), work

    def learn(self, stage: Stage, seconds: float) -> None:
        """Note how long a stage of this run took."""
        if self._past is not None:
            work = self._work(stage)
            timed = Timed(predict(stage.kind, work, self.machine), work.calls if work else None, seconds)
            self._past.own[_key(stage, work)].append(timed)

    def _work(self, stage: Stage) -> Work | None:
        if stage.identity not in self._works:
            self._works[stage.identity] = work_of(self._known.piece(stage))
        return self._works[stage.identity]


def estimator_for(stages: Collection[Stage], runtime: Runtime, known: Known) -> Estimator:
    """Return the estimator for stages that are to run on this machine."""
    machine = this_machine(runtime, known.store) if stages else DATA_CENTRE_GPU
    return Estimator(known, machine, _past(stages, known, machine))


def _past(stages: Iterable[Stage], known: Known, machine: Machine) -> Past:
    wanted = {(stage.kind, stage.operation.component) for stage in stages}
    past = Past()
    for info in recorded(known.store):
        spec: Mapping[str, Any] = info.get("spec", {})
        kind, component = spec.get("kind", ""), spec.get("component", "")
        found = known.past(info) if (kind, component) in wanted else None
        if found is not None:
            _, work = found
            predicted = predict(kind, work, _as_it_ran(machine, info))
            timed = Timed(predicted, work.calls if work else None, info["seconds"])
            past.stored[(kind, component, work.model if work else "")].append(timed)
    return past


def _as_it_ran(machine: Machine, info: Mapping[str, Any]) -> Machine:
    """Return the machine with the threads that a past stage had."""
    threads = info.get("threads")
    return machine.with_threads(threads) if machine.device == CPU and isinstance(threads, int) else machine


def predict(kind: str, work: Work | None, machine: Machine) -> float | None:
    """Return the seconds of a stage by its operations alone, None if these are unknown."""
    if work is None or work.operations is None:
        return None
    price = PRICES.get(kind, LIGHT)
    return price.fixed + price.call * work.calls + machine.seconds(work, price.efficiency)


def _what_is_unknown(stage: Stage, work: Work | None) -> str:
    if work is None:
        return "the amount of its work"
    if works_on(getattr(stage.operation, "plugin", None)):
        return f"how long {stage.operation.component} learns after encoding"
    if stage.operation.asked_llm is not None:
        name = stage.operation.asked_llm.name
        return f"how fast the LLM '{work.model if name == SHORT_FORM else name}' answers"
    return f"the size of {work.model}" if work.model else "the size of its model"


def _key(stage: Stage, work: Work | None) -> Key:
    return (stage.kind, stage.operation.component, work.model if work else "")


def recorded(store: Store) -> Iterator[Mapping[str, Any]]:
    """Yield the records of the newest artifacts that say how long they took."""
    for identity in store.newest(MOST_READ):
        info = store.info(identity)
        if info is not None and isinstance(info.get("seconds"), int | float):
            yield info
