"""Estimates of stages' seconds and bytes: from similar past stages, else computed from a device's rates."""

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
from synthbench.engine.monitor import duration
from synthbench.engine.stage import Stage
from synthbench.estimates.facts import SENTENCES, StageFacts, StageView, models_of, work_of, works_on
from synthbench.models.work import BYTES_READ, Shape, Work, shape_of_base
from synthbench.plugins.model_contracts import Trainer

REACHED = 0.5
"""The share of a data sheet's operations and bytes per second that stages are assumed to reach."""
USED_SHARE = 0.9
"""The share of a GPU's memory that a language model may fill with weights and caches."""
SIZE, TIMES = 512, 20
"""A device's rate is measured on a product of two `SIZE` x `SIZE` matrices; the fastest of `TIMES` counts."""
SCALING = 0.85
"""n threads are assumed n ** SCALING times as fast as one: they wait for each other and for memory."""
MOST_READ, NEAREST = 1000, 5
"""An estimate averages the `NEAREST` past stages in size among the `MOST_READ` newest artifacts."""
BYTES_TRAINED, BYTES_PAUSED = 16, 12
"""Bytes per parameter: value, gradient and AdamW's two moments; in a paused training, no gradient."""
OF_SENTENCE, OF_RECORD = 60, 20
"""Assumed bytes of a sentence, and of the rest of a record, in a compressed data set."""
CONTEXT = 1e9
"""Bytes of GPU memory that CUDA and its libraries take."""
LONGEST, HEAD = 128, 64
"""Assumed maximum length in tokens without `max_length`; assumed width of an attention head."""


@dataclass(frozen=True)
class Device:
    """A GPU or CPU: memory in GB, memory bandwidth in TB/s, rates in 10^12 operations/s (no sparsity).

    `reached` is the share of bandwidth and rates that estimates assume; 1 for a measured rate.
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
        """Whether the device is this machine's CPU."""
        return self.name.startswith("CPU")

    @property
    def title(self) -> str:
        """The device's name and the source of its rates, in words."""
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
"""Figures from NVIDIA's data sheets; H200, H100 and A100 in the SXM version."""


def named_gpu(name: str) -> Device:
    """Return the GPU with its data sheet's figures; raises UserError, listing the known names."""
    if (found := DATA_SHEETS.get(name.lower())) is None:
        raise UserError(f"--gpu {name}: not known; known: {', '.join(DATA_SHEETS)}")
    return found


def this_device(runtime: Runtime) -> Device:
    """Return the device that a run would use here. Loads torch (takes seconds) only if a GPU may exist."""
    lacks_gpu = runtime.device == "auto" and sys.platform == "linux" and lacks_nvidia()
    name = "cpu" if lacks_gpu else runtime.device
    if name != "cpu":
        from synthbench.base.runtime import device_name

        name = device_name(runtime)
    return cpu(runtime.threads or threads_each(1)) if name == "cpu" else _measured(name, _rate(name))


def cpu(threads: int) -> Device:
    """Return this machine's CPU with this number of threads."""
    return _measured(f"CPU, {threads} thread{'s' * (threads > 1)}", _rate("cpu") * threads**SCALING)


def _measured(name: str, rate: float) -> Device:
    return Device(name, math.inf, math.inf, rate, rate, rate, reached=1.0)


@cache
def _rate(device: str) -> float:
    """Return the measured rate of matrix products in 10^12 operations per second; on a CPU, of one thread."""
    if device == "cpu":
        import numpy as np

        matrix: Any = np.ones((SIZE, SIZE), np.float32)
        # CPU time: other programs on the machine would distort wall-clock time.
        clock = time.process_time
    else:
        import torch

        matrix, clock = torch.ones((SIZE, SIZE), device=device), time.perf_counter
    from threadpoolctl import threadpool_limits

    seconds = []
    with threadpool_limits(1):
        for _ in range(TIMES):
            started = clock()
            (matrix @ matrix)[0, 0].item()  # reading the result waits for the GPU
            seconds.append(clock() - started)
    return float(2 * SIZE**3 / max(min(seconds), 1e-9) / 1e12)


