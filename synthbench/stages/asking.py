"""Stages whose plug-in may ask an LLM and use models trained for the plug-in, and the plug-in's context."""

import math
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from synthbench.base.runtime import Progress, Runtime, use_threads
from synthbench.config.llm import NamedLLM
from synthbench.config.served_llm import ServedLLM
from synthbench.data.dataset import StoredRecords, SyntheticDataset
from synthbench.data.records import Record, RecordKind, from_row
from synthbench.engine.artifacts import DATASET_FOLDER, model_folder, read_dataset
from synthbench.engine.workspace import Workspace
from synthbench.llm.client import LLM, ChatClient
from synthbench.llm.endpoint import Endpoint
from synthbench.llm.ledger import entries, models_that_answered
from synthbench.models.interfaces import Encoder, PairScorer
from synthbench.plugins.contracts import Component
from synthbench.stages.plugin_calls import PluginOperation

P = TypeVar("P", bound=Component)
NEED = "need:"
AGAINST = "against:"
LLM_KEY = "experiment.llm"
"""The configuration key of the LLM; no plug-in has a setting of this name."""
SHARED = "shared"
"""The input of a shard that holds the data made once for all shards."""
SHARD_KEY = "experiment.shard"
"""The configuration key of a shard's number and count; no plug-in has a setting of this name."""


@dataclass(frozen=True)
class Shard:
    """A shard of a stage's work: the work items `number`, `number + of`, `number + 2 * of`, ..."""

    number: int
    of: int


@dataclass(frozen=True)
class AskingOperation(PluginOperation[P]):
    """A stage whose plug-in gets a context: an LLM to ask, and its dependencies ("need:..." inputs)."""

    llm: NamedLLM | None = None

    def config(self) -> Mapping[str, Any]:
        """Return the plug-in's configuration, and the LLM's settings that its answers depend on."""
        llm = {} if self.llm is None else {LLM_KEY: dict(self.llm.settings.identity())}
        return {**super().config(), **llm}

    @property
    def asked_llm(self) -> NamedLLM | None:
        """The LLM that the plug-in asks; None if it asks none."""
        return self.llm

    @property
    def _served(self) -> ServedLLM | None:
        """The LLM, if the run itself serves it on this machine; else None."""
        settings = None if self.llm is None else self.llm.settings
        return settings if isinstance(settings, ServedLLM) else None

    def table_notes(self) -> tuple[str, ...]:
        """Return the notes that a table needs if the table shows results from this stage's data."""
        return tuple(self.plugin.table_notes())

    @cached_property
    def outside(self) -> Mapping[str, str]:
        """Name -> revision of the models and files that the plug-in and a served LLM read from outside."""
        of_llm = {} if self._served is None else self._served.revisions()
        return {**self.plugin.revisions(), **of_llm}

    @contextmanager
    def context(
        self,
        inputs: Mapping[str, Path],
        work: Workspace,
        finished: Collection[str] = (),
        shard: Shard | None = None,
    ) -> Iterator["Context"]:
        """Yield the plug-in's context; then print the sums of the stage's LLM requests."""
        endpoint = (
            self.llm.endpoint(work.llm.model) if self.llm is not None and work.llm is not None else None
        )
        try:
            yield Context(inputs, work, finished, endpoint, shard)
        finally:
            _report_requests(work)


