"""Score one model on the tasks of a suite, without an experiment."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from synthbench.base.errors import UserError
from synthbench.base.home import home
from synthbench.models.precision import Precision
from synthbench.plugins.files import check_code_of
from synthbench.suites.known import SUITES, Origin, Suite, by_reason, find_tasks
from synthbench.suites.provided import find_provided_tasks, is_own

if TYPE_CHECKING:
    from synthbench.base.runtime import Progress, Runtime
    from synthbench.data.dataset import SyntheticDataset
    from synthbench.models.encoder import StoredVectors
    from synthbench.models.interfaces import Encoder, PairScorer
    from synthbench.plugins.model_contracts import Evaluation, Evaluator


@dataclass(frozen=True)
class Scoring:
    """A model to score on a suite, with the options of `synthbench evaluate`."""

    model: str
    suite: str
    data: Path | None = None
    origin: Origin | None = None
    revision: str | None = None
    precision: Precision | None = None

    @property
    def reads_from(self) -> Origin:
        """Where the tasks are read from: the origin asked for, else the data folder, else the hub."""
        return self.origin or ("hub" if self.data is None else "folder")


@dataclass(frozen=True)
class Scored:
    """A model's scores on a suite: evaluations by task, why tasks are missing, the evaluators' settings.

    `items` are the tasks' test sets; `fingerprint` identifies the model. `average` is None for suites of
    the form EVALUATOR:NAME, and for fewer than two averaged tasks.
    """

    evaluations: "Mapping[str, Evaluation]"
    missing: Mapping[str, str]
    settings: Mapping[str, Any]
    fingerprint: Mapping[str, str]
    average: Mapping[str, Any] | None
    items: "Mapping[str, SyntheticDataset]"
    is_encoder: bool


def score(asked: Scoring, runtime: "Runtime", progress: "Progress") -> Scored:
    """Score an encoder or cross-encoder on the test sets of a suite; report and skip missing test sets.

    Raises UserError if the model can't be loaded or may not run its code, if the device lacks the precision,
    if the suite is unknown or needs an encoder, or if no test set is found.
    """
    from synthbench.models.artifact import model_fingerprint
    from synthbench.models.interfaces import Encoder

    suite, precision = asked.suite, asked.precision
    check_code_of(asked.model)
    _check_precision(precision, runtime)
    identity = model_fingerprint(asked.model, asked.revision)
    rounded = {"precision": precision} if precision else {}
    tasks, missing, evaluators = _found(suite, asked.data, asked.reads_from)
    _say_what_is_missing(missing, asked.reads_from, suite, progress)
    with _saved_vectors(suite, {**identity, **rounded}, progress) as kept:
        named = (asked.model, asked.revision)
        opened = _open(named, suite, evaluators, kept, (runtime, progress, precision))
        evaluations = _evaluate(opened, evaluators, tasks, progress)
    settings = {key: value for each in evaluators.values() for key, value in each.model_dump().items()}
    mean = None if is_own(suite) else average(SUITES[suite], evaluations)
    is_encoder = isinstance(opened, Encoder)
    return Scored(evaluations, missing, settings, identity, mean, tasks, is_encoder)


def _say_what_is_missing(
    missing: Mapping[str, str], origin: Origin, suite: str, progress: "Progress"
) -> None:
    """Report the missing test sets and, for STS sets of the hub, that their subsets are unknown."""
    for reason in by_reason(missing):
        progress.say(f"not evaluated: {reason}")
    if origin == "hub" and suite == "sts":
        progress.say("subsets are not known on the hub: mean and wmean are those over all pairs")


def _found(
    suite: str, data: Path | None, origin: Origin
) -> "tuple[Mapping[str, SyntheticDataset], Mapping[str, str], Mapping[str, Evaluator]]":
    """Return the test sets found, why others are missing, and the evaluator of each."""
    if is_own(suite):
        provider, own = find_provided_tasks(suite, data, origin)
        return own, {}, dict.fromkeys(own, provider)
    tasks, missing = find_tasks(suite, data, origin)
    return tasks, missing, {name: _evaluator(SUITES[suite], task) for name, task in tasks.items()}


@contextmanager
def _saved_vectors(
    suite: str, identity: Mapping[str, str], progress: "Progress"
) -> "Iterator[StoredVectors | None]":
    """Yield storage for vectors, with the vectors of a stopped evaluation; after a success, it is emptied.

    Yields None if another process runs the same evaluation, or the folder can't be written to.
    """
    from synthbench.engine.leases import StageBusyError
    from synthbench.engine.store import Store, disk_errors
    from synthbench.models.encoder import StoredVectors

    store = Store(home() / "store")
    what = hashlib.sha256(json.dumps(["evaluate", suite, dict(identity)]).encode()).hexdigest()
    with ExitStack() as held:
        try:
            held.enter_context(store.locks.stage(what, f"evaluate --suite {suite}"))
        except (StageBusyError, OSError) as error:
            progress.say(f"embeddings are not kept, an evaluation that is stopped begins anew: {error}")
            yield None
            return
        held.enter_context(disk_errors(store.root))
        yield StoredVectors(store.workspace(what) / "checkpoints", what, progress=progress)
        store.unfinished.forget(what)


def _open(
    model: tuple[str, str | None],
    suite: str,
    evaluators: "Mapping[str, Evaluator]",
    kept: "StoredVectors | None",
    how: "tuple[Runtime, Progress, Precision | None]",
) -> "Encoder | PairScorer":
    """Load a model by name and revision; raises UserError if the suite can't use it."""
    from synthbench.base.runtime import use_threads
    from synthbench.models.artifact import open_model
    from synthbench.models.encoder import CachingEncoder, resumable
    from synthbench.models.interfaces import Encoder

    runtime, progress, precision = how
    use_threads(runtime)
    opened = open_model(*model, runtime, progress, precision)
    if isinstance(opened, Encoder):
        return CachingEncoder(opened) if kept is None else resumable(opened, kept)
    if not all(evaluator.takes(opened) for evaluator in evaluators.values()):
        raise UserError(f"suite '{suite}' needs one vector for each text, and {model[0]} gives none")
    return opened


