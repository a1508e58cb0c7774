"""Stages whose plug-in may ask an LLM and use models that were trained for it, and what they hand to it."""

import math
import socket
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

from synthbench.base.errors import PendingError, UserError
from synthbench.base.runtime import Progress, Runtime, use_threads
from synthbench.config.llm import NamedLLM
from synthbench.config.served_llm import ServedLLM
from synthbench.data.dataset import StoredRecords, SyntheticDataset
from synthbench.data.records import Record, RecordKind, from_row
from synthbench.engine.artifacts import DATASET_FOLDER, model_folder, read_dataset
from synthbench.engine.workspace import Workspace
from synthbench.llm.client import ChatClient
from synthbench.llm.endpoint import ChatModel, Endpoint
from synthbench.llm.ledger import entries, models_that_answered
from synthbench.models.interfaces import Encoder, PairScorer
from synthbench.plugins.contracts import Component
from synthbench.stages.plugin_calls import PluginOperation

P = TypeVar("P", bound=Component)
NEED = "need:"
AGAINST = "against:"
LLM_KEY = "experiment.llm"
"""Where a configuration holds the LLM; no plug-in has a setting of this name."""
SHARED = "shared"
"""The input of a shard that holds what all shards need alike."""
SHARD_KEY = "experiment.shard"
"""Where a configuration says which shard of a stage it is; no plug-in has a setting of this name."""
SECONDS_TO_ANSWER = 5.0


@dataclass(frozen=True)
class Shard:
    """Every `of`-th piece of a stage's work, from piece `number` on."""

    number: int
    of: int


@dataclass(frozen=True)
class AskingOperation(PluginOperation[P]):
    """A stage whose plug-in gets a context: an LLM to ask, and its dependencies ("need:..." inputs)."""

    llm: NamedLLM | None = None

    def config(self) -> Mapping[str, Any]:
        """Return the plug-in's configuration, and of the LLM what its answers depend on."""
        llm = {} if self.llm is None else {LLM_KEY: dict(self.llm.settings.identity())}
        return {**super().config(), **llm}

    @property
    def asked_llm(self) -> NamedLLM | None:
        """The LLM that the plug-in asks."""
        return self.llm

    @property
    def _served(self) -> ServedLLM | None:
        """The LLM whose weights are read on this machine."""
        settings = None if self.llm is None else self.llm.settings
        return settings if isinstance(settings, ServedLLM) else None

    def table_notes(self) -> tuple[str, ...]:
        """Return the notes that every table of such data needs."""
        return tuple(self.plugin.table_notes())

    @cached_property
    def outside(self) -> Mapping[str, str]:
        """The revisions of what the plug-in and a model on this machine read from outside."""
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
        """Yield what the plug-in may use; then report what it asked.

        Raises UserError where an unexpected error came from an LLM that has stopped responding.
        """
        endpoint = (
            self.llm.endpoint(work.llm.model) if self.llm is not None and work.llm is not None else None
        )
        try:
            yield Context(inputs, work, finished, endpoint, shard)
        except (UserError, PendingError):
            raise
        except Exception as error:
            if work.llm is None or is_there(work.llm.model):
                raise
            raise UserError(_llm_is_gone(work.llm.model)) from error
        finally:
            _report_requests(work)


@dataclass(frozen=True)
class Context:
    """What a method or a step may use (see plugins.GenerationContext and plugins.StepContext)."""

    inputs: Mapping[str, Path]
    work: Workspace
    finished_units: Collection[str] = ()
    endpoint: Endpoint | None = None
    shard: Shard | None = None
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

    def is_mine(self, piece: int) -> bool:
        """Tell whether a piece of work is this shard's; all are without shards."""
        return self.shard is None or piece % self.shard.of == self.shard.number

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
        return ChatClient(self.endpoint, chat.answers, chat.account, self.progress.say)

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

    def finished_records(self) -> Iterator[tuple[str, Sequence[Record]]]:
        """Yield the keys and records of the units that an earlier, killed run has journalled."""
        for entry in self.work.journal.read():
            yield entry["key"], [from_entry(row) for row in entry["records"]]

    def dataset(self, need: str) -> SyntheticDataset:
        """Read the data set generated for the method."""
        return read_dataset(self.inputs[NEED + need])

    def records(self, need: str) -> StoredRecords:
        """Open the data set generated for the method."""
        return StoredRecords(self.inputs[NEED + need] / DATASET_FOLDER)

    def shared(self) -> SyntheticDataset | None:
        """Read what was made once for all shards, if there is something."""
        return read_dataset(self.inputs[SHARED]) if SHARED in self.inputs else None

    def source(self, name: str) -> SyntheticDataset | None:
        """Read a further source of a step; None if its data are missing."""
        folder = self.inputs.get(AGAINST + name)
        return None if folder is None else read_dataset(folder)

    def scratch(self) -> Path:
        """Make a folder for a step's large arrays."""
        self.work.scratch.mkdir(parents=True, exist_ok=True)
        return self.work.scratch

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
        folder = model_folder(self.inputs[NEED + need])
        return load(folder, self.runtime, self.progress, trusted=self.work.trusted)


def from_entry(row: Mapping[str, Any]) -> Record:
    """Return the record of a row in the journal."""
    values = dict(row)
    return from_row(RecordKind(values.pop("kind")), values)


def _llm_is_gone(llm: ChatModel) -> str:
    return (
        f"the LLM '{llm.name}' at {llm.base_url} stopped responding. Its answers are cached; "
        "run the same command again to resume"
    )


def other_models(work: Workspace) -> dict[str, list[str]]:
    """Return what answered the stage under another name than that of the model that was asked."""
    if work.llm is None:
        return {}
    models = models_that_answered(work.llm.answers, work.llm.account.stage)
    return {work.llm.model.model: models} if models else {}


def _report_requests(work: Workspace) -> None:
    if work.llm is not None:
        for entry in entries(work.llm.answers, work.llm.account.experiment, work.llm.account.stage):
            work.progress.say(str(entry))


def is_there(llm: ChatModel) -> bool:
    """Tell whether anything listens at the LLM's address; one that the run serves has none, and is there."""
    if not llm.base_url:
        return True
    address = urlsplit(llm.base_url)
    port = address.port or (443 if address.scheme == "https" else 80)
    try:
        with socket.create_connection((address.hostname or "", port), SECONDS_TO_ANSWER):
            return True
    except OSError:
        return False