@dataclass(frozen=True)
class Context:
    """Services for a method or a step, such as its LLM (see GenerationContext, StepContext in plugins)."""

    inputs: Mapping[str, Path]
    work: Workspace
    finished_units: Collection[str] = ()
    endpoint: Endpoint | None = None
    shard: Shard | None = None
    dropped: Counter[str] = field(default_factory=Counter)
    measured: dict[str, float] = field(default_factory=dict)

    @property
    def runtime(self) -> Runtime:
        """The runtime settings: device, threads, batch size and the like."""
        return self.work.runtime

    @property
    def progress(self) -> Progress:
        """The progress display."""
        return self.work.progress

    def is_mine(self, piece: int) -> bool:
        """Return whether this shard owns work item `piece`; without shards, always True."""
        return self.shard is None or piece % self.shard.of == self.shard.number

    @cached_property
    def llm(self) -> LLM:
        """The experiment's LLM; raises RuntimeError if the plug-in does not declare that it asks one."""
        if self.work.llm is None or self.endpoint is None:
            raise RuntimeError("only a method that says `uses_llm = True` has an LLM")
        chat = self.work.llm
        client = ChatClient(self.endpoint, chat.answers, chat.account, self.progress.say, chat.share)
        return LLM(chat.model.name, chat.model.model, client, self.progress)

    def pair_scorer(self, need: str) -> PairScorer:
        """Load the dependency `need`, a trained pair scorer; raises TypeError if it is an encoder."""
        model = self._model(need)
        if not isinstance(model, PairScorer):
            raise TypeError(f"the need '{need}' is an encoder, not a pair scorer")
        return model

    def encoder(self, need: str) -> Encoder:
        """Load the dependency `need`, a trained encoder; raises TypeError if it is a pair scorer."""
        model = self._model(need)
        if not isinstance(model, Encoder):
            raise TypeError(f"the need '{need}' is a pair scorer, not an encoder")
        return model

    def finished_records(self) -> Iterator[tuple[str, Sequence[Record]]]:
        """Yield key and records of each finished unit in the journal of an earlier, killed run."""
        for entry in self.work.journal.read():
            yield entry["key"], [record_from_entry(row) for row in entry["records"]]

    def dataset(self, need: str) -> SyntheticDataset:
        """Read the dependency `need`, a data set that was generated for the method."""
        return read_dataset(self.inputs[NEED + need])

    def records(self, need: str) -> StoredRecords:
        """Open the dependency `need` without reading its records into memory."""
        return StoredRecords(self.inputs[NEED + need] / DATASET_FOLDER)

    def shared(self) -> SyntheticDataset | None:
        """Read the data made once for all shards; None without shards, or if the method makes none."""
        return read_dataset(self.inputs[SHARED]) if SHARED in self.inputs else None

    def source(self, name: str) -> SyntheticDataset | None:
        """Read an additional source of a step; None if its data are missing."""
        folder = self.inputs.get(AGAINST + name)
        return None if folder is None else read_dataset(folder)

    def scratch(self) -> Path:
        """Create and return a folder for a step's large temporary arrays; it is deleted after the step."""
        self.work.scratch.mkdir(parents=True, exist_ok=True)
        return self.work.scratch

    def count_dropped(self, reason: str, amount: int = 1) -> None:
        """Count candidates that were dropped on purpose, under a reason."""
        if amount:
            self.dropped[reason] += amount

    def measure(self, name: str, value: float) -> None:
        """Record a named figure of the data for reports; raises ValueError if the value is not finite."""
        if not math.isfinite(value):
            raise ValueError(f"'{name}' is {value}")
        self.measured[name] = float(value)

    def _model(self, need: str) -> Encoder | PairScorer:
        from synthbench.models.artifact import load

        use_threads(self.runtime)
        folder = model_folder(self.inputs[NEED + need])
        return load(folder, self.runtime, self.progress, trusted=self.work.trusted)


def record_from_entry(row: Mapping[str, Any]) -> Record:
    """Return the record in a row of the journal."""
    values = dict(row)
    return from_row(RecordKind(values.pop("kind")), values)


def other_models(work: Workspace) -> dict[str, list[str]]:
    """Return the models that answered instead of the requested one: {requested: [answered]}, or {}."""
    if work.llm is None:
        return {}
    models = models_that_answered(work.llm.answers, work.llm.account.stage)
    return {work.llm.model.model: models} if models else {}


def _report_requests(work: Workspace) -> None:
    if work.llm is not None:
        for entry in entries(work.llm.answers, work.llm.account.experiment, work.llm.account.stage):
            work.progress.say(str(entry))
