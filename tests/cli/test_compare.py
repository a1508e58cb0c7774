"""`synthbench compare`: two tracked results."""

import shutil
from pathlib import Path

import pytest
from small_experiment import Project

from synthbench.reporting.results import ExperimentResult, RunResult, TaskScores
from synthbench.tracking.mlflow_tracker import MlflowTracker


def result(experiment: str, identity: str, gain: float, rate: float) -> ExperimentResult:
    runs = tuple(
        RunResult(
            variant="gold",
            seed=seed,
            identity=f"{identity}-{seed}",
            parameters={"train.learning_rate": rate},
            scores=(
                TaskScores(
                    task="STSb",
                    evaluator="sts",
                    main_score="s",
                    scores={"s": score + gain},
                    num_items=100,
                    stage="s",
                ),
            ),
        )
        for seed, score in enumerate((0.5, 0.53, 0.54))
    )
    return ExperimentResult(
        experiment=experiment, identity=identity, request=identity, tasks=("STSb",), runs=runs
    )


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with two results of the experiment `small`, and one of `other`."""
    tracker, report = MlflowTracker(tmp_path_factory.mktemp("home")), tmp_path_factory.mktemp("report")
    for made in (
        result("small", "former", 0.0, 0.1),
        result("small", "latter", 0.02, 0.2),
        result("other", "other", 0.05, 0.2),
    ):
        tracker.log(made, report)
    return tracker.own_database


@pytest.fixture
def tracked(project: Project, database: Path) -> Project:
    """A project whose home contains these results."""
    project.home.mkdir(exist_ok=True)
    shutil.copy(database, project.home)
    return project


def test_the_last_two_results_of_an_experiment_are_compared(tracked: Project) -> None:
    called = tracked.call("compare", "small~1", "small.yaml")
    assert (called.code, called.err) == (0, "")
    assert "A: small (former)\nB: small (latter)\n" in called.out
    assert "gold (B) − gold (A)" in called.out
    assert "+2.00" in called.out
    assert "set otherwise: train.learning_rate: 0.1, then 0.2 (all rows)" in called.out


def test_two_experiments_are_compared_by_name(tracked: Project) -> None:
    called = tracked.call("compare", "small", "other")
    assert (called.code, called.err) == (0, "")
    assert "+3.00" in called.out


@pytest.mark.parametrize(
    ("arguments", "facts"),
    [
        (("small", "smal"), ("no tracked results of 'smal'", "did you mean 'small'?")),
        (("small", "small.yaml"), ("same result", "small~1")),
        (("small~2", "small"), ("2 tracked results", "none 2 before")),
        (("small", "gone.yaml"), ("gone.yaml", "no such file")),
    ],
    ids=" ".join,
)
def test_an_experiment_without_results_is_reported_in_one_line(
    tracked: Project, arguments: tuple[str, ...], facts: tuple[str, ...]
) -> None:
    called = tracked.call("compare", *arguments)
    assert (called.code, called.out, len(called.errors)) == (2, "", 1)
    assert all(fact in called.errors[0] for fact in facts)


def test_comparing_without_any_tracked_result_is_an_error(project: Project) -> None:
    called = project.call("compare", "small.yaml", "other")
    assert (called.code, len(called.errors)) == (2, 1)
    assert "no tracked results" in called.errors[0]
