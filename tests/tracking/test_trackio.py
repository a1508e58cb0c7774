"""Results go to Trackio beside MLflow if the user says so: once, without secrets of the machine."""

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from wording import refused

from synthbench.reporting.results import ExperimentResult, RunResult, TaskScores
from synthbench.tracking import trackio_copy
from synthbench.tracking.trackio_copy import SETTING, copy_to_trackio, is_wanted

SCORES = TaskScores(
    task="test", evaluator="sts", main_score="s", scores={"s": 0.5}, num_items=4, split="test", stage="0" * 64
)


def result(*seeds: int) -> ExperimentResult:
    runs = (
        RunResult(
            variant="row", seed=seed, identity=str(seed), scores=(SCORES,), parameters={"train.epochs": 2}
        )
        for seed in seeds
    )
    return ExperimentResult(experiment="study", identity="one", runs=tuple(runs))


class StandIn(ModuleType):
    """Trackio's three functions, which note what they were called with."""

    def __init__(self, refusal: Exception | None = None) -> None:
        super().__init__("trackio")
        self.refusal = refusal
        self.opened: list[dict[str, Any]] = []
        self.logged: list[tuple[dict[str, float], int]] = []
        self.ended = 0

    def init(self, **given: Any) -> None:
        if self.refusal is not None:
            raise self.refusal
        self.opened.append(given)

    def log(self, metrics: dict[str, float], step: int) -> None:
        self.logged.append((metrics, step))

    def finish(self) -> None:
        self.ended += 1


def test_each_run_is_copied_once_with_settings_and_scores(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in = StandIn()
    monkeypatch.setitem(sys.modules, "trackio", stand_in)
    copy_to_trackio(result(0), tmp_path)
    copy_to_trackio(result(0, 1), tmp_path)
    assert [each["name"] for each in stand_in.opened] == ["row · seed 0", "row · seed 1"]
    (first, _) = stand_in.opened
    assert (first["project"], first["group"], first["private"]) == ("study", "row", True)
    assert first["config"] == {"variant": "row", "seed": "0", "train.epochs": "2"}
    assert (first["auto_log_cpu"], first["auto_log_gpu"]) == (False, False)
    metrics, step = stand_in.logged[0]
    assert (metrics["test/s"], step, stand_in.ended) == (0.5, 0, 2)


def test_a_refusal_is_one_line_and_the_run_is_copied_the_next_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "trackio", StandIn(ValueError("no such\nproject")))
    with refused(SETTING, "no such"):
        copy_to_trackio(result(0), tmp_path)
    monkeypatch.setitem(sys.modules, "trackio", stand_in := StandIn())
    copy_to_trackio(result(0), tmp_path)
    assert len(stand_in.opened) == 1


def test_mlflow_alone_is_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(SETTING, raising=False)
    assert not is_wanted()


def test_without_trackio_the_setting_is_refused_with_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SETTING, "1")
    monkeypatch.setattr(trackio_copy, "find_spec", lambda name: None)
    with refused(SETTING, "synthbench[trackio]"):
        is_wanted()
