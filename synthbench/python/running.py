"""Run an experiment from Python, or load its tracked results."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from synthbench.base.errors import UserError
from synthbench.base.home import home
from synthbench.config.experiment import Experiment
from synthbench.config.key_hosts import allow_hosts
from synthbench.config.overrides import Overrides
from synthbench.engine.plan import StageStatus, statuses
from synthbench.engine.progress import progress_for_people
from synthbench.engine.stores import open_store
from synthbench.estimates.facts import StageFacts, asked
from synthbench.estimates.figures import estimator_for
from synthbench.llm.endpoint import money
from synthbench.pipeline.experiment_run import compute, record
from synthbench.pipeline.invocation import Invocation, load_invocation
from synthbench.pipeline.planning import make_outline
from synthbench.plugins.files import code_allowed
from synthbench.python.results import Results
from synthbench.results.collect import request
from synthbench.tracking.mlflow_tracker import MlflowTracker

if TYPE_CHECKING:
    import pandas as pd


class Changes(TypedDict, total=False):
    """Changes to an experiment file, as on the command line.

    `assignments` set values of the file by dotted path: {"train.max_steps": 20}. `data` is the folder of data
    sets. `allow_code` lets Python files in the experiment's folder run during this call, for methods of your
    own. `allow_hosts` names hosts that may get the LLMs' API keys, in this and later calls.
    """

    profile: str
    assignments: Mapping[str, Any]
    data: str | Path
    allow_code: bool
    allow_hosts: Sequence[str]


class Options(Changes, total=False):
    """Changes to an experiment file, and the variants and seeds to use (absent or empty: the file's)."""

    variants: Sequence[str]
    seeds: Sequence[int]


def run(
    file: str | Path, *, jobs: int = 1, output: str | Path = "reports", **options: Unpack[Options]
) -> Results:
    """Run an experiment as `synthbench run` does, and return its results.

    Stages in the store are not computed again. `jobs`: number of stages to run at once; if above 1, the
    calling script needs `if __name__ == "__main__":`. `output`: folder of the reports. Raises UserError if
    the file or the data are invalid, if stages failed or wait for an LLM's batch, or if results can't be
    tracked.
    """
    progress = progress_for_people()
    with prepared(Path(file), options) as invocation:
        computed = compute(invocation, progress, jobs=jobs, force=(), output=Path(output))
        if computed.result.runs:
            recorded = record(computed, progress)
            if recorded.errors:
                raise UserError(*recorded.errors)
    if computed.report.failed or computed.report.pending:
        raise UserError(*computed.report.failure_lines, *computed.report.pending_lines)
    return Results(computed.result)


def load(file: str | Path, **options: Unpack[Options]) -> Results:
    """Return an experiment's last tracked results for the same options; computes nothing.

    Raises UserError if no results are tracked.
    """
    with prepared(Path(file), options) as invocation:
        asked = request(invocation.experiment, invocation.overrides)
        return Results(MlflowTracker(home()).load(invocation.experiment.name, asked))


def plan(file: str | Path, **options: Unpack[Options]) -> "pd.DataFrame":
    """Return what a run would compute and cost, a row per stage; computes nothing.

    Columns: stage, kind, runs (number of runs that need the stage), state (cached, to run ...), is_to_run,
    seconds on this machine, requests, usd; NaN where unknown. Nothing is downloaded from the hub.
    """
    with prepared(Path(file), options) as invocation:
        return _planned(invocation.experiment)


def _planned(experiment: Experiment) -> "pd.DataFrame":
    import pandas as pd

    store = open_store()
    found = statuses(make_outline(experiment), store)
    known = StageFacts(store)
    to_run = [status.stage for status in found if status.is_to_run]
    estimator = estimator_for(to_run, experiment.runtime, known)
    return pd.DataFrame(
        {
            "stage": str(status.stage),
            "kind": status.stage.kind,
            "runs": status.num_runs,
            "state": status.state,
            "is_to_run": status.is_to_run,
            "seconds": estimator.seconds(status.stage) if status.is_to_run else 0.0,
            **_asking(status, known),
        }
        for status in found
    )


def _asking(status: StageStatus, known: StageFacts) -> dict[str, float | None]:
    """Return a stage's expected LLM requests and dollars; None if unknown."""
    llm = status.stage.operation.asked_llm
    if llm is None or not status.is_to_run:
        return {"requests": 0, "usd": 0.0}
    amount = asked(known.view(status.stage))
    if amount is None:
        return {"requests": None, "usd": None}
    return {"requests": amount.num_requests, "usd": money(llm.endpoint(), amount)}


@contextmanager
def prepared(file: Path, options: Options) -> Iterator[Invocation]:
    """Yield a loaded experiment; with `allow_code`, code in its folder may run within the `with` block."""
    with code_allowed(file.parent) if options.get("allow_code") else nullcontext():
        invocation = load_invocation(file, overrides_of(options))
        if options.get("allow_hosts"):
            llms = invocation.experiment.llms
            allow_hosts(options["allow_hosts"], [llms[name] for name in invocation.experiment.used_llms])
        yield invocation


def overrides_of(options: Options) -> Overrides:
    """Return the options in the form of the command line's overrides."""
    assignments = options.get("assignments", {})
    return Overrides(
        profile=options.get("profile"),
        assignments=tuple(f"{path}={json.dumps(value)}" for path, value in assignments.items()),
        variants=tuple(options.get("variants", ())),
        seeds=tuple(options.get("seeds", ())),
        data=Path(options["data"]) if "data" in options else None,
    )
