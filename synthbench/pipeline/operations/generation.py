"""The generate stage: a method's records, journalled as they come, into a data set."""

import json
import math
import socket
from array import array
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from itertools import chain, pairwise
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import urlsplit

from synthbench.config.llm import LLM, LocalLLM
from synthbench.data.checking import Fingerprints
from synthbench.data.dataset import Manifest, StoredRecords, SyntheticDataset, write_records
from synthbench.data.records import Failure, Record, RecordKind, from_row
from synthbench.errors import PendingError, UserError
from synthbench.llm.client import ChatClient
from synthbench.llm.endpoint import Endpoint
from synthbench.llm.endpoint_check import check_endpoint
from synthbench.llm.ledger import entries
from synthbench.llm.local_model import LocalModel
from synthbench.models.interfaces import Encoder, PairScorer
from synthbench.pipeline.engine.artifacts import DATASET_FOLDER, dataset_folder, model_folder, read_dataset
from synthbench.pipeline.engine.workspace import Journal, Workspace, as_line
from synthbench.pipeline.operations.plugin_calls import PluginOperation, checked
from synthbench.plugins import ChatModel, Method, Unit
from synthbench.runtime import Progress, Runtime, use_threads

SOURCE = "source:"
NEED = "need:"
BARE_FILE = "bare.jsonl"
_REASONS_SHOWN = 5
LLM_KEY = "experiment.llm"
"""Where a configuration holds the LLM; no method has a setting of this name."""


@dataclass(frozen=True)
class Generate(PluginOperation[Method]):
    """Runs a method on its "source:..." inputs, with what it declared as "need:..." inputs."""

    kind: ClassVar[str] = "generate"
    llm: LLM | None = None

    def config(self) -> Mapping[str, Any]:
        """Return the method's configuration, and of the LLM what its answers depend on."""
        llm = {} if self.llm is None else {LLM_KEY: dict(self.llm.identity())}
        return {**super().config(), **llm}

    @property
    def uses_llm(self) -> bool:
        """Whether the method asks an LLM."""
        return self.llm is not None

    def table_notes(self) -> tuple[str, ...]:
        """Return the notes that every table of such data needs."""
        of_llm = self.llm.table_notes() if isinstance(self.llm, LocalLLM) else ()
        return (*of_llm, *self.plugin.table_notes())

    @cached_property
    def outside(self) -> Mapping[str, str]:
        """The revisions of what the method reads from outside."""
        of_llm = self.llm.revisions() if isinstance(self.llm, LocalLLM) else {}
        return {**self.plugin.revisions(), **of_llm}

    def check(self, inputs: Mapping[str, Path]) -> None:
        """Let the method check its sources, if it has such a check: reading them takes a while."""
        if type(self.plugin).check_data is not Method.check_data:
            self.plugin.check_data(_sources(inputs))

    def check_llm(self) -> None:
        """Look up the model at its endpoint; the generated world's is started later, and has it."""
        if self.llm is not None:
            check_endpoint(self.llm.at(self.llm.address()))

    def run(self, inputs: Mapping[str, Path], work: Workspace) -> None:
        """Generate what the journal does not hold yet, then write the data set in the units' order."""
        sources = _sources(inputs)
        finished = frozenset(entry["key"] for entry in work.journal.read())
        endpoint = self._endpoint(work)
        local = LocalModel(endpoint, work.runtime, work.progress) if endpoint and endpoint.local else None
        context = Context(inputs, work, finished, endpoint, local)
        try:
            self._generate(sources, context, work)
        except (UserError, PendingError):
            raise
        except Exception as error:
            if work.llm is None or is_there(work.llm.model):
                raise
            raise UserError(_llm_is_gone(work.llm.model)) from error
        finally:
            _report_requests(work)
        offsets, dropped = _in_order(work.journal)
        dropped.update(context.dropped)
        failed: Counter[str] = Counter()

        def records() -> Iterator[Record]:
            made = (entry["records"] for entry in work.journal.at(offsets))
            for row in chain(chain.from_iterable(made), _bare_rows(work)):
                record = self._complete(_from_entry(row))
                if isinstance(record, Failure):
                    failed[record.reason] += 1
                yield record

        manifest = write_records(
            dataset_folder(work),
            self.plugin.record_kind,
            records(),
            method=self.name,
            version=self.version,
            config=dict(self.config()),
            sources={role: source.manifest.content_hash for role, source in sources.items()},
            revisions=dict(self.outside),
            dropped=dict(sorted(dropped.items())),
            measured=context.measured,
        )
        if not manifest.num_records:
            if work.llm is not None:
                # Answers are cached; the same command asks again for those that failed.
                work.journal.discard()
            raise UserError(f"{self.name} made no records: {_reasons(failed, dropped)}")
        work.progress.say(_summary(manifest, failed, dropped))

    def _endpoint(self, work: Workspace) -> Endpoint | None:
        return self.llm.at(work.llm.model) if self.llm is not None and work.llm is not None else None

    def _generate(self, sources: Mapping[str, SyntheticDataset], context: "Context", work: Workspace) -> None:
        """Journal the method's units; bare records are kept until the method runs again."""
        yielded = Fingerprints()
        with (work.folder / BARE_FILE).open("w", encoding="utf-8") as bare:
            made = self.plugin.generate(sources, context)
            for output in checked(made, self.name, self.plugin.record_kind):
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
class Context:
    """What a method may use while it generates (see plugins.GenerationContext)."""

    inputs: Mapping[str, Path]
    work: Workspace
    finished_units: Collection[str]
    endpoint: Endpoint | None = None
    local: LocalModel | None = None
    dropped: Counter[str] = field(default_factory=Counter)
    measured: dict[str, float] = field(default_factory=dict)

    @property
    def runtime(self) -> Runtime:
        """Device, threads, batch size."""
        return self.work.runtime

    @property
    def progress(self) -> Progress:
        """Where to report progress."""
        return self.work.progress

    @property
    def llm(self) -> ChatModel:
        """The experiment's LLM."""
        if self.work.llm is None:
            raise RuntimeError("only a method that says `uses_llm = True` has an LLM")
        return self.work.llm.model

    def chat(self) -> ChatClient:
        """Return a client of the experiment's LLM."""
        if self.work.llm is None or self.endpoint is None:
            raise RuntimeError("only a method that says `uses_llm = True` has an LLM")
        chat = self.work.llm
        return ChatClient(self.endpoint, chat.answers, chat.account, self.local, self.progress.say)

    def pair_scorer(self, need: str) -> PairScorer:
        """Load the pair scorer trained for the method."""
        model = self._model(need)
        if not isinstance(model, PairScorer):
            raise TypeError(f"the need '{need}' is an encoder, not a pair scorer")
        return model

    def encoder(self, need: str) -> Encoder:
        """Load the encoder trained for the method."""
        model = self._model(need)
        if not isinstance(model, Encoder):
            raise TypeError(f"the need '{need}' is a pair scorer, not an encoder")
        return model

    def dataset(self, need: str) -> SyntheticDataset:
        """Read the data set generated for the method."""
        return read_dataset(self.inputs[NEED + need])

    def records(self, need: str) -> StoredRecords:
        """Open the data set generated for the method."""
        return StoredRecords(self.inputs[NEED + need] / DATASET_FOLDER)

    def count_dropped(self, reason: str, amount: int = 1) -> None:
        """Count candidates that were dropped on purpose."""
        if amount:
            self.dropped[reason] += amount

    def measure(self, name: str, value: float) -> None:
        """Record a figure of the data for people."""
        if not math.isfinite(value):
            raise ValueError(f"'{name}' is {value}")
        self.measured[name] = float(value)

    def _model(self, need: str) -> Encoder | PairScorer:
        from synthbench.models.artifact import load

        use_threads(self.runtime)
        return load(model_folder(self.inputs[NEED + need]), self.runtime, self.progress)


