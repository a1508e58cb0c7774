"""Plug-ins that need no torch and note each piece of work, and the experiment files that use them."""

import json
import os
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
import psutil
from pydantic import BaseModel, ConfigDict, Field

from synthbench.api import (
    ChatAmount,
    ChatRequest,
    Encoder,
    Evaluation,
    Evaluator,
    Failure,
    GenerationContext,
    Method,
    ModelKind,
    Need,
    PairScorer,
    Record,
    RecordKind,
    Runtime,
    ScoredPair,
    SyntheticDataset,
    TrainedModel,
    Trainer,
    TrainingContext,
    TrainingSummary,
    Unit,
    UserError,
)
from synthbench.models import artifact
from synthbench.plugins import loading as plugin_loading

if TYPE_CHECKING:
    import pytest  # each worker process imports this module, and would import pytest

WORK_LOG = "SYNTHBENCH_TEST_WORK_LOG"
KILL_AFTER_UNITS = "SYNTHBENCH_TEST_KILL_AFTER_UNITS"
KILL_LLM_AT_UNIT = "SYNTHBENCH_TEST_KILL_LLM_AT_UNIT"


def note_work(line: str) -> None:
    """Append a line to the file named by the environment variable, if set; all processes share it."""
    file = os.environ.get(WORK_LOG)
    if file:
        with open(file, "a", encoding="utf-8") as stream:  # noqa: PTH123
            stream.write(line + "\n")


def llm_servers() -> list[psutil.Process]:
    """Return the LLM servers that this process has started, or the one that it works for.

    That is its parent, or the parent of the one that it is a copy of.
    """
    own = psutil.Process()
    families = (process.children() for process in (own, *own.parents()[:2]))
    return [
        child
        for family in families
        for child in family
        if "synthbench.worlds.sandbox.llm.process" in _command(child)
    ]


def _command(process: psutil.Process) -> list[str]:
    """Return a process's command line; [] if it ends meanwhile."""
    try:
        return process.cmdline()
    except (psutil.NoSuchProcess, psutil.ZombieProcess):
        return []


def kill_llm() -> None:
    """Kill the servers, and wait until they stop listening; their parent notices their end."""
    for server in llm_servers():
        server.kill()
        while server.is_running() and (server.status() != psutil.STATUS_ZOMBIE or _has_threads(server.pid)):
            time.sleep(0.01)


def _has_threads(pid: int) -> bool:
    """Tell whether threads of a killed process are still to end: until then its parent sees it running."""
    try:
        return len(list(Path(f"/proc/{pid}/task").iterdir())) > 1
    except OSError:
        return False


def work_done(file: Path) -> list[str]:
    """Return the lines noted."""
    return file.read_text(encoding="utf-8").splitlines() if file.exists() else []


class Base(BaseModel):
    """A trainer's nested section."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    model: str
    num_layers: int | None = None


class FakeMethod(Method):
    """Yields pairs in units, last unit first, or as bare records."""

    version = 1
    record_kind = RecordKind.SCORED_PAIR
    source_roles: ClassVar[Mapping[str, RecordKind]] = {"gold": RecordKind.SCORED_PAIR}
    optional_source_roles: ClassVar[Mapping[str, RecordKind]] = {"dev": RecordKind.SCORED_PAIR}

    size: int = Field(4, ge=0)
    score: float = Field(0.5, ge=0.0, le=1.0)
    output: Literal["units", "bare", "failures", "same key", "half character", "numpy"] = "units"
    labeller: Base | None = None
    position: Literal["own", "same"] = "own"
    shares: Literal["no", "yes", "all that it has", "and measures"] = "no"
    seed: int = 0

    def can_be_sharded(self) -> bool:
        return self.shares != "no"

    def needs(self) -> Mapping[str, Need]:
        if self.labeller is None:
            return {}
        config = {"base": self.labeller.model_dump(exclude_none=True)}
        return {"labeller": TrainedModel("fake", config, ("gold",), 0, "fake", "dev")}

    def generate(
        self, sources: Mapping[str, SyntheticDataset], context: GenerationContext
    ) -> Iterator[Record | Unit]:
        context.count_dropped("too short", 2)
        num_done = 0
        for index in reversed(range(self.size)):
            key = "same" if self.output == "same key" else f"unit {index}"
            if key in context.finished_units or not (context.is_mine(index) or self.shares[:3] == "all"):
                continue
            note_work(f"generate {key}")
            if self.output == "bare":
                yield self._pair(index)
                continue
            yield Unit(key, index if self.position == "own" else 0, tuple(self._records(index)))
            num_done += 1
            if num_done == int(os.environ.get(KILL_AFTER_UNITS, "-1")):
                os.kill(os.getpid(), 9)
        if self.shares == "and measures":
            context.measure("units", num_done + len(context.finished_units))

    def _records(self, index: int) -> Iterator[Record]:
        if self.output == "failures" or index % 3 == 2:
            yield Failure(reason="refused", raw_text=f"answer {index}")
        if self.output != "failures":
            yield self._pair(index)

    def _pair(self, index: int) -> ScoredPair:
        score: Any = np.float32(self.score) if self.output == "numpy" else self.score
        second = "half \ud800" if self.output == "half character" else f"second {index}"
        return ScoredPair(sentence1=f"first {index}", sentence2=second, score=score)


class FakeLLMMethod(Method):
    """Pairs each gold sentence with an LLM's answer; may kill the LLM before one of them."""

    version = 1
    record_kind = RecordKind.SCORED_PAIR
    source_roles: ClassVar[Mapping[str, RecordKind]] = {"gold": RecordKind.SCORED_PAIR}
    uses_llm = True

    prompt: str = "Paraphrase: "

    def generate(
        self, sources: Mapping[str, SyntheticDataset], context: GenerationContext
    ) -> Iterator[Record | Unit]:
        for index, text in enumerate(sources["gold"].column("sentence1")):
            if f"unit {index}" in context.finished_units:
                continue
            if str(index) == os.environ.get(KILL_LLM_AT_UNIT):
                kill_llm()
            (answer,) = context.llm.ask([self.prompt + text])
            assert answer is not None
            note_work(f"asked {text}")
            yield Unit(f"unit {index}", index, (ScoredPair(sentence1=text, sentence2=answer, score=1.0),))


