"""Seconds and bytes of stages: by what such stages took before, else by arithmetic on a device's rates."""

import math
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import Any

from synthbench.base.errors import UserError
from synthbench.base.processes import threads_each
from synthbench.base.runtime import Runtime
from synthbench.config.llm import SHORT_FORM
from synthbench.engine.devices import lacks_nvidia
from synthbench.engine.progress import duration
from synthbench.engine.stage import Stage
from synthbench.estimates.facts import SENTENCES, Known, Piece, models_of, work_of, works_on
from synthbench.models.work import BYTES_READ, Shape, Work, shape_of_base
from synthbench.plugins.contracts import Trainer

REACHED = 0.5
"""The share of a data sheet's rates and bandwidth that is assumed."""
USED_SHARE = 0.9
"""The share of a GPU's memory that a language model and what it keeps may fill."""
SIZE, TIMES = 512, 20
"""Rows of the matrices whose product is timed, and how often: the shortest time counts."""
SCALING = 0.85
"""n threads are n ** SCALING times as fast as one: they wait for each other and for memory."""
MOST_READ, NEAREST = 1000, 5
"""Artifacts that are read, the newest first, since a store may hold many thousands; those that count."""
BYTES_TRAINED, BYTES_PAUSED = 16, 12
"""For each parameter: its value and AdamW's two moments; in training its gradient, too."""
OF_SENTENCE, OF_RECORD = 60, 20
"""Bytes of a data set's file: assumed, compressed; an evaluated record takes as much as a sentence."""
CONTEXT = 1e9
"""Bytes that CUDA and its libraries take."""
LONGEST, HEAD = 128, 64
"""Tokens of the longest sentence where the file gives no `max_length`; assumed size of an attention head."""


@dataclass(frozen=True)
class Device:
    """Gigabytes, and per second terabytes and 10^12 operations (without sparsity).

    `reached` is the share of both that is assumed: of a measured rate all.
    """

    name: str
    memory_gb: float
    terabytes: float
    fp32: float
    tf32: float
    bf16: float
    reached: float = REACHED

    @property
    def is_cpu(self) -> bool:
        """Whether it is this machine's CPU."""
        return self.name.startswith("CPU")

    @property
    def title(self) -> str:
        """The device and where its rates are from, in words."""
        if self.reached < 1:
            return f"{self.name} (arithmetic with {self.reached:.0%} of its data sheet's rates, not measured)"
        rate = f"{self.fp32:,.1f} TFLOP/s" if self.fp32 >= 1 else f"{1000 * self.fp32:,.0f} GFLOP/s"
        return f"{self.name}, {rate} measured"


DATA_SHEETS: Mapping[str, Device] = {
    device.name: device
    for device in (
        Device("h200", 141, 4.8, 67.0, 494.5, 989.5),
        Device("h100", 80, 3.35, 67.0, 494.5, 989.5),
        Device("a100-80gb", 80, 2.039, 19.5, 156.0, 312.0),
        Device("a100-40gb", 40, 1.555, 19.5, 156.0, 312.0),
        Device("l40s", 48, 0.864, 91.6, 183.0, 362.0),
        Device("a10", 24, 0.6, 31.2, 62.5, 125.0),
        Device("l4", 24, 0.3, 30.3, 60.0, 121.0),
    )
}
"""NVIDIA's data sheets; H200, H100 and A100 as SXM."""


def named_gpu(name: str) -> Device:
    """Return the GPU with its data sheet; raises UserError with the known names."""
    if (found := DATA_SHEETS.get(name.lower())) is None:
        raise UserError(f"--gpu {name}: not known; known: {', '.join(DATA_SHEETS)}")
    return found


def this_device(runtime: Runtime) -> Device:
    """Return the device that a run would use here; loads torch, which takes seconds, only if need be."""
    lacks_gpu = runtime.device == "auto" and sys.platform == "linux" and lacks_nvidia()
    name = "cpu" if lacks_gpu else runtime.device
    if name != "cpu":
        from synthbench.base.runtime import device_name

        name = device_name(runtime)
    return cpu(runtime.threads or threads_each(1)) if name == "cpu" else _measured(name, _rate(name))


def cpu(threads: int) -> Device:
    """Return this machine's CPU with so many threads."""
    return _measured(f"CPU, {threads} thread{'s' * (threads > 1)}", _rate("cpu") * threads**SCALING)


def _measured(name: str, rate: float) -> Device:
    return Device(name, math.inf, math.inf, rate, rate, rate, reached=1.0)


@cache
def _rate(device: str) -> float:
    """Return 10^12 operations per second in products of matrices; of a CPU, those of one thread."""
    if device == "cpu":
        import numpy as np

        matrix: Any = np.ones((SIZE, SIZE), np.float32)
        # CPU time, since other programs would make the machine look slow.
        clock = time.process_time
    else:
        import torch

        matrix, clock = torch.ones((SIZE, SIZE), device=device), time.perf_counter
    from threadpoolctl import threadpool_limits

    seconds = []
    with threadpool_limits(1):
        for _ in range(TIMES):
            started = clock()
            (matrix @ matrix)[0, 0].item()  # waits for a GPU
            seconds.append(clock() - started)
    return float(2 * SIZE**3 / max(min(seconds), 1e-9) / 1e12)


