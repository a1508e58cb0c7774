"""Data checks before training."""

from pathlib import Path
from typing import Any

import fakes
import numpy as np
import pytest
from fake_stages import Data, run_job
from fakes import Base, FakeEvaluator, FakeTrainer, work_done
from wording import refused, worded

from synthbench.config.experiment import PrepareStep
from synthbench.engine.artifacts import read_json
from synthbench.engine.stage import Stage
from synthbench.engine.store import Store
from synthbench.plugins.model_contracts import Evaluation
from synthbench.preparing.drops import Length
from synthbench.stages.evaluation import SCORES_FILE, Evaluate, Scores
from synthbench.stages.preparation import Prepare
from synthbench.stages.training import Train
from synthbench_pairs import Pairs
from synthbench_sts import STS

ONE_CLASS = Stage(Data())
TRAINER = FakeTrainer(base=Base(model="org/small"))
AREA = Pairs(measure="auc_0.05")


@pytest.fixture
def folder(store: Store) -> Path:
    run_job(store, ONE_CLASS)
    return store.folder(ONE_CLASS.identity)


def test_a_test_set_without_measurable_scores_is_found_before_training(folder: Path) -> None:
    with refused("3", "test", "pairs"):
        Evaluate("pairs", AREA).check({"task": folder})
    with refused("pairs", "gold"):
        Evaluate("sts", STS()).check({"task": folder})


def test_a_dev_set_without_measurable_scores_is_found_before_training(folder: Path) -> None:
    training = Train("fake", TRAINER, 0, "pairs", AREA)
    with refused("3", "test", "pairs"):
        training.check({"data:gold": folder, "dev:dev": folder})
    training.check({"data:gold": folder})


def test_data_of_an_evaluator_without_a_check_are_not_read_early(tmp_path: Path) -> None:
    Evaluate("fake", FakeEvaluator()).check({"task": tmp_path / "missing"})


def test_an_empty_part_is_refused(store: Store, work_log: Path) -> None:
    prepared = Stage(Prepare((PrepareStep("length", Length(min_words=2)),)), {"data": ONE_CLASS})
    training = Stage(
        Train("fake", TRAINER, 0, parts=("gold", "silver")), {"data:0": ONE_CLASS, "data:1": prepared}
    )
    for stage in (ONE_CLASS, prepared):
        run_job(store, stage)

    outcome = run_job(store, training)

    assert outcome.is_user_error
    worded(outcome.error, "data.silver", "3")
    assert work_done(work_log) == []


def test_a_trainer_or_evaluator_that_returns_none_is_reported_in_one_line(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    training = Stage(Train("fake", TRAINER, 0), {"data:gold": ONE_CLASS})
    run_job(store, ONE_CLASS)
    fakes.install(monkeypatch)
    evaluating = Stage(Evaluate("mine", FakeEvaluator()), {"model": training, "task": ONE_CLASS})
    assert run_job(store, training).executed
    monkeypatch.setattr(FakeEvaluator, "evaluate", lambda *_: None)
    monkeypatch.setattr(FakeTrainer, "train", lambda *_: 0.5)
    (told,) = run_job(store, evaluating).error
    assert told == "mine: `evaluate` must return Evaluation; it returned None"
    (told,) = run_job(store, Stage(Train("fake", TRAINER, 1), {"data:gold": ONE_CLASS})).error
    assert told == "fake: `train` must return TrainingSummary; it returned 0.5"


@pytest.mark.parametrize(
    ("scores", "main_score", "fault"),
    [
        ({"value": 0.5}, "mean", "`main_score` must be the name of a score: value; it is 'mean'"),
        ({"value": "high"}, "value", "the score 'value' must be a number; it is 'high'"),
        ({"value": np.float32(0.5)}, "value", None),
    ],
)
def test_an_evaluators_scores_are_numbers_and_the_main_score_is_one_of_them(
    store: Store,
    monkeypatch: pytest.MonkeyPatch,
    scores: dict[str, Any],
    main_score: str,
    fault: str | None,
) -> None:
    training = Stage(Train("fake", TRAINER, 0), {"data:gold": ONE_CLASS})
    evaluating = Stage(Evaluate("mine", FakeEvaluator()), {"model": training, "task": ONE_CLASS})
    fakes.install(monkeypatch)
    for stage in (ONE_CLASS, training):
        run_job(store, stage)
    number: Any = np.int64(3)
    result = Evaluation(scores, main_score, number)
    monkeypatch.setattr(FakeEvaluator, "evaluate", lambda *_: result)
    outcome = run_job(store, evaluating)
    assert outcome.error == (() if fault is None else (f"mine: {fault}",))
    if fault is None:
        found = read_json(store.folder(evaluating.identity) / SCORES_FILE, Scores)
        assert (found["scores"], found["num_items"]) == ({"value": 0.5}, 3)
