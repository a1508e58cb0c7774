"""The generate stage: journals a method's records as they come, and writes the data set."""

import json
from array import array
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from itertools import chain, pairwise
from pathlib import Path
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field

from synthbench.base.errors import UserError, in_one_line
from synthbench.base.redaction import without_secrets
from synthbench.data.checking import CheckedRecords, Fingerprints
from synthbench.data.dataset import SyntheticDataset, write_records
from synthbench.data.manifest import Manifest
from synthbench.data.records import Failure, Record, RecordKind
from synthbench.engine.artifacts import dataset_folder, read_dataset, read_json
from synthbench.engine.stage import SHARD, Stage
from synthbench.engine.unfinished import JOURNAL
from synthbench.engine.workspace import Journal, Workspace, as_line
from synthbench.plugins.contracts import Method, Unit
from synthbench.stages.asking import (
    SHARD_KEY,
    AskingOperation,
    Context,
    Shard,
    other_models,
    record_from_entry,
)
from synthbench.stages.plugin_calls import checked_outputs

SOURCE = "source:"
BARE_FILE = "bare.jsonl"
UNITS_FILE, COUNTS_FILE = "units.jsonl", "counts.json"
_REASONS_SHOWN = 5
_INVALID_RECORDS = (UserError, AttributeError, KeyError, OverflowError, RecursionError, TypeError, ValueError)
"""Errors on reading unchecked records, which a stranger may have written."""