TIMINGS: Mapping[str, tuple[float, float, float]] = {
    "train": (1.0, 0.02, 0.5),
    "evaluate": (0.15, 2e-5, 0.75),
    "generate": (1.0, 1e-5, 0.75),
}
"""Seconds for each stage and each call (a step, text, request or record); share of a device's rate.

Measured on two cores of a server (docs/plan.md); on a GPU they are assumed.
"""
LIGHT = (0.05, 1e-5, 0.75)
"""For stages that mainly read and write records."""


def arithmetic(kind: str, work: Work | None, device: Device) -> float | None:
    """Return the seconds of a stage by its operations alone, None if these are unknown."""
    if work is None or work.operations is None:
        return None
    fixed, call, share = TIMINGS.get(kind, LIGHT)
    rate = {"fp32": device.fp32, "tf32": device.tf32}.get(work.precision, device.bf16)
    read = work.decodings * (work.weights + work.kept) / device.terabytes
    return fixed + call * work.calls + (work.operations / rate + read) / 1e12 / min(share, device.reached)


def size_of(kind: str, work: Work | None, device: Device) -> float | None:
    """Return what a stage's seconds grow with: those by arithmetic, else its calls; None: unknown."""
    seconds = arithmetic(kind, work, device)
    return seconds if seconds is not None or work is None else work.calls


Key = tuple[str, str, str]
"""Kind, component and model: stages with the same key differ in amount alone."""
Past = Mapping[Key, list[tuple[float | None, float]]]
"""Sizes (seconds by arithmetic, else calls) and seconds of past stages."""


def by_similar(similar: Collection[tuple[float | None, float]], size: float | None) -> float:
    """Return the seconds of a stage by similar ones: those nearest in size, if sizes are known."""
    sized = [(known, seconds) for known, seconds in similar if known]
    if not (size and sized):
        return sum(seconds for _, seconds in similar) / len(similar)
    nearest = sorted(sized, key=lambda each: abs(math.log(each[0] / size)))[:NEAREST]
    return size * sum(seconds for _, seconds in nearest) / sum(known for known, _ in nearest)


@dataclass(frozen=True)
class Figure:
    """Seconds or bytes of a stage; None: unknown, as `unknown` says."""

    value: float | None
    unknown: str = ""
    is_from_past: bool = False


class Estimator:
    """Estimates seconds by similar stages of this run, else of the store, else by arithmetic."""

    def __init__(self, known: Known, device: Device, past: Past | None = None) -> None:
        self.device = device
        self._known = known
        self._past, self._own = past or {}, defaultdict[Key, list[tuple[float | None, float]]](list)
        self._works: dict[str, Work | None] = {}
        self._found: dict[tuple[Key, Work | None], Figure] = {}

    def estimate(self, stage: Stage) -> Figure:
        """Return how many seconds a stage will take."""
        key, work = self._sort(stage)
        if (key, work) not in self._found:
            self._found[key, work] = self._estimate(stage, key, work)
        return self._found[key, work]

    def _estimate(self, stage: Stage, key: Key, work: Work | None) -> Figure:
        if similar := self._own.get(key) or self._past.get(key):
            return Figure(by_similar(similar, size_of(stage.kind, work, self.device)), is_from_past=True)
        seconds = arithmetic(stage.kind, work, self.device)
        return Figure(seconds, "" if seconds is not None else _what_is_unknown(stage, work))

    def seconds(self, stage: Stage) -> float | None:
        """Return how many seconds a stage will take, None if that is unknown."""
        return self.estimate(stage).value

    def learn(self, stage: Stage, seconds: float) -> None:
        """Note how long a stage of this run took."""
        key, work = self._sort(stage)
        self._own[key].append((size_of(stage.kind, work, self.device), seconds))
        self._found.clear()

    def _sort(self, stage: Stage) -> tuple[Key, Work | None]:
        """Return what a stage's estimate depends on."""
        if stage.identity not in self._works:
            self._works[stage.identity] = work_of(self._known.piece(stage))
        work = self._works[stage.identity]
        return (stage.kind, stage.operation.component, work.model if work else ""), work


def estimator_for(stages: Collection[Stage], runtime: Runtime, known: Known) -> Estimator:
    """Return the estimator for stages that are to run on this machine."""
    wanted = {(stage.kind, stage.operation.component) for stage in stages}
    device = this_device(runtime)
    past = defaultdict[Key, list[tuple[float | None, float]]](list)
    for identity in known.store.newest(MOST_READ) if wanted else ():
        with suppress(Exception):  # whatever the records and plug-ins of strangers do
            info: Mapping[str, Any] = known.store.info(identity) or {}
            kind, component, seconds = info["spec"]["kind"], info["spec"]["component"], float(info["seconds"])
            if (kind, component) in wanted:
                work, threads = work_of(known.past(info)), info.get("threads")
                as_it_ran = cpu(threads) if device.is_cpu and isinstance(threads, int) else device
                size = size_of(kind, work, as_it_ran)
                past[kind, component, work.model if work else ""].append((size, seconds))
    return Estimator(known, device, past)


