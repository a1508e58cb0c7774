"""Stages that prepare data: plain steps together, and each step that uses models or an LLM by itself."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from synthbench.config.experiment import PrepareStep
from synthbench.data.dataset import Manifest, SyntheticDataset
from synthbench.data.records import Record
from synthbench.errors import UserError
from synthbench.pipeline.engine.artifacts import read_dataset, read_json, write_dataset, write_json
from synthbench.pipeline.engine.stage import SHARD, Operation
from synthbench.pipeline.engine.workspace import Workspace
from synthbench.pipeline.operations.asking import (
    SHARD_KEY,
    AskingOperation,
    Context,
    Searched,
    Shard,
    key_of,
)
from synthbench.plugin_code import code_of
from synthbench.plugins import Step
from synthbench.preparing.searching import SearchingStep, distinct_texts

FOUND_FILE = "found.json"
RECIPE = "steps"
"""What a stage of plain steps is called, in place of a plug-in's name."""


@dataclass(frozen=True)
class Prepare(Operation):
    """Applies plain steps in order to the "data" input; they read "against:..." inputs."""

    kind: ClassVar[str] = "prepare"
    component: ClassVar[str] = RECIPE
    version: ClassVar[int] = 1
    steps: tuple[PrepareStep, ...]

    def code(self) -> Mapping[str, Mapping[str, str]]:
        """Return the code of the steps."""
        return code_of([(step.name, step.plugin) for step in self.steps])

    def config(self) -> Mapping[str, Any]:
        """Return each step with its version."""
        return {"steps": [dict(step.identity()) for step in self.steps]}

    @property
    def searching(self) -> tuple[tuple[PrepareStep, SearchingStep], ...]:
        """The steps whose search can be shared."""
        found = ((step, step.plugin) for step in self.steps)
        return tuple(
            (step, plugin)
            for step, plugin in found
            if isinstance(plugin, SearchingStep) and plugin.can_be_sharded()
        )

    def run(self, inputs: Mapping[str, Path], work: Workspace) -> None:
        """Apply the steps in order; shards, if there are any, have searched the texts."""
        data = read_dataset(inputs["data"])
        shards = [folder / FOUND_FILE for name, folder in inputs.items() if name.startswith(SHARD)]
        searched = _together(map(read_json, shards), frozenset(distinct_texts(data))) if shards else None
        write_dataset(apply_steps(data, self.steps, Context(inputs, work, searched=searched)), work)


@dataclass(frozen=True)
class PrepareShard(Prepare):
    """Searches every n-th text for a Prepare stage, which has the same inputs."""

    shard: Shard = field(kw_only=True)

    def config(self) -> Mapping[str, Any]:
        """Return the steps that search, and which shard this is."""
        steps = [dict(step.identity()) for step, _ in self.searching]
        return {"steps": steps, SHARD_KEY: asdict(self.shard)}

    def run(self, inputs: Mapping[str, Path], work: Workspace) -> None:
        """Write the texts that each step finds, by reason, in their order."""
        context = Context(inputs, work, shard=self.shard)
        texts = distinct_texts(read_dataset(inputs["data"]))
        mine = [text for number, text in enumerate(texts) if context.is_mine(number)]
        found = {key_of(plugin): plugin.find(mine, context) for _, plugin in self.searching}
        rows = {
            key: {reason: [text for text in mine if text in known] for reason, known in of_step.items()}
            for key, of_step in found.items()
        }
        work.output.mkdir(parents=True, exist_ok=True)
        write_json(work.output / FOUND_FILE, rows)


def _together(shards: Iterable[Mapping[str, Mapping[str, Sequence[str]]]], texts: frozenset[str]) -> Searched:
    """Return what all shards found."""
    found: dict[str, dict[str, set[str]]] = {}
    for shard in shards:
        for key, of_step in shard.items():
            for reason, known in of_step.items():
                found.setdefault(key, {}).setdefault(reason, set()).update(known)
    return Searched(texts, found)


@dataclass(frozen=True)
class ApplyStep(AskingOperation[Step]):
    """Applies one step to the "data" input: a step that uses models ("need:..." inputs) or an LLM."""

    kind: ClassVar[str] = "prepare"

    def table_notes(self) -> tuple[str, ...]:
        """Return the notes that every table of such data needs."""
        return (*super().table_notes(), *self.plugin.table_notes())

    def run(self, inputs: Mapping[str, Path], work: Workspace) -> None:
        """Apply the step."""
        dataset = read_dataset(inputs["data"])
        with self.context(inputs, work) as context:
            prepared = apply_steps(dataset, [PrepareStep(self.name, self.plugin)], context)
        write_dataset(prepared, work)
        work.progress.say(_summary(dataset.manifest, prepared.manifest))


def _summary(before: Manifest, after: Manifest) -> str:
    """Say how many records a step leaves, what it dropped and why, and what it counted."""
    lost = Counter(after.dropped) - Counter(before.dropped)
    counts = [f"{count:,} × {reason}" for reason, count in lost.most_common()]
    dropped = f"; dropped: {'; '.join(counts)}" if counts else ""
    new = {name: value for name, value in after.measured.items() if name not in before.measured}
    measured = "".join(f"; {name}: {value:g}" for name, value in new.items())
    return f"  {before.num_records:,} -> {after.num_records:,} {after.kind} records{dropped}{measured}"


def apply_steps(
    dataset: SyntheticDataset, steps: Iterable[PrepareStep], context: Context
) -> SyntheticDataset:
    """Apply the steps in order; the manifest counts what each drops and notes its options.

    Drops are counted under the step's name, or NAME: REASON where it gives reasons.

    Raises UserError if a step is not made for this kind of record, or can't do what it is asked to.
    """
    steps = tuple(steps)
    kind = dataset.kind
    for step in steps:
        obstacle = step.plugin.obstacle(kind)
        if obstacle:
            raise UserError(f"{step.name}: {obstacle}")
        kind = step.plugin.kind_after(kind)
    if not steps:
        return dataset
    records: Sequence[Record] = tuple(dataset)
    dropped = Counter(dataset.manifest.dropped)
    notes = list(dataset.manifest.notes)
    for step in steps:
        context.dropped.clear()
        result = step.plugin.apply(records, context)
        kept = {record.id for record in result}
        num_dropped = sum(record.id not in kept for record in records)
        for reason, amount in sorted(context.dropped.items()):
            dropped[f"{step.name}: {reason}"] += amount
        if num_dropped != context.dropped.total() or not context.dropped:
            dropped[step.name] += max(0, num_dropped - context.dropped.total())
        notes.append(_note(step, records, result))
        records = result
    measured = {**dataset.manifest.measured, **context.measured}
    return dataset.with_records(records, kind=kind, dropped=dict(dropped), notes=notes, measured=measured)


def _note(step: PrepareStep, before: Sequence[Record], after: Sequence[Record]) -> str:
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
