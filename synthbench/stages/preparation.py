"""Stages that prepare data: one for successive plain steps, one for each step that uses models or an LLM."""

from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from shutil import rmtree
from typing import Any, ClassVar

from synthbench.base.errors import UserError
from synthbench.base.processes import free_memory
from synthbench.config.experiment import PrepareStep
from synthbench.data.checking import fingerprint
from synthbench.data.dataset import (
    FAILURES_FILE,
    RECORDS_FILE,
    ParquetRecords,
    StoredRecords,
    set_aside,
    write_tables,
)
from synthbench.data.manifest import Manifest, read_manifest, write_manifest
from synthbench.data.records import Record, RecordKind
from synthbench.engine.artifacts import DATASET_FOLDER, dataset_folder
from synthbench.engine.ray_nodes import GB
from synthbench.engine.stage import Operation
from synthbench.engine.workspace import Workspace
from synthbench.plugins.code import code_of
from synthbench.plugins.contracts import Step
from synthbench.stages.asking import AskingOperation, Context, other_models
from synthbench.stages.own_prompts import OwnPrompts, as_setting
from synthbench.stages.plugin_calls import checked_records

Write = Callable[[RecordKind, Iterable[Record]], ParquetRecords]
BETWEEN = "between"
"""Folder of intermediate data between steps."""
MEMORY_SAID_FROM = 0.1 * GB
"""A stage that needs at least this many bytes of memory announces it before it starts."""
RECIPE = "steps"
"""The component name of a stage of plain steps, which has no single plug-in."""


@dataclass(frozen=True)
class Prepare(Operation):
    """Applies plain steps in order to the "data" input; they may also read "against:..." inputs."""

    kind: ClassVar[str] = "prepare"
    component: ClassVar[str] = RECIPE
    version: ClassVar[int] = 1
    steps: tuple[PrepareStep, ...]

    def code(self) -> Mapping[str, Mapping[str, str]]:
        """Return the code of the steps' plug-ins."""
        return code_of([(step.name, step.plugin) for step in self.steps])

    def config(self) -> Mapping[str, Any]:
        """Return each step's configuration and version."""
        return {"steps": [dict(step.identity()) for step in self.steps]}

    def run(self, inputs: Mapping[str, Path], work: Workspace) -> None:
        """Apply the steps in order."""
        apply_steps(inputs["data"] / DATASET_FOLDER, self.steps, Context(inputs, work), dataset_folder(work))


@dataclass(frozen=True)
class ApplyStep(AskingOperation[Step]):
    """Applies one step that uses models ("need:..." inputs) or an LLM to the "data" input."""

    kind: ClassVar[str] = "prepare"
    own_prompts: OwnPrompts = ()
    """Query and passage prompts of the step's encoders, if they have any."""

    def config(self) -> Mapping[str, Any]:
        """Return the step's configuration, and its encoders' query and passage prompts, if any."""
        return {**super().config(), **as_setting(self.own_prompts)}

    def run(self, inputs: Mapping[str, Path], work: Workspace) -> None:
        """Apply the step."""
        data, step = inputs["data"] / DATASET_FOLDER, PrepareStep(self.name, self.plugin)
        with self.context(inputs, work) as context:
            prepared = apply_steps(data, [step], context, dataset_folder(work))
            if models := other_models(work):
                prepared = prepared.with_models(models)
                write_manifest(prepared, dataset_folder(work))
        work.progress.say(_summary(read_manifest(data), prepared))


def _summary(before: Manifest, after: Manifest) -> str:
    """Describe a step's outcome in one line: records before and after, drops by reason, new figures."""
    lost = Counter(after.dropped) - Counter(before.dropped)
    counts = [f"{count:,} × {reason}" for reason, count in lost.most_common()]
    dropped = f"; dropped: {'; '.join(counts)}" if counts else ""
    new = {name: value for name, value in after.measured.items() if name not in before.measured}
    measured = "".join(f"; {name}: {value:g}" for name, value in new.items())
    return f"  {before.num_records:,} -> {after.num_records:,} {after.kind} records{dropped}{measured}"


def apply_steps(source: Path, steps: Iterable[PrepareStep], context: Context, target: Path) -> Manifest:
    """Apply the steps in order to a stored data set, and write the outcome to `target`, which must exist.

    The manifest gets each step's drops and options. Drops are counted under the step's name, or under NAME:
    REASON if it gives reasons. Each step's records are written before the next step begins. So only some
    thousand records are in memory, in addition to those that a step itself keeps.

    Returns the new manifest. Raises UserError if a step does not support this kind of record, yields other
    records than it should, or raises UserError.
    """
    steps = tuple(steps)
    data = StoredRecords(source)
    _check_kinds(steps, data.kind)
    if (need := memory_of(steps, len(data))) >= MEMORY_SAID_FROM:
        free = f"{free_memory() / GB:.1f} GB are free"
        context.work.progress.say(f"  needs about {need / GB:.1f} GB of memory; {free}")
    last = _Outcome(source, target)
    preparation = _Preparation(context, Counter(data.manifest.dropped), list(data.manifest.notes))
    records: ParquetRecords = data
    folder = context.work.folder / BETWEEN
    folder.mkdir(parents=True, exist_ok=True)
    for number, step in enumerate(steps, start=1):
        between = partial(set_aside, folder / f"{number}.parquet")
        records = preparation.apply(step, records, last.write if number == len(steps) else between)
    if not steps:
        last.write(data.kind, data)
    return last.finish(preparation)