@dataclass(frozen=True)
class Generate(AskingOperation[Method]):
    """Runs a method on its sources ("source:..." inputs) and dependencies ("need:..." inputs)."""

    kind: ClassVar[str] = "generate"
    is_chained: bool = False
    """Whether a source is another stage's output; the method checks its sources only after that stage."""

    def check(self, inputs: Mapping[str, Path]) -> None:
        """Let the method check its sources' data, if it has a check of its own, unless `is_chained`."""
        if not self.is_chained and type(self.plugin).check_data is not Method.check_data:
            self.plugin.check_data(_sources(inputs))

    def check_work(self, folder: Path) -> None:
        """Drop damaged entries of the journal; raise UserError if a unit's records are not valid."""
        journal = Journal(folder / JOURNAL)
        journal.repair()
        self.check_units(journal, "its journal")

    def check_units(self, units: Journal, title: str) -> None:
        """Raise UserError, which begins with `title`, if a unit's records are not valid for a data set."""
        kept, failures = (
            CheckedRecords(kind, lambda _: None) for kind in (self.plugin.record_kind, RecordKind.FAILURE)
        )
        try:
            for entry in units.read():
                for row in _Entry.model_validate(entry).records:
                    record = record_from_entry(row)
                    (failures if record.kind == RecordKind.FAILURE else kept).add(record)
            kept.finish()
            failures.finish()
        except _INVALID_RECORDS as fault:
            raise UserError(f"{title} is not what such a stage writes: {in_one_line(fault)}") from fault

    def run(self, inputs: Mapping[str, Path], work: Workspace) -> None:
        """Generate the units missing from the journal, then write the data set, ordered by unit.

        Records outside units come last. With shards, all units exist already. Raises UserError if there are
        no records; with an LLM the journal is then deleted, so that the next run asks failed requests again.
        """
        sources = _sources(inputs)
        if self.is_chained:
            self.plugin.check_data(sources)
        shards = [folder for name, folder in inputs.items() if name.startswith(SHARD)]
        counts = self._of_shards(shards, work) if shards else None
        if counts is None:
            counts = self._make(sources, inputs, work)
        offsets, dropped = _in_order(work.journal)
        dropped.update(counts.dropped)
        failed: Counter[str] = Counter()

        def records() -> Iterator[Record]:
            made = (entry["records"] for entry in work.journal.at(offsets))
            for row in chain(chain.from_iterable(made), _bare_rows(work)):
                record = self._complete(record_from_entry(row))
                if isinstance(record, Failure):
                    failed[record.reason] += 1
                yield record

        manifest = write_records(
            dataset_folder(work),
            self.plugin.record_kind,
            records(),
            method=self.name,
            version=self.version,
            config=without_secrets(dict(self.config())),
            sources={role: source.manifest.content_hash for role, source in sources.items()},
            revisions=dict(self.outside),
            dropped=dict(sorted(dropped.items())),
            measured=dict(counts.measured),
            answered_by=other_models(work),
        )
        if not manifest.num_records:
            if work.llm is not None:
                # Answers are cached: running the command again asks only for the failed ones.
                work.journal.discard()
            raise UserError(f"{self.name} made no records: {_reasons(failed, dropped)}")
        work.progress.say(_summary(manifest, failed, dropped))

    def _make(
        self,
        sources: Mapping[str, SyntheticDataset],
        inputs: Mapping[str, Path],
        work: Workspace,
        shard: Shard | None = None,
    ) -> "_Counts":
        """Write the missing units to the journal; return the method's counts."""
        finished = frozenset(entry["key"] for entry in work.journal.read())
        with self.context(inputs, work, finished, shard) as context:
            self._generate(sources, context, work)
        return _Counts(dropped=dict(context.dropped), measured=dict(context.measured))

    def _of_shards(self, shards: Sequence[Path], work: Workspace) -> "_Counts | None":
        """Fill the journal with the shards' units; return their counts, or None if the shards' counts differ.

        Counts over a shard's own records differ between shards; the method then has to count again.
        Raises UserError if two shards made the same unit, or if a shard's counts are not valid.
        """
        work.journal.copy_from(folder / UNITS_FILE for folder in shards)
        (work.folder / BARE_FILE).touch()
        keys = Fingerprints()
        for entry in work.journal.read():
            if not keys.add(entry["key"]):
                raise UserError(
                    f"{self.name} made the unit '{entry['key']}' in two shards; `can_be_sharded` needs"
                    " pieces of work that are made where `is_mine` says so"
                )
        counted = [_read_counts(folder) for folder in shards]
        return counted[0] if all(each == counted[0] for each in counted) else None

    def _generate(self, sources: Mapping[str, SyntheticDataset], context: Context, work: Workspace) -> None:
        """Write the method's new units to the journal, and records outside any Unit to `BARE_FILE`.

        Raises UserError for an invalid output, or for two units with one key.
        """
        yielded = Fingerprints()
        with (work.folder / BARE_FILE).open("w", encoding="utf-8") as bare:
            made = self.plugin.generate(sources, context)
            for output in checked_outputs(made, self.name, self.plugin.record_kind):
                if not isinstance(output, Unit):
                    bare.write(as_line(_to_row(output)))
                    continue
                if not yielded.add(output.key):
                    raise UserError(f"{self.name} yielded two units with the key '{output.key}'")
                if output.key not in context.finished_units:
                    work.journal.append(_to_entry(output))

    def _complete(self, record: Record) -> Record:
        return record if record.method else replace(record, method=self.name)


@dataclass(frozen=True)
class GenerateShard(Generate):
    """Makes the units of one shard of a Generate stage; has the same inputs as that stage."""

    shard: Shard = field(kw_only=True)

    def config(self) -> Mapping[str, Any]:
        """Return the configuration of the whole data set, this shard's number and the number of shards."""
        return {**super().config(), SHARD_KEY: asdict(self.shard)}

    def check(self, inputs: Mapping[str, Path]) -> None:
        """Check nothing: the Generate stage checks the sources."""

    def check_artifact(self, folder: Path, stage: Stage) -> None:
        """Raise UserError if the counts or a unit's records are not valid."""
        _read_counts(folder)
        self.check_units(Journal(folder / UNITS_FILE), f"{folder}:")

    def run(self, inputs: Mapping[str, Path], work: Workspace) -> None:
        """Make the units missing from the journal; write all units and the method's counts.

        Raises UserError if the method yields records outside units.
        """
        counts = self._make(_sources(inputs), inputs, work, self.shard)
        if (work.folder / BARE_FILE).stat().st_size:
            raise UserError(f"{self.name} says that it can be sharded; it must then yield Units only")
        offsets, _ = _in_order(work.journal)
        work.output.mkdir(parents=True, exist_ok=True)
        work.journal.write(offsets, work.output / UNITS_FILE)
        (work.output / COUNTS_FILE).write_text(
            json.dumps(counts.model_dump(), sort_keys=True), encoding="utf-8"
        )
        work.progress.say(f"  {len(offsets):,} units")