def _what_is_unknown(stage: Stage, work: Work | None) -> str:
    if work is None:
        return "the amount of its work"
    if works_on(getattr(stage.operation, "plugin", None)):
        return f"how long {stage.operation.component} learns after encoding"
    if (llm := stage.operation.asked_llm) is not None:
        return f"how fast the LLM '{work.model if llm.name == SHORT_FORM else llm.name}' answers"
    return f"the size of {work.model or 'its model'}"


@dataclass(frozen=True)
class Total:
    """The figures of some stages together; `unknown` counts stages without one, by what is unknown."""

    value: float
    num_stages: int
    num_from_past: int
    unknown: Counter[str]

    @classmethod
    def of(cls, stages: Iterable[Stage], figure_of: Callable[[Stage], Figure]) -> "Total":
        """Add up."""
        figures = [(stage, figure_of(stage)) for stage in stages]
        return cls(
            sum(each.value or 0.0 for _, each in figures),
            len(figures),
            sum(each.is_from_past for _, each in figures),
            Counter(
                f"{stage.kind} {stage.operation.component}: {each.unknown}"
                for stage, each in figures
                if each.value is None
            ),
        )

    @property
    def bound(self) -> str:
        """Whether it is about all, or at least so much."""
        return "at least" if self.unknown else "about"

    @property
    def is_unknown(self) -> bool:
        """Whether there are stages, and no figure of any."""
        return bool(self.num_stages) and self.unknown.total() == self.num_stages

    def gaps(self, what: str) -> Iterator[str]:
        """Yield a line for each sort of stage without a figure."""
        for why, number in self.unknown.items():
            yield f"unknown: {what} of {number} × {why}"

    def __str__(self) -> str:
        """The seconds in words: "unknown" is one, too."""
        if not self.num_stages:
            return "none"
        return "unknown" if self.is_unknown else f"{self.bound} {duration(self.value)}"


def stored(stage: Stage, known: Known) -> Figure:
    """Return the bytes of a stage's artifact: its model, its records, or the scores of each record."""
    facts, plugin = known.facts(stage), getattr(stage.operation, "plugin", None)
    if stage.kind in ("select", "audit") or not getattr(plugin, "takes_data", True):
        return Figure(0.0)
    if isinstance(plugin, Trainer):
        if facts.base is None:
            return Figure(0.0)
        if (shape := shape_of_base(facts.base)) is None:
            return Figure(None, f"the size of {facts.base.model}")
        return Figure(float(shape.num_parameters * (BYTES_PAUSED if facts.until < 1 else BYTES_READ)))
    if facts.num_records is None or facts.kind is None:
        return Figure(None, "the amount of its records")
    each = 0 if stage.kind == "evaluate" else OF_RECORD + OF_SENTENCE * SENTENCES[facts.kind]
    return Figure(float(facts.num_records * (each or OF_SENTENCE)))


def on_gpu(stage: Stage, known: Known, gpu: Device) -> Figure:
    """Return the bytes that a stage fills on this GPU at most: weights, and what computing keeps.

    A language model writes as many texts at a time as there is room for.
    """
    piece = known.piece(stage)
    work, shapes = work_of(piece), models_of(piece)
    if work is not None and work.weights:
        room = USED_SHARE * gpu.memory_gb * 1e9
        return Figure(CONTEXT + max(work.weights, min(work.weights + work.kept, room)))
    if gaps := [model for model, shape in shapes.items() if shape is None]:
        return Figure(None, f"the size of {gaps[0]}")
    filled = CONTEXT + weights(piece)
    if isinstance(piece.plugin, Trainer):
        filled += max((_kept(shape, piece.plugin) for shape in shapes.values() if shape), default=0.0)
    return Figure(filled)


def weights(piece: Piece) -> float:
    """Return the bytes of a stage's models, in training with what training keeps of each parameter."""
    each = BYTES_TRAINED if piece.kind == "train" else BYTES_READ
    return float(sum(each * shape.num_parameters for shape in models_of(piece).values() if shape))


def _kept(shape: Shape, trainer: Trainer) -> float:
    """Return the bytes of the activations of a batch, or of a device's share.

    The formula is that of Korthikanti et al. 2022.
    """
    share = getattr(trainer, "batch_size", 1) // trainer.num_devices
    rows: int = min(getattr(trainer, "chunk_size", 0) or share, share)
    sentences: float = rows * getattr(trainer, "sentences_per_record", 1)
    tokens: int = getattr(trainer, "max_length", None) or LONGEST
    of_layer = sentences * tokens * (34 * shape.width + 5 * tokens * shape.width / HEAD)
    wide = 1 if getattr(trainer, "precision", "fp32") == "bf16" else 2
    if getattr(trainer, "gradient_checkpointing", False):
        of_inputs = 2 * sentences * tokens * shape.width * shape.num_layers
        return float(wide * (of_layer + of_inputs))
    return float(wide * of_layer * shape.num_layers)