TIMINGS: Mapping[str, tuple[float, float, float]] = {
    "train": (1.0, 0.02, 0.5),
    "evaluate": (0.15, 2e-5, 0.75),
    "generate": (1.0, 1e-5, 0.75),
}
"""Kind of stage -> seconds per stage, seconds per call (step, text, request, record), share of the rate.

Measured on two cores of a server (docs/plan.md); assumed for GPUs.
"""
OF_A_GPU, OF_A_TEXT = 4.0, 1.4e-4
"""Extra seconds of a training on a GPU: once, and for each text, since the GPU waits for its tokens.

Measured on H100s with sentences of about 20 tokens (docs/gpu.md).
"""
LIGHT = (0.05, 1e-5, 0.75)
"""The three numbers of TIMINGS for stages that mainly read and write records."""


def arithmetic(kind: str, work: Work | None, device: Device) -> float | None:
    """Return a stage's seconds computed from its operations, None if these are unknown."""
    if work is None or work.operations is None:
        return None
    fixed, call, share = TIMINGS.get(kind, LIGHT)
    rate = {"fp32": device.fp32, "tf32": device.tf32}.get(work.precision, device.bf16)
    read = work.read / device.terabytes
    if kind == "train" and not device.is_cpu:
        fixed += OF_A_GPU + OF_A_TEXT * work.texts
    return fixed + call * work.calls + (work.operations / rate + read) / 1e12 / min(share, device.reached)


def size_of(kind: str, work: Work | None, device: Device) -> float | None:
    """Return a measure of a stage's work: seconds from `arithmetic`, else number of calls; None: unknown."""
    seconds = arithmetic(kind, work, device)
    return seconds if seconds is not None or work is None else work.calls


Key = tuple[str, str, str]
"""Kind, component and model: stages with the same key differ only in their amount of work."""
Past = Mapping[Key, list[tuple[float | None, float]]]
"""Key -> (size as from `size_of`, measured seconds) of each past stage."""


def by_similar(similar: Collection[tuple[float | None, float]], size: float | None) -> float:
    """Estimate a stage's seconds from (size, seconds) of one or more similar stages.

    Scales the seconds of the 5 nearest in size; if sizes are unknown, returns the mean of all.
    """
    sized = [(known, seconds) for known, seconds in similar if known]
    if not (size and sized):
        return sum(seconds for _, seconds in similar) / len(similar)
    nearest = sorted(sized, key=lambda each: abs(math.log(each[0] / size)))[:NEAREST]
    return size * sum(seconds for _, seconds in nearest) / sum(known for known, _ in nearest)


@dataclass(frozen=True)
class Figure:
    """An estimate of a stage's seconds or bytes; if `value` is None, `unknown` says why.

    `is_from_past`: from the measured seconds of similar stages.
    """

    value: float | None
    unknown: str = ""
    is_from_past: bool = False


class Estimator:
    """Estimates seconds from similar stages of this run, else of the store, else by arithmetic."""

    def __init__(self, known: StageFacts, device: Device, past: Past | None = None) -> None:
        self.device = device
        self._known = known
        self._past, self._own = past or {}, defaultdict[Key, list[tuple[float | None, float]]](list)
        self._works: dict[str, Work | None] = {}
        self._found: dict[tuple[Key, Work | None], Figure] = {}

    def estimate(self, stage: Stage) -> Figure:
        """Estimate the seconds that a stage will take, or say why they are unknown."""
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
        """Return the estimated seconds of a stage, None if unknown."""
        return self.estimate(stage).value

    def learn(self, stage: Stage, seconds: float) -> None:
        """Base later estimates also on these measured seconds of a stage of this run."""
        key, work = self._sort(stage)
        self._own[key].append((size_of(stage.kind, work, self.device), seconds))
        self._found.clear()

    def _sort(self, stage: Stage) -> tuple[Key, Work | None]:
        """Return the stage's key (kind, component, model), equal for similar stages, and its computation."""
        if stage.identity not in self._works:
            self._works[stage.identity] = work_of(self._known.view(stage))
        work = self._works[stage.identity]
        return (stage.kind, stage.operation.component, work.model if work else ""), work


