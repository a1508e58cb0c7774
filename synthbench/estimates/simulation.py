"""How long a run takes on several equal GPUs: a simulation with the scheduler that runs use."""

import heapq
from collections.abc import Callable, Sequence
from itertools import count

from synthbench.engine.devices import Devices, GPULease
from synthbench.engine.schedule import Schedule
from synthbench.engine.stage import Stage


def simulated(
    stages: Sequence[Stage],
    seconds_of: Callable[[Stage], float | None],
    takes_gpu: Callable[[Stage], bool],
    num_gpus: int,
) -> tuple[float, float]:
    """Simulate a run of the stages: in order, each starts once its inputs exist and its GPUs are free.

    Returns the seconds from the first stage's start to the last stage's end, and the mean share of this time
    for which a GPU is busy. `seconds_of` returns a stage's seconds on one GPU; None (unknown) counts as 0. A
    stage on several devices divides its work among them. Stages without a GPU never wait for a core.
    Raises UserError if a stage takes more GPUs than there are.
    """
    devices = Devices(
        [str(number) for number in range(num_gpus)],
        lambda stage: float(stage.operation.num_devices * takes_gpu(stage)),
    )
    devices.check(stages, 1)
    schedule, order = Schedule({stage.identity: stage for stage in stages}), count()
    running = list[tuple[float, int, list[Stage], GPULease]]()
    now = gpu_seconds = 0.0
    while schedule or running:
        while group := schedule.start(devices.fits):
            lease = devices.lease(group[0])
            seconds = sum((seconds_of(stage) or 0.0) / stage.operation.num_devices for stage in group)
            gpu_seconds += seconds * len(lease.names)
            heapq.heappush(running, (now + seconds, next(order), group, lease))
        now, _, group, lease = heapq.heappop(running)
        devices.give_back(lease)
        schedule.finish(stage.identity for stage in group)
    return now, gpu_seconds / (num_gpus * now) if now else 0.0
