"""Finds the stages that can start: those whose inputs all exist."""

import heapq
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import count
from operator import itemgetter

from synthbench.engine.stage import Stage


class Schedule:
    """The stages of a run that have not started, and which of them are ready.

    Counts each stage's missing inputs, so a finished stage only updates its dependents. Inputs outside
    `stages` count as existing.
    """

    def __init__(self, stages: Mapping[str, Stage]) -> None:
        self._waiting = dict(stages)
        self._positions = {identity: position for position, identity in enumerate(stages)}
        self._next_position = count(len(stages))
        self._num_missing: dict[str, int] = {}
        self._dependents: dict[str, list[str]] = defaultdict(list)
        self._ready: dict[str, dict[int, Stage]] = defaultdict(dict)
        self._queue: list[tuple[int, str]] = []
        for identity, stage in stages.items():
            inputs = {source.identity for source in stage.reads.values()}
            self._num_missing[identity] = sum(source in stages for source in inputs)
            for source in inputs:
                self._dependents[source].append(identity)
        self._add_ready(identity for identity, missing in self._num_missing.items() if not missing)

    def __bool__(self) -> bool:
        """Whether stages are left that have not started."""
        return bool(self._waiting)

    def start(self, fits: Callable[[Stage], bool] = lambda _: True) -> list[Stage]:
        """Take out and return the first group of ready stages that can start now, [] if there is none.

        `fits` says whether the resources of the group's first stage are free. A group's stages run together.
        """
        group: list[Stage] = []
        passed: list[tuple[int, str]] = []
        while self._queue and not group:
            position, key = heapq.heappop(self._queue)
            ready = self._ready[key]
            # The queue holds a group once per member; the first entry takes the whole group out.
            if position in ready and fits(ready[min(ready)]):
                group = [stage for _, stage in sorted(self._ready.pop(key).items(), key=itemgetter(0))]
            elif position in ready:
                passed.append((position, key))
        for entry in passed:
            heapq.heappush(self._queue, entry)
        for stage in group:
            del self._waiting[stage.identity]
        return group

    def finish(self, identities: Iterable[str]) -> None:
        """Note that these artifacts now exist, which may make stages ready."""
        for identity in identities:
            for dependent in self._dependents[identity]:
                self._num_missing[dependent] -= 1
            self._add_ready(each for each in self._dependents[identity] if not self._num_missing[each])

    def drop(self, identities: Iterable[str]) -> list[Stage]:
        """Remove and return, in schedule order, all stages that depend on these missing artifacts."""
        dropped: list[Stage] = []
        lost = list(identities)
        while lost:
            for dependent in self._dependents[lost.pop()]:
                if dependent in self._waiting:
                    dropped.append(self._waiting.pop(dependent))
                    lost.append(dependent)
        for stage in dropped:
            self._ready[_group(stage)].pop(self._positions[stage.identity], None)
        return sorted(dropped, key=lambda stage: self._positions[stage.identity])

    def put_back(self, stages: Sequence[Stage]) -> None:
        """Re-queue stages that could not start, at the end."""
        for stage in stages:
            self._waiting[stage.identity] = stage
            self._positions[stage.identity] = next(self._next_position)
        self._add_ready(stage.identity for stage in stages)

    def _add_ready(self, identities: Iterable[str]) -> None:
        for identity in identities:
            stage = self._waiting.get(identity)
            if stage is not None:
                key, position = _group(stage), self._positions[identity]
                self._ready[key][position] = stage
                heapq.heappush(self._queue, (position, key))


def _group(stage: Stage) -> str:
    """Return the key of the stage's group: stages of equal key run together."""
    return stage.operation.group(stage.inputs) or stage.identity
