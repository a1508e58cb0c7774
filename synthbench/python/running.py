"""Run an experiment from Python, or load its tracked results."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypedDict, Unpack

from synthbench.base.errors import UserError
from synthbench.base.home import home
from synthbench.config.key_hosts import allow_hosts
from synthbench.config.overrides import Overrides
from synthbench.engine.progress import progress_for_people
from synthbench.pipeline.experiment_run import compute, record
from synthbench.pipeline.invocation import Invocation, load_invocation
from synthbench.plugins.files import allow_code
from synthbench.python.results import Results
from synthbench.results.collect import request
from synthbench.tracking.mlflow_tracker import MlflowTracker


class Options(TypedDict, total=False):
    """Overrides, as on the command line.

    `assignments` set values of the file by dotted path: {"train.max_steps": 20}. `allow_code` lets Python
    files in the experiment's folder run, for methods of your own. `allow_hosts` names hosts that may get the
    LLMs' keys.
    """

    profile: str
    assignments: Mapping[str, Any]
    variants: Sequence[str]
    seeds: Sequence[int]
    data: str | Path
    allow_code: bool
    allow_hosts: Sequence[str]


def run(
    file: str | Path, *, jobs: int = 1, output: str | Path = "reports", **options: Unpack[Options]
) -> Results:
    """Run an experiment as `synthbench run` does, and return its results.

    Stages in the store are not computed again. With `jobs` above 1, the calling script needs `if __name__ ==
    "__main__":`. Raises UserError if the file or the data are invalid, if stages failed, or if results can't
    be tracked.
    """
    invocation = _invocation(Path(file), options)
    progress = progress_for_people()
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

    Raises UserError if there are none.
    """
    invocation = _invocation(Path(file), options)
    asked = request(invocation.experiment, invocation.overrides)
    return Results(MlflowTracker(home()).load(invocation.experiment.name, asked))


def _invocation(file: Path, options: Options) -> Invocation:
    if options.get("allow_code"):
        allow_code(file.parent)
    invocation = load_invocation(file, _overrides(options))
    if options.get("allow_hosts"):
        llms = invocation.experiment.llms
        allow_hosts(options["allow_hosts"], [llms[name] for name in invocation.experiment.used_llms])
    return invocation


def _overrides(options: Options) -> Overrides:
    assignments = options.get("assignments", {})
    return Overrides(
        profile=options.get("profile"),
        assignments=tuple(f"{path}={json.dumps(value)}" for path, value in assignments.items()),
        variants=tuple(options.get("variants", ())),
        seeds=tuple(options.get("seeds", ())),
        data=Path(options["data"]) if "data" in options else None,
    )
