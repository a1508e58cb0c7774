"""The number of stages that run at the same time on this machine, and the GPUs that they share."""

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from synthbench.base.grouping import grouped
from synthbench.base.processes import usable_cores
from synthbench.base.runtime import Runtime
from synthbench.engine.devices import Devices, local_gpus, side_by_side
from synthbench.engine.ray_nodes import GB, Needs
from synthbench.engine.stage import Stage
from synthbench.estimates.facts import StageFacts
from synthbench.estimates.needs import needs_of


@dataclass(frozen=True)
class Capacity:
    """This machine's GPUs, CPU cores and gigabytes of memory."""

    gpus: int
    cpus: int
    memory_gb: float

    @classmethod
    def here(cls, runtime: Runtime) -> "Capacity":
        """Return this machine's memory, its usable cores, and its GPUs that `runtime.device` allows."""
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / GB
        return cls(len(local_gpus(runtime.device)), usable_cores(), memory)

    def most(self, need: Needs) -> tuple[int, str]:
        """Return how many stages with this need fit at once (at least 1), and which resource limits them.

        The second is a text: "8 GPUs, 1 each".
        """
        limits = [
            (self.cpus // need.cpus, f"{self.cpus} cores, {need.cpus} each"),
            (int(self.memory_gb / need.memory_gb), f"{self.memory_gb:.0f} GB, {need.memory_gb:g} each"),
        ]
        if self.gpus and need.gpus:
            limits.insert(0, (side_by_side(self.gpus, need.gpus), f"{self.gpus} GPUs, {need.gpus:g} each"))
        number, why = min(limits, key=lambda limit: limit[0])
        return max(1, number), why


def local_devices(
    stages: Iterable[Stage], runtime: Runtime, known: StageFacts, num_jobs: int
) -> Devices | None:
    """Return this machine's GPUs for jobs to lease; None without GPUs, or if the only job uses them all.

    Raises UserError if there are GPUs, but fewer than a stage or the jobs need.
    """
    stages = tuple(stages)
    is_shared = any(stage.operation.num_devices > 1 for stage in stages)
    names = local_gpus(runtime.device) if num_jobs > 1 or is_shared else ()
    if not names:
        return None
    devices = Devices(names, lambda stage: needs_of(stage, len(names), known=known, runtime=runtime).gpus)
    devices.check(stages, num_jobs)
    return devices if num_jobs > 1 else None


def room_for(stages: Sequence[Stage], runtime: Runtime, known: StageFacts, room: Capacity) -> Iterator[str]:
    """Yield one line: how many stages of each kind fit at the same time, and which resource limits them.

    Yields nothing if all stages are sources or other stages that run before the jobs.
    """
    needs: dict[str, Needs] = {}
    need_of = partial(needs_of, num_gpus=room.gpus, known=known, runtime=runtime)
    for stage in stages:
        if not stage.operation.comes_first:
            one, most = need_of(stage), needs.get(stage.kind, Needs(1, 0.0, 0.0))
            needs[stage.kind] = Needs(
                max(one.cpus, most.cpus), max(one.gpus, most.gpus), max(one.memory_gb, most.memory_gb)
            )
    kinds = grouped((room.most(need), kind) for kind, need in needs.items())
    if kinds:
        parts = (f"{number} × {', '.join(names)} ({why})" for (number, why), names in kinds.items())
        yield f"side by side with --jobs, at most: {'; '.join(parts)}"
