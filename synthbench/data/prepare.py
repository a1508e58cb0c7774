"""The steps between generating data and training on it: each named, versioned, configurable and counted.

A new step is a subclass of `Step` (in `synthbench.data.preparing`) with a `step` name, a `version`, its
options as fields and `apply`; add it to `PrepareStep` and experiment files know it.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Annotated

from pydantic import Field

from synthbench.data.dataset import SyntheticDataset
from synthbench.data.preparing.drops import DropDuplicates, DropIdentical, DropOverlap, DropRefusals, Length
from synthbench.data.preparing.sampling import KeepPerGroup, Sample, Split
from synthbench.data.preparing.scores import AddRandomNegatives, SmoothLabels
from synthbench.data.preparing.step import Step
from synthbench.data.records import Record
from synthbench.errors import UserError

PrepareStep = Annotated[
    DropIdentical
    | DropDuplicates
    | DropRefusals
    | Length
    | SmoothLabels
    | KeepPerGroup
    | AddRandomNegatives
    | Sample
    | Split
    | DropOverlap,
    Field(discriminator="step"),
]

NO_OTHERS: Mapping[str, SyntheticDataset] = MappingProxyType({})


def apply_steps(
    dataset: SyntheticDataset, steps: Iterable[Step], others: Mapping[str, SyntheticDataset] = NO_OTHERS
) -> SyntheticDataset:
    """Apply the steps in order; the manifest counts each one's drops under its name and notes its options.

    `others` are the further sources that steps read, by name.

    Raises UserError if a step is not made for this kind of record, or can't do what it is asked to.
    """
    steps = tuple(step.with_others(others) for step in steps)
    for step in steps:
        obstacle = step.obstacle(dataset.kind)
        if obstacle:
            raise UserError(f"{step.step}: {obstacle}")
    if not steps:
        return dataset
    records: Sequence[Record] = tuple(dataset)
    dropped = Counter(dataset.manifest.dropped)
    notes = list(dataset.manifest.notes)
    for step in steps:
        result = step.apply(records)
        kept = {record.id for record in result}
        dropped[step.step] += sum(record.id not in kept for record in records)
        notes.append(_note(step, records, result))
        records = result
    return dataset.with_records(records, dropped=dict(dropped), notes=notes)


def _note(step: Step, before: Sequence[Record], after: Sequence[Record]) -> str:
    options = step.model_dump(mode="json", exclude={"step"})
    texts = ", ".join(f"{name} {_text(value)}" for name, value in options.items())
    sizes = f"{len(before)} -> {len(after)} records"
    remark = step.remark(before, after)
    return f"{step.step} v{step.version} ({texts or 'no options'}): {sizes}{f'; {remark}' if remark else ''}"


def _text(value: object) -> str:
    if isinstance(value, list):
        return " and ".join(map(str, value))
    return "none" if value is None else str(value)
