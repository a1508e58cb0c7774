"""Export the scores of a model that no experiment trained: mteb's layout, and the hub's `.eval_results`."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from functools import partial
from importlib.metadata import version
from pathlib import Path

from synthbench.base.errors import UserError
from synthbench.base.patterns import linear_pattern
from synthbench.base.user_files import PACKAGE_PREFIX
from synthbench.exporting.evaluation_results import result_files, write_files
from synthbench.exporting.facts import is_on_hub
from synthbench.exporting.mteb_results import MeasuredTask, WrittenResults, write_measured
from synthbench.exporting.privacy import check_public
from synthbench.sources.models import TaskSource
from synthbench.suites.known import SUITES
from synthbench.suites.provided import evaluator_of, is_own
from synthbench.suites.scoring import Scored, Scoring

_NOT_IN_NAMES = linear_pattern(r"[^\w.-]+")


def write_evaluation(asked: Scoring, scored: Scored, repository: str, folder: Path) -> Mapping[str, str]:
    """Write the scores into the existing, empty `folder`; return those not in mteb's layout: name -> reason.

    `repository`: the hub repository that the scores are uploaded to, which names the model; "" for none.
    Raises UserError if no score can be exported, or if a file would reveal private data.
    """
    num_files = write_files(folder, _hub_files(asked, scored))
    written = WrittenResults()
    by = evaluator_of(asked.suite)
    named = ((f"{task} by {by}", partial(_measured, task, asked, scored)) for task in scored.evaluations)
    try:
        write_measured(named, _meta(scored.fingerprint, repository), folder, written)
    except UserError as error:
        written.left_out["mteb's layout"] = str(error)
    if not num_files:
        written.require_any(asked.model)
    check_public(folder)
    return written.left_out


def _measured(task: str, asked: Scoring, scored: Scored) -> MeasuredTask:
    items = scored.items[task]
    return MeasuredTask(
        task=task,
        evaluator=evaluator_of(asked.suite),
        scores=scored.evaluations[task].scores,
        benchmark=scored.settings.get("benchmark"),
        revisions=items.manifest.revisions,
        items=lambda: items,
        source=_source(task, asked.suite),
        is_encoder=scored.is_encoder,
    )


def _hub_files(asked: Scoring, scored: Scored) -> Iterator[tuple[str, str]]:
    evaluator, is_on_hub = evaluator_of(asked.suite), asked.reads_from == "hub"
    for task, each in scored.evaluations.items():
        source = _source(task, asked.suite)
        yield from result_files(source, evaluator, each, version("synthbench"), is_on_hub=is_on_hub)


def _source(task: str, suite: str) -> TaskSource | None:
    """Return the source of a standard task's test set; None for a suite EVALUATOR:NAME."""
    is_standard = not is_own(suite) and task in SUITES[suite].tasks
    return TaskSource.model_validate({"task": task, "split": "test"}) if is_standard else None


def _meta(fingerprint: Mapping[str, str], repository: str) -> dict[str, str]:
    """Return the model's name and revision for mteb.

    The name is `repository`, else the hub id, else "synthbench/" and the name of the local folder or package.
    The revision is the hub's commit, else 40 digits of a hash of the content.
    """
    (name, content), *others = fingerprint.items()
    if is_on_hub(name, content) and not others:
        return {"name": repository or name, "revision": content}
    local = name.removeprefix(PACKAGE_PREFIX).partition("/")[0] if name.startswith(PACKAGE_PREFIX) else name
    own = f"synthbench/{_NOT_IN_NAMES.sub('-', Path(local).resolve().name)}"
    digest = hashlib.sha256(json.dumps(dict(fingerprint)).encode()).hexdigest()
    return {"name": repository or own, "revision": digest[:40]}
