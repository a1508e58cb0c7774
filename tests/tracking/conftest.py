import contextlib
import io
from collections.abc import Callable
from pathlib import Path

import pytest
from tracking_databases import migrating

from synthbench.reporting.results import DatasetSummary, ExperimentResult, RunResult, TaskScores
from synthbench.tracking.mlflow_tracker import MlflowTracker

STSB = {"gold": (0.70, 0.71, 0.72), "augsbert (k=3)": (0.75, 0.76, 0.77)}


def make_run(variant: str, seed: int, *, history_points: int = 3, **of_score: str) -> RunResult:
    return RunResult(
        variant=variant,
        axes={"base": "static"},
        seed=seed,
        identity=f"{variant}-{seed}",
        parameters={
            "trainer.epochs": 1,
            "trainer.batch_sizes": [16, 32],
            "llm.api_key": "sk-1",
            "llm.max_tokens": 9,
        },
        chosen={"k": 3},
        scores=(
            TaskScores(
                task="STSb",
                evaluator="sts",
                main_score="cosine_spearman",
                scores={"cosine_spearman": STSB[variant][seed], "cosine_pearson": 0.5},
                num_items=1379,
                num_dropped=2,
                stage="evaluation",
                **of_score,
            ),
        ),
        datasets=(
            DatasetSummary(
                part="silver",
                kind="scored_pair",
                method="augsbert",
                num_records=10,
                num_failures=1,
                dropped={"is gold": 4},
                content_hash="0123456789abcdef" * 4,
                stage="generation",
                folder="store/artifacts/si/silver",
            ),
        ),
        history=tuple((step, "loss", 1.0 / (step + 1)) for step in range(history_points)),
        dev_score=0.8,
        num_steps=history_points,
        seconds=1.5,
        model_folder="store/artifacts/mo/model",
    )


def make_result(name: str, **changes: object) -> ExperimentResult:
    result = ExperimentResult(
        experiment=name,
        description="What BM25 pairs add",
        identity="identity-1",
        request="request-1",
        source="name: example\nseeds: [0, 1, 2]\n",
        table={"decimals": 1},
        tasks=("STSb",),
        runs=tuple(make_run(variant, seed) for variant in STSB for seed in range(3)),
        notes=("A note.",),
        environment={"torch": "2.13.0"},
    )
    return result.model_copy(update=changes)


@pytest.fixture(scope="session")
def fresh_store(tmp_path_factory: pytest.TempPathFactory) -> tuple[MlflowTracker, str]:
    """A store with a first result, and all that was printed while MLflow set it up (which costs seconds).

    An earlier process was killed while it set up the same store.
    """
    home = tmp_path_factory.mktemp("home é 1")
    (home / "mlflow.unfinished").mkdir()
    (home / "mlflow.unfinished" / "mlflow.db").write_bytes(b"half a database")
    tracker = MlflowTracker(home)
    printed = io.StringIO()
    with migrating(), contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        tracker.log(make_result("first", runs=(make_run("gold", 0),)), Path("no-report"))
        tracker.load("first")
    return tracker, printed.getvalue()


@pytest.fixture(scope="session")
def tracker(fresh_store: tuple[MlflowTracker, str]) -> MlflowTracker:
    """One store for all tests; each uses its own experiment name."""
    return fresh_store[0]


@pytest.fixture(scope="session")
def recorded(tracker: MlflowTracker, tmp_path_factory: pytest.TempPathFactory) -> ExperimentResult:
    """A result that is recorded once, for the tests that only look at it; one run of it trained no model."""
    report_folder = tmp_path_factory.mktemp("report")
    (report_folder / "table.md").write_text("| a table |\n", encoding="utf-8")
    result = make_result("recorded", table={"averages": {"All": ["STSb"]}})
    rates = (run.parameters | {"train.learning_rate": run.seed} for run in result.runs)
    runs = [run.model_copy(update={"parameters": rate}) for run, rate in zip(result.runs, rates, strict=True)]
    runs[0] = runs[0].model_copy(update={"model_folder": ""})
    result = result.model_copy(update={"runs": tuple(runs)})
    tracker.log(result, report_folder)
    return result


@pytest.fixture(name="make_run", scope="session")
def make_run_fixture() -> Callable[..., RunResult]:
    return make_run


@pytest.fixture
def result(request: pytest.FixtureRequest) -> ExperimentResult:
    """Two rows, one of them with two seeds: MLflow takes 50 ms a run."""
    runs = (make_run("gold", 0), make_run("gold", 1), make_run("augsbert (k=3)", 0))
    return make_result(request.node.name, runs=runs)


@pytest.fixture
def report_folder(tmp_path: Path) -> Path:
    folder = tmp_path / "report"
    folder.mkdir()
    (folder / "table.md").write_text("| a table |\n", encoding="utf-8")
    return folder