def memory_of(steps: Iterable[PrepareStep], num_records: int) -> float:
    """Return the largest extra memory of a step in bytes, beyond what every stage needs; unknown: 0."""
    most = 0.0
    for step in steps:
        most = max(most, step.plugin.memory(num_records) or 0.0)
        num_records = step.plugin.expected(num_records)
    return most


def _check_kinds(steps: Iterable[PrepareStep], kind: RecordKind) -> None:
    for step in steps:
        obstacle = step.plugin.obstacle(kind)
        if obstacle:
            raise UserError(f"{step.name}: {obstacle}")
        kind = step.plugin.kind_after(kind)


@dataclass
class _Preparation:
    """Applies steps one by one, and counts the records that they drop."""

    context: Context
    dropped: Counter[str]
    notes: list[str]

    def apply(self, step: PrepareStep, before: ParquetRecords, write: Write) -> ParquetRecords:
        """Write the records that a step yields, and count its drops; return the records as written."""
        self.context.dropped.clear()
        kind = step.plugin.kind_after(before.kind)
        ids = array("Q")
        made = checked_records(lambda: step.plugin.apply(before, self.context), step.name, kind)
        after = write(kind, _collecting_ids(made, ids))
        rmtree(self.context.work.scratch, ignore_errors=True)
        self._count(step.name, 0 if step.plugin.replaces_ids else _num_removed(before, ids))
        self.notes.append(_note(step, before, after))
        return after

    def _count(self, name: str, num_dropped: int) -> None:
        reasons = self.context.dropped
        for reason, amount in sorted(reasons.items()):
            self.dropped[f"{name}: {reason}"] += amount
        if num_dropped != reasons.total() or not reasons:
            self.dropped[name] += max(0, num_dropped - reasons.total())


class _Outcome:
    """The data set that the steps write; it keeps the failures of the original data set."""

    def __init__(self, source: Path, target: Path) -> None:
        self._before = read_manifest(source)
        self._failures = ParquetRecords(source / FAILURES_FILE, RecordKind.FAILURE, self._before.num_failures)
        self._target = target
        self._tables: dict[str, Any] = {}

    def write(self, kind: RecordKind, records: Iterable[Record]) -> ParquetRecords:
        """Check and write the last step's records, and the original failures."""
        self._tables = {"kind": kind, **write_tables(self._target, kind, chain(records, self._failures))}
        return ParquetRecords(self._target / RECORDS_FILE, kind, self._tables["num_records"])

    def finish(self, preparation: _Preparation) -> Manifest:
        """Delete the intermediate data; write the manifest and return it."""
        rmtree(preparation.context.work.folder / BETWEEN, ignore_errors=True)
        changes = {
            **self._tables,
            "dropped": dict(preparation.dropped),
            "notes": preparation.notes,
            "measured": {**self._before.measured, **preparation.context.measured},
        }
        manifest = Manifest.model_validate(self._before.model_dump() | changes)
        write_manifest(manifest, self._target)
        return manifest


def _collecting_ids(records: Iterable[Record], ids: "array[int]") -> Iterator[Record]:
    for record in records:
        ids.append(fingerprint(record.id))
        yield record


def _num_removed(before: ParquetRecords, ids: "array[int]") -> int:
    """Return how many records have an id whose fingerprint is not in `ids`."""
    import numpy as np

    known = np.fromiter((fingerprint(each) for (each,) in before.rows_of("id")), np.uint64, len(before))
    return len(known) - int(np.isin(known, np.frombuffer(ids, np.uint64)).sum())


def _note(step: PrepareStep, before: ParquetRecords, after: ParquetRecords) -> str:
    options = step.plugin.model_dump(mode="json")
    texts = ", ".join(f"{name} {_text(value)}" for name, value in options.items())
    sizes = f"{len(before)} -> {len(after)} records"
    remark = step.plugin.remark(before, after)
    version = step.plugin.version_in_use()
    return f"{step.name} v{version} ({texts or 'no options'}): {sizes}{f'; {remark}' if remark else ''}"


def _text(value: object) -> str:
    if isinstance(value, list):
        return " and ".join(map(str, value))
    return "none" if value is None else str(value)