def _evaluate(
    model: "Encoder | PairScorer",
    evaluators: "Mapping[str, Evaluator]",
    tasks: "Mapping[str, SyntheticDataset]",
    progress: "Progress",
) -> "Mapping[str, Evaluation]":
    """Score all tasks of the suite, encoding every sentence once."""
    from synthbench.models.interfaces import Encoder
    from synthbench.models.pair_scorer import CosineScorer

    scorer: PairScorer
    if isinstance(model, Encoder):
        model.encode(
            [text for name, evaluator in evaluators.items() for text in evaluator.texts(tasks[name])]
        )
        scorer = CosineScorer(model)
    else:
        scorer = model
    return {
        name: evaluator.evaluate_with_progress(
            model if evaluator.needs_encoder else scorer, tasks[name], progress
        )
        for name, evaluator in evaluators.items()
    }


def _evaluator(suite: Suite, task: "SyntheticDataset") -> "Evaluator":
    from synthbench.data.records import RecordKind
    from synthbench.plugins.loading import component

    is_of_pairs = task.kind == RecordKind.SCORED_PAIR
    made: Evaluator = component("evaluators", (is_of_pairs and suite.of_pairs) or suite.evaluator)()
    return made


def _check_precision(precision: Precision | None, runtime: "Runtime") -> None:
    """Raise UserError if the device can't compute in the requested precision."""
    if precision is not None:
        import torch

        from synthbench.base.runtime import device_name
        from synthbench.models.precision import check_precision

        check_precision(precision, torch.device(device_name(runtime)), "--precision")


def average(suite: Suite, evaluations: Mapping[str, "Evaluation"]) -> dict[str, Any] | None:
    """Return {"tasks", "main_score"}: averaged tasks and mean main score; None for fewer than two."""
    names = suite.average_over(evaluations)
    scored = [evaluations[name] for name in names]
    main = [each.scores[each.main_score] for each in scored]
    return {"tasks": list(names), "main_score": fmean(main)} if names else None