def estimator_for(stages: Collection[Stage], runtime: Runtime, known: StageFacts) -> Estimator:
    """Return an estimator for stages that will run on this machine.

    It knows the times of similar stages among the store's 1000 newest artifacts.
    """
    wanted = {(stage.kind, stage.operation.component) for stage in stages}
    device = this_device(runtime)
    past = defaultdict[Key, list[tuple[float | None, float]]](list)
    for identity in known.store.newest(MOST_READ) if wanted else ():
        with suppress(Exception):  # records and plug-ins of strangers may raise anything
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
    """A sum of figures; `unknown` counts the stages without a figure, by reason."""

    value: float
    num_stages: int
    num_from_past: int
    unknown: Counter[str]

    @classmethod
    def of(cls, stages: Iterable[Stage], figure_of: Callable[[Stage], Figure]) -> "Total":
        """Add up the figures of the stages."""
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
        """ "about", or "at least" if some figures are unknown."""
        return "at least" if self.unknown else "about"

    @property
    def is_unknown(self) -> bool:
        """Whether there are stages and none has a figure."""
        return bool(self.num_stages) and self.unknown.total() == self.num_stages

    def gaps(self, what: str) -> Iterator[str]:
        """Yield a line for each reason why stages have no figure; `what` names the figure."""
        for why, number in self.unknown.items():
            yield f"unknown: {what} of {number} × {why}"

    def __str__(self) -> str:
        """Return the sum of seconds in words; "none" without stages, "unknown" if no stage has a figure."""
        if not self.num_stages:
            return "none"
        return "unknown" if self.is_unknown else f"{self.bound} {duration(self.value)}"


def stored(stage: Stage, known: StageFacts) -> Figure:
    """Estimate the bytes on disk of a stage's artifact: a model, records, or scores of items."""
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


def on_gpu(stage: Stage, known: StageFacts, gpu: Device) -> Figure:
    """Estimate the GPU memory in bytes that a stage needs at its peak: weights, activations and caches.

    A language model writes as many texts at once as fit into memory.
    """
    view = known.view(stage)
    work, shapes = work_of(view), models_of(view)
    if work is not None and work.weights:
        room = USED_SHARE * gpu.memory_gb * 1e9
        return Figure(CONTEXT + max(work.weights, min(work.weights + work.kept, room)))
    if gaps := [model for model, shape in shapes.items() if shape is None]:
        return Figure(None, f"the size of {gaps[0]}")
    filled = CONTEXT + weights(view)
    if isinstance(view.plugin, Trainer):
        filled += max((_kept(shape, view.plugin) for shape in shapes.values() if shape), default=0.0)
    return Figure(filled)


def weights(view: StageView) -> float:
    """Return the bytes of a stage's models of known size; in training, with gradients and AdamW's moments."""
    each = BYTES_TRAINED if view.kind == "train" else BYTES_READ
    return float(sum(each * shape.num_parameters for shape in models_of(view).values() if shape))


def _kept(shape: Shape, trainer: Trainer) -> float:
    """Return the bytes of one device's activations for a batch.

    Formula: Korthikanti et al. 2022, Reducing activation recomputation in large transformer models.
    """
    share = getattr(trainer, "batch_size", 1) // trainer.num_devices
    rows: int = min(getattr(trainer, "chunk_size", 0) or share, share)
    sentences: float = rows * getattr(trainer, "sentences_per_record", 1)
    tokens: int = getattr(trainer, "max_length", None) or LONGEST
    of_layer = sentences * tokens * (34 * shape.width + 5 * tokens * shape.width / HEAD)
    wide = 1 if getattr(trainer, "precision", "fp32") in ("bf16", "fp16") else 2
    if getattr(trainer, "gradient_checkpointing", False):
        of_inputs = 2 * sentences * tokens * shape.width * shape.num_layers
        return float(wide * (of_layer + of_inputs))
    return float(wide * of_layer * shape.num_layers)