class _Counts(BaseModel):
    """A method's counts: dropped candidates by reason, and figures of the data."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    dropped: dict[str, int]
    measured: dict[str, float]


class _Entry(BaseModel):
    """A unit as the journal stores it."""

    model_config = ConfigDict(extra="forbid", strict=True)

    key: str
    position: int = Field(ge=-(2**63), lt=2**63)
    records: list[dict[str, Any]]
    dropped: dict[str, int] = {}


def _read_counts(shard: Path) -> _Counts:
    """Return a shard's counts; raises UserError if the file holds something else."""
    return _Counts.model_validate(read_json(shard / COUNTS_FILE, _Counts))


def _sources(inputs: Mapping[str, Path]) -> dict[str, SyntheticDataset]:
    """Return the method's sources by role."""
    return {
        name.removeprefix(SOURCE): read_dataset(folder)
        for name, folder in inputs.items()
        if name.startswith(SOURCE)
    }


def _bare_rows(work: Workspace) -> Iterator[dict[str, Any]]:
    """Yield the rows of records that the method yielded outside any Unit, in order."""
    with (work.folder / BARE_FILE).open(encoding="utf-8") as stream:
        yield from map(json.loads, stream)


def _summary(manifest: Manifest, failed: Counter[str], dropped: Mapping[str, int]) -> str:
    """Describe the data set in one line: records, failures, dropped candidates."""
    failures = f"; failures: {failed.total():,}" if failed else ""
    if 0 < len(failed) <= _REASONS_SHOWN:
        failures += f" ({_counted(failed)})"
    lost = f"; dropped: {_counted(dropped)}" if dropped else ""
    return f"  {manifest.num_records:,} {manifest.kind} records{failures}{lost}"


def _counted(counts: Mapping[str, int]) -> str:
    return "; ".join(f"{count:,} × {reason}" for reason, count in Counter(counts).most_common())


def _in_order(journal: Journal) -> tuple["array[int]", Counter[str]]:
    """Return the byte offsets of the journal's units in order, and the dropped candidates by reason.

    Units are ordered by position, then by key. Keys are read only for equal positions, to save memory: there
    may be a million units.
    """
    import numpy as np

    offsets, positions = array("Q"), array("q")
    dropped: Counter[str] = Counter()
    for offset, entry in journal.located():
        offsets.append(offset)
        positions.append(entry["position"])
        dropped.update(entry.get("dropped", {}))
    order = np.argsort(np.array(positions), kind="stable")
    sorted_offsets = array("Q", np.array(offsets, np.uint64)[order].tobytes())
    is_start = np.diff(np.array(positions)[order]) != 0
    starts = np.flatnonzero(np.r_[True, is_start, True])
    for start, stop in pairwise(starts.tolist()):
        if stop - start > 1:
            equal = sorted_offsets[start:stop]
            keys = [entry["key"] for entry in journal.at(equal)]
            in_order = (offset for _, offset in sorted(zip(keys, equal, strict=True)))
            sorted_offsets[start:stop] = array("Q", in_order)
    return sorted_offsets, dropped


def _to_entry(unit: Unit) -> dict[str, Any]:
    entry = {"key": unit.key, "position": unit.position, "records": list(map(_to_row, unit.records))}
    return {**entry, "dropped": dict(unit.dropped)} if unit.dropped else entry


def _to_row(record: Record) -> dict[str, Any]:
    """Return the kind and the columns that differ from their defaults, so that the journal stays small."""
    defaults = {known.name: known.default for known in fields(record)}
    given = {name: value for name, value in record.values().items() if value != defaults[name]}
    return {"kind": record.kind.value, **given}


def _reasons(failed: Counter[str], dropped: Counter[str]) -> str:
    counted: Iterator[str] = (f"{count} x {reason}" for reason, count in (failed + dropped).items())
    return ", ".join(counted) or "it yielded nothing"
