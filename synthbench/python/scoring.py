"""Score one model on standard tasks, as a data frame."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict, Unpack

from synthbench.base.runtime import Runtime
from synthbench.engine.progress import progress_for_people
from synthbench.models.precision import Precision
from synthbench.suites.known import Origin
from synthbench.suites.scoring import Scoring, score

if TYPE_CHECKING:
    import pandas as pd


class ScoringOptions(TypedDict, total=False):
    """Options of `synthbench evaluate`.

    `data`: folder of the tasks. `origin`: "folder" or "hub", where tasks come from. `revision`: commit of a
    model on the hub. `precision`: precision of computations.
    """

    data: str | Path
    origin: Origin
    revision: str
    precision: Precision


def evaluate(
    model: str | Path,
    suite: str = "sts",
    *,
    runtime: Runtime | None = None,
    **options: Unpack[ScoringOptions],
) -> "pd.DataFrame":
    """Score an encoder or cross-encoder as `synthbench evaluate` does; return a row per task and metric.

    Columns: task, metric, is_main (whether it is the task's main score), score (not x 100), num_items.
    `.attrs["not_evaluated"]`: missing task -> reason. `runtime`: device, threads, batch size. Raises
    UserError if the model or the suite can't be used.
    """
    import pandas as pd

    data = options.get("data") or os.environ.get("SYNTHBENCH_DATA")
    asked = Scoring(
        str(model),
        suite,
        Path(data) if data else None,
        options.get("origin"),
        options.get("revision"),
        options.get("precision"),
    )
    scored = score(asked, runtime or Runtime(), progress_for_people())
    frame = pd.DataFrame(
        {
            "task": task,
            "metric": metric,
            "is_main": metric == evaluation.main_score,
            "score": value,
            "num_items": evaluation.num_items,
        }
        for task, evaluation in scored.evaluations.items()
        for metric, value in evaluation.scores.items()
    )
    frame.attrs["not_evaluated"] = dict(scored.missing)
    return frame
