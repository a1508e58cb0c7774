"""Totals of a plan on a named GPU: hours, dollars, gigabytes, a line each."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from synthbench.base.errors import UserError
from synthbench.base.runtime import Runtime
from synthbench.config.served_llm import ServedLLM
from synthbench.engine.monitor import duration
from synthbench.engine.plan import StageStatus
from synthbench.engine.ray_nodes import GB
from synthbench.engine.stage import Stage
from synthbench.estimates.costs import llm_dollars
from synthbench.estimates.facts import StageFacts, expected
from synthbench.estimates.figures import Device, Estimator, Figure, Total, on_gpu, stored
from synthbench.estimates.needs import needs_of
from synthbench.estimates.simulation import simulated


@dataclass(frozen=True)
class Machines:
    """A number of equal GPUs; the price of one in US dollars per hour, None if not given."""

    gpu: Device
    number: int = 1
    price: float | None = None


def total_lines(
    found: Sequence[StageStatus], known: StageFacts, estimator: Estimator, machines: Machines
) -> Iterator[str]:
    """Yield the totals (stages, GPU-hours, wall-clock, dollars, gigabytes), then what they leave out."""
    to_run = [status.stage for status in found if status.is_to_run]
    on_gpus = [stage for stage in to_run if takes_gpu(stage, known)]
    filled = {stage: on_gpu(stage, known, machines.gpu) for stage in on_gpus}
    time = Total.of(on_gpus, estimator.estimate)
    disk = Total.of(to_run, lambda stage: stored(stage, known))
    most = with_all_tries(on_gpus, known, estimator)
    hours = "unknown" if time.is_unknown else f"{time.bound} {_figure(time.value / 3600)}"
    tries = (
        f" if no text needs another try, {_figure(most / 3600)} with all tries," if most > time.value else ""
    )
    yield _stages(found)
    yield f"GPU-hours: {hours}{tries} on {machines.gpu.title}"
    yield _wall_clock(to_run, known, estimator, machines.number)
    yield _dollars(found, known, time, machines)
    yield f"store: {disk.bound} {_figure(disk.value / GB)} GB more on disk"
    yield _memory(filled, machines.gpu)
    yield from time.gaps("GPU-hours")
    yield from disk.gaps("gigabytes in the store")
    yield from Total.of(on_gpus, filled.__getitem__).gaps("GPU memory")


def with_all_tries(stages: Iterable[Stage], known: StageFacts, estimator: Estimator) -> float:
    """Return the sum of the stages' seconds if every text of a language model needs all its tries.

    Unknown seconds count as 0.
    """
    return sum((estimator.seconds(stage) or 0.0) * expected(known.view(stage)).tries for stage in stages)


def takes_gpu(stage: Stage, known: StageFacts) -> bool:
    """Return whether a stage computes on a GPU: by its own models, or by an LLM that the run serves."""
    llm = stage.operation.asked_llm
    is_ours = llm is not None and isinstance(llm.settings, ServedLLM)
    return is_ours or needs_of(stage, 1, known=known, runtime=Runtime()).gpus > 0


def _stages(found: Sequence[StageStatus]) -> str:
    cached = sum(status.state == "cached" for status in found)
    unknown = sum(status.state == "unknown" for status in found)
    to_run = sum(status.is_to_run for status in found)
    doubt = f"; of {unknown:,} of them nobody can tell whether they are cached" if unknown else ""
    return f"stages: {len(found):,}, {cached:,} cached, {to_run:,} to run{doubt}"


def _wall_clock(to_run: Sequence[Stage], known: StageFacts, estimator: Estimator, number: int) -> str:
    """Return a line: the run's simulated time, and the share of this time for which the GPUs are busy.

    If a stage takes more than `number` GPUs, the line gives this reason instead.
    """
    try:
        seconds, busy = simulated(to_run, estimator.seconds, lambda stage: takes_gpu(stage, known), number)
    except UserError as error:
        return f"wall-clock: never: {error}"
    is_known = all(estimator.seconds(stage) is not None for stage in to_run)
    gpus = f"{number} GPUs, which are" if number > 1 else "1 GPU, which is"
    rest = "" if is_known else "; what is unknown comes on top"
    bound = "about" if is_known else "at least"
    return f"wall-clock: {bound} {duration(seconds)} with {gpus} busy for {busy:.0%} of it{rest}"


def _dollars(found: Sequence[StageStatus], known: StageFacts, time: Total, machines: Machines) -> str:
    llm, missing = llm_dollars(found, known)
    of_llm = f"{'at least ' if missing else ''}{llm:,.2f} for LLMs"
    if machines.price is None:
        return f"dollars: {of_llm}; unknown for GPUs: --gpu-price says what an hour costs"
    gpu = machines.price * time.value / 3600
    bound = "at least" if missing else time.bound
    of_gpu = f"{gpu:,.2f} for GPUs at {machines.price:,.2f} an hour"
    return f"dollars: {bound} {llm + gpu:,.2f} in all: {of_gpu}, {of_llm}"


def _memory(filled: Mapping[Stage, Figure], gpu: Device) -> str:
    """Return a line: the stage that needs most GPU memory, and whether this memory fits.

    The line says "unknown" if no stage's need is known.
    """
    known = {stage: figure.value for stage, figure in filled.items() if figure.value is not None}
    if not known:
        return f"GPU memory: {'unknown' if filled else 'none is used'}"
    most = max(known, key=lambda stage: known[stage])
    fits = "" if known[most] <= gpu.memory_gb * GB else "; DOES NOT FIT: take smaller batches, or another GPU"
    what = f"{most.kind} {most.operation.component}"
    return f"GPU memory: at most {_figure(known[most] / GB)} of {gpu.memory_gb:g} GB ({what}){fits}"


def _figure(number: float) -> str:
    return f"{number:,.1f}" if number < 100 else f"{number:,.0f}"
