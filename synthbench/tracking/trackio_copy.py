"""Copy finished results to Trackio, beside MLflow, if $SYNTHBENCH_TRACKIO is set.

Trackio's own variables choose the destination: a folder, or a server or Space of the user.
"""

import io
import os
import sqlite3
from collections.abc import Iterator
from contextlib import redirect_stdout
from importlib.util import find_spec
from pathlib import Path

from synthbench.base.errors import UserError, in_one_line
from synthbench.base.redaction import masked
from synthbench.reporting.results import ExperimentResult, RunResult
from synthbench.tracking.payload import row_name, run_digest, run_name, run_points, value_text

SETTING = "SYNTHBENCH_TRACKIO"
INSTALL = "pip install 'synthbench[trackio]'"


def is_wanted() -> bool:
    """Return whether results go to Trackio, too; raises UserError if it is not installed."""
    if not os.environ.get(SETTING):
        return False
    if find_spec("trackio") is None:
        raise UserError(f"${SETTING} is set, but Trackio is not installed: {INSTALL}")
    return True


def copy_to_trackio(result: ExperimentResult, home: Path) -> None:
    """Copy the runs of a result that were not copied before; the result must be without secrets.

    Trackio gets a project for the experiment, a group for each row, and a run for each seed. Raises
    UserError if copying fails. Copied runs are marked by empty files in the folder `home`/trackio.
    """
    copied = home / "trackio"
    copied.mkdir(parents=True, exist_ok=True)
    for run in result.runs:
        mark = copied / run_digest(run)
        if not mark.exists():
            try:
                _copy(result.experiment, run)
            except (OSError, ValueError, RuntimeError, sqlite3.Error) as error:
                raise UserError(f"${SETTING}: Trackio: {masked(in_one_line(error))}") from error
            mark.touch()


def _copy(experiment: str, run: RunResult) -> None:
    import trackio

    settings = {"variant": run.variant, **run.axes, "seed": run.seed, **run.parameters, **run.chosen}
    # Trackio greets on the terminal, and measures the machine unless it is told not to.
    with redirect_stdout(io.StringIO()):
        trackio.init(
            project=experiment,
            name=run_name(run),
            group=row_name(run),
            config={name: value_text(value) for name, value in settings.items()},
            private=True,
            embed=False,
            auto_log_gpu=False,
            auto_log_cpu=False,
        )
        for step, metrics in _by_step(run):
            trackio.log(metrics, step=step)
        trackio.finish()


def _by_step(run: RunResult) -> Iterator[tuple[int, dict[str, float]]]:
    steps: dict[int, dict[str, float]] = {}
    for point in run_points(run):
        steps.setdefault(point.step, {})[point.name] = point.value
    yield from sorted(steps.items())
