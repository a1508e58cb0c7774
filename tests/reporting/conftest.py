import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from synthbench.reporting.results import ExperimentResult, RunResult, TaskScores

Scores = Mapping[str, Sequence[float]]
MakeRuns = Callable[..., tuple[RunResult, ...]]


def make_runs(
    variant: str, scores: Scores, *, items: int = 100, dropped: int = 0, **axes: str
) -> tuple[RunResult, ...]:
    """One run per seed: `scores` maps a task to its values for seeds 0, 1, 2 ..."""
    count = max(len(values) for values in scores.values())
    return tuple(
        RunResult(
            variant=variant,
            axes=axes,
            seed=seed,
            identity=f"{variant}{axes}{seed}",
            scores=tuple(
                TaskScores(
                    task=task,
                    evaluator="sts",
                    main_score="cosine_spearman",
                    scores={"cosine_spearman": values[seed], "cosine_pearson": 0.0},
                    num_items=items,
                    num_dropped=dropped,
                    stage="stage",
                )
                for task, values in scores.items()
                if seed < len(values)
            ),
        )
        for seed in range(count)
    )


def make_result(*rows: tuple[RunResult, ...], tasks: Sequence[str] = (), **table: Any) -> ExperimentResult:
    return ExperimentResult(
        experiment="example",
        description="An example",
        identity="identity",
        tasks=tuple(tasks),
        table=table,
        runs=tuple(run for row in rows for run in row),
    )


@pytest.fixture(name="make_runs", scope="session")
def make_runs_fixture() -> MakeRuns:
    return make_runs


@pytest.fixture(name="make_result", scope="session")
def make_result_fixture() -> Callable[..., ExperimentResult]:
    return make_result


@pytest.fixture(scope="session")
def small_result() -> ExperimentResult:
    """Worked out by hand: with MiniLM, augsbert is above gold on STSb; all else is within the noise."""
    return make_result(
        make_runs("gold", {"STSb": (0.70, 0.71, 0.72), "SICK-R": (0.60, 0.62, 0.64)}, base="MiniLM"),
        make_runs("cross-encoder", {"STSb": (0.88, 0.88, 0.88)}, base="MiniLM"),
        make_runs("augsbert_k", {"STSb": (0.77, 0.75, 0.76), "SICK-R": (0.65, 0.61, 0.63)}, base="MiniLM"),
        make_runs("gold", {"STSb": (0.50, 0.52), "SICK-R": (0.40, 0.42, 0.44)}, base="static"),
        make_runs("augsbert_k", {"STSb": (0.51, 0.52, 0.53), "SICK-R": (0.41, 0.42, 0.43)}, base="static"),
        tasks=("STSb", "SICK-R", "STS14"),
        caption="Gold & silver",
        ceiling=["cross-encoder"],
        averages={"Average": ["STSb", "SICK-R"]},
        compare_to="gold",
        primary=["STSb"],
        decimals=1,
    )


@pytest.fixture
def compile_latex(tmp_path: Path) -> Callable[[str], str]:
    """Let a real pdflatex, which `make check-latex` installs, set a document; gives its log."""
    if shutil.which("pdflatex") is None:
        pytest.skip("pdflatex is not installed; make check-latex does that")

    def compiled(document: str) -> str:
        (tmp_path / "document.tex").write_text(document, encoding="utf-8")
        command = ["pdflatex", "-halt-on-error", "-interaction=nonstopmode", "document.tex"]
        done = subprocess.run(
            command, cwd=tmp_path, capture_output=True, text=True, errors="replace", check=False
        )
        assert done.returncode == 0, done.stdout[-2000:]
        assert (tmp_path / "document.pdf").stat().st_size > 1000
        return done.stdout

    return compiled