class FakeChatMethod(FakeLLMMethod):
    """Writes as FakeLLMMethod, but through the context's client; processes may share the requests."""

    is_shardable = True

    def asks(self, num_records: Mapping[str, int]) -> ChatAmount | None:
        number = num_records.get("gold")
        return ChatAmount(number, 100_000 * number, 50_000 * number) if number is not None else None

    def generate(
        self, sources: Mapping[str, SyntheticDataset], context: GenerationContext
    ) -> Iterator[Record | Unit]:
        texts = sources["gold"].column("sentence1")
        requests = (
            ChatRequest(str(index), ({"role": "user", "content": self.prompt + text},), {"max_tokens": 40})
            for index, text in enumerate(texts)
            if context.is_mine(index) and str(index) not in context.finished_units
        )
        for answer in context.llm.answers(requests):
            index = int(answer.request.key)
            note_work(f"asked {texts[index]}")
            record: Record = Failure(reason=answer.failure)
            if answer.text is not None:
                record = ScoredPair(sentence1=texts[index], sentence2=answer.text, score=1.0)
            yield Unit(answer.request.key, index, (record,))


class FakeTrainer(Trainer):
    """Makes a pair scorer that gives every pair the same score."""

    version = 1
    model_kind = ModelKind.ENCODER

    base: Base
    strength: float = Field(0.5, ge=0.0, le=1.0)
    fails: Literal["no", "user", "bug"] = "no"

    def revisions(self) -> Mapping[str, str]:
        return {self.base.model: "0" * 8}

    def train(self, data: Sequence[SyntheticDataset], context: TrainingContext) -> TrainingSummary:
        note_work(f"train {self.base.model} {self.strength} seed {context.seed}")
        if self.fails == "user":
            raise UserError("this training never works")
        if self.fails == "bug":
            raise ZeroDivisionError("this trainer is wrong")
        (context.output / "model.json").write_text(json.dumps({"strength": self.strength}))
        num_records = sum(len(part) for part in data)
        dev_score = context.select(FakeScorer(self.strength)) if context.select else None
        return TrainingSummary(
            num_steps=7, num_records=num_records, dev_score=dev_score, history=((7, "loss", 0.25),)
        )


class FakeUntrained(FakeTrainer):
    """Takes no data and no seed."""

    is_seeded: ClassVar[bool] = False
    takes_data: ClassVar[bool] = False


class FakePausingTrainer(FakeTrainer):
    """A trainer whose score depends on its seed, and which can pause."""

    can_pause: ClassVar[bool] = True

    def train(self, data: Sequence[SyntheticDataset], context: TrainingContext) -> TrainingSummary:
        begun = 0.0 if context.resume is None else float((context.resume / "until").read_text())
        note_work(f"train seed {context.seed} from {begun} to {context.until}")
        strength = (context.seed * 3 % 5) / 10
        (context.output / "model.json").write_text(json.dumps({"strength": strength}))
        (context.output / "until").write_text(str(context.until))
        return TrainingSummary(dev_score=context.select(FakeScorer(strength)) if context.select else None)


