"""A stage that needs much memory says so before it starts, and `plan` and a cluster count on it."""

from dataclasses import dataclass, field
from pathlib import Path

import pytest
from applying import Silent, Sources, step_of

from synthbench.base import processes
from synthbench.base.runtime import Runtime
from synthbench.data.dataset import SyntheticDataset
from synthbench.data.records import RecordKind, ScoredPair
from synthbench.engine.stage import Stage
from synthbench.engine.store import Store
from synthbench.engine.workspace import Workspace
from synthbench.estimates.facts import ArtifactFacts, StageFacts
from synthbench.estimates.needs import LIGHT_GB, needs_of
from synthbench.preparing import duplicates
from synthbench.stages import preparation
from synthbench.stages.preparation import Prepare

STEPS = ({"step": "length", "max_words": 9}, {"step": "drop-near-duplicates"})


@dataclass
class Said(Silent):
    """Progress that remembers lines."""

    lines: list[str] = field(default_factory=list)

    def say(self, message: str) -> None:
        self.lines.append(message)


@pytest.mark.parametrize(("bytes_each", "is_said"), [(1e9, True), (1e3, False)])
def test_a_stage_reports_its_memory_before_it_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bytes_each: float, is_said: bool
) -> None:
    monkeypatch.setattr(duplicates.DropNearDuplicates, "memory", lambda _, number: number * bytes_each)
    monkeypatch.setattr(preparation, "free_memory", lambda: 5_000_000_000)
    said = Said()
    monkeypatch.setattr(preparation._Preparation, "apply", lambda *_: pytest.fail(str(said.lines)))
    for folder in ("source", "target"):
        (tmp_path / folder).mkdir()
    pairs = [ScoredPair(sentence1=f"a {number}", sentence2="b", score=0.5) for number in range(3)]
    SyntheticDataset.create(RecordKind.SCORED_PAIR, pairs).write(tmp_path / "source")
    context = Sources({}, Workspace(tmp_path / "work", Runtime(device="cpu"), said))
    with pytest.raises(pytest.fail.Exception):
        preparation.apply_steps(tmp_path / "source", map(step_of, STEPS), context, tmp_path / "target")
    assert said.lines == ["  needs about 3.0 GB of memory; 5.0 GB are free"] * is_said


@pytest.mark.parametrize(("number", "memory_gb"), [(None, LIGHT_GB), (1_000_000, LIGHT_GB + 1.1)])
def test_a_plan_includes_the_memory_of_steps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int | None, memory_gb: float
) -> None:
    data = Stage(Prepare(()), label="data")
    monkeypatch.setattr(StageFacts, "facts", lambda *_: ArtifactFacts(number, RecordKind.SCORED_PAIR))
    stage = Stage(Prepare(tuple(map(step_of, STEPS))), {"data": data})
    need = needs_of(stage, 0, known=StageFacts(Store(tmp_path)), runtime=Runtime(device="cpu"))
    assert need.memory_gb == pytest.approx(memory_gb)


def test_free_memory_respects_a_containers_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "MOST_MEMORY", tmp_path / "max")
    monkeypatch.setattr(processes, "MEMORY_IN_USE", tmp_path / "current")
    anywhere = processes.free_memory()
    assert anywhere > 0
    (tmp_path / "current").write_text("900\n")
    for most, left in (("1000\n", 100), ("800\n", 0)):
        (tmp_path / "max").write_text(most)
        assert processes.free_memory() == left
    (tmp_path / "max").write_text("max\n")
    assert processes.free_memory() > 1000