def _sources(inputs: Mapping[str, Path]) -> dict[str, SyntheticDataset]:
    """Return the method's sources by role."""
    return {
        name.removeprefix(SOURCE): read_dataset(folder)
        for name, folder in inputs.items()
        if name.startswith(SOURCE)
    }


def _llm_is_gone(llm: ChatModel) -> str:
    return (
        f"the LLM '{llm.name}' at {llm.base_url} stopped responding. Its answers are cached; "
        "run the same command again to resume"
    )


def _report_requests(work: Workspace) -> None:
    if work.llm is not None:
        for entry in entries(work.llm.answers, work.llm.account.experiment, work.llm.account.stage):
            work.progress.say(str(entry))


def _bare_rows(work: Workspace) -> Iterator[dict[str, Any]]:
    """Yield the rows of bare records, in order."""
    with (work.folder / BARE_FILE).open(encoding="utf-8") as stream:
        yield from map(json.loads, stream)


def _summary(manifest: Manifest, failed: Counter[str], dropped: Mapping[str, int]) -> str:
    """Say what the data set holds, what failed and what was dropped."""
    failures = f"; failures: {failed.total():,}" if failed else ""
    if 0 < len(failed) <= _REASONS_SHOWN:
        failures += f" ({_counted(failed)})"
    lost = f"; dropped: {_counted(dropped)}" if dropped else ""
    return f"  {manifest.num_records:,} {manifest.kind} records{failures}{lost}"


def _counted(counts: Mapping[str, int]) -> str:
    return "; ".join(f"{count:,} × {reason}" for reason, count in Counter(counts).most_common())


def _in_order(journal: Journal) -> tuple["array[int]", Counter[str]]:
    """Return the byte offsets of the units in the journal, in the units' order, and all that they dropped.

    Keys order units of equal position, and are read for these alone: there may be a million others.
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
    """Return the kind and the columns with other values than the defaults, to keep the journal small."""
    defaults = {known.name: known.default for known in fields(record)}
    given = {name: value for name, value in record.values().items() if value != defaults[name]}
    return {"kind": record.kind.value, **given}


def _from_entry(row: Mapping[str, Any]) -> Record:
    values = dict(row)
    return from_row(RecordKind(values.pop("kind")), values)


def _reasons(failed: Counter[str], dropped: Counter[str]) -> str:
    counted: Iterator[str] = (f"{count} x {reason}" for reason, count in (failed + dropped).items())
    return ", ".join(counted) or "it yielded nothing"


SECONDS_TO_ANSWER = 5.0


def is_there(llm: ChatModel) -> bool:
    """Tell whether anything listens at the LLM's address; a local model has none, and is there."""
    if not llm.base_url:
        return True
    address = urlsplit(llm.base_url)
    port = address.port or (443 if address.scheme == "https" else 80)
    try:
        with socket.create_connection((address.hostname or "", port), SECONDS_TO_ANSWER):
            return True
    except OSError:
        return False