class FakePairScorerTrainer(FakeTrainer):
    """A trainer that claims to make a pair scorer."""

    model_kind = ModelKind.PAIR_SCORER


class FakeScorer:
    """Gives every pair the same score."""

    def __init__(self, strength: float) -> None:
        self.strength = strength

    def score(self, pairs: Sequence[tuple[str, str]]) -> "np.ndarray[Any, np.dtype[np.float64]]":
        return np.full(len(pairs), self.strength)


class FakeEvaluator(Evaluator):
    """The mean score of the model, times a factor."""

    version = 1
    record_kind: ClassVar[RecordKind] = RecordKind.SCORED_PAIR
    factor: float = 1.0

    @property
    def main_score(self) -> str:
        return "value"

    def evaluate(self, model: PairScorer | Encoder, task: SyntheticDataset) -> Evaluation:
        assert isinstance(model, PairScorer)
        pairs = list(zip(task.column("sentence1"), task.column("sentence2"), strict=True))
        scores = model.score(pairs)
        note_work(f"evaluate {len(pairs)} pairs")
        items = {"id": task.column("id"), "predicted": scores.tolist()}
        return Evaluation({"value": float(scores.mean()) * self.factor}, "value", len(pairs), items)


class FakeEncoderEvaluator(FakeEvaluator):
    """Wants vectors."""

    needs_encoder: ClassVar[bool] = True


class FakeSentenceEvaluator(FakeEvaluator):
    """Is for sentences."""

    record_kind: ClassVar[RecordKind] = RecordKind.SENTENCE


class FakeLearningEvaluator(FakeEvaluator):
    """Tells how many records it has of each split; needs dev."""

    learns_from: ClassVar[Collection[str]] = ("train", "dev")

    def check_learning(self, given: Collection[str]) -> None:
        if "dev" not in given:
            raise UserError("give `dev`")

    def evaluate(self, model: PairScorer | Encoder, task: SyntheticDataset) -> Evaluation:
        splits = task.column("split")
        scores = {name: float(splits.count(name)) for name in ("train", "dev")}
        num_items = splits.count("test")
        return Evaluation({"value": 0.5, **scores}, "value", num_items)


PLUGINS: Mapping[str, Mapping[str, str]] = {
    "methods": {"fake": "FakeMethod", "fake-llm": "FakeLLMMethod", "fake-chat": "FakeChatMethod"},
    "trainers": {
        "fake": "FakeTrainer",
        "none": "FakeUntrained",
        "fake-scorer": "FakePairScorerTrainer",
        "pausing": "FakePausingTrainer",
    },
    "evaluators": {
        "fake": "FakeEvaluator",
        "vectors": "FakeEncoderEvaluator",
        "sentences": "FakeSentenceEvaluator",
        "learner": "FakeLearningEvaluator",
    },
}


def load_fake(folder: Path, runtime: Runtime, progress: object = None, trusted: object = ()) -> FakeScorer:
    """Load what FakeTrainer saved."""
    strength = json.loads((folder / "model.json").read_text())["strength"]
    note_work(f"load {strength}")
    return FakeScorer(strength)


def install(monkeypatch: "pytest.MonkeyPatch") -> None:
    """Make these the only plug-ins, beside the steps, for the length of a test."""
    points: dict[str, Mapping[str, EntryPoint]] = {
        group: {
            name: EntryPoint(name, f"{__name__}:{cls}", f"synthbench.{group}") for name, cls in known.items()
        }
        for group, known in PLUGINS.items()
    }
    points["steps"] = plugin_loading.installed("steps")
    monkeypatch.setattr(plugin_loading, "installed", points.__getitem__)
    monkeypatch.setattr(artifact, "load", load_fake)
    plugin_loading.installed_component.cache_clear()


class Count:
    """A progress task that remembers how far it is."""

    def __init__(self, total: int) -> None:
        self.total = total
        self.done = 0

    def advance(self, amount: int = 1) -> None:
        self.done += amount


class Lines:
    """Progress that records its messages."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.counts: dict[str, Count] = {}

    @contextmanager
    def task(self, description: str, total: int) -> Iterator["Count"]:
        count = self.counts[description] = Count(total)
        yield count

    def say(self, message: str) -> None:
        self.said.append(message)


def write_data(folder: Path, **sizes: int) -> None:
    """Write NAME.tsv with that many pairs for each NAME=SIZE, and a text file of sentences."""
    for name, size in sizes.items():
        rows = "".join(f"{name} a{row}\t{name} b{row}\t{row / max(1, size - 1):.3f}\n" for row in range(size))
        (folder / f"{name}.tsv").write_text("sentence1\tsentence2\tscore\n" + rows)
    (folder / "lines.txt").write_text("one sentence\nanother sentence\n")
