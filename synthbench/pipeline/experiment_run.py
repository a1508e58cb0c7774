"""Run an experiment: plan, compute, collect, track and report."""

import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from synthbench.base.durability import DamagedFileError
from synthbench.base.errors import UserError
from synthbench.base.home import home, make_store_folder
from synthbench.base.listing import counted
from synthbench.base.processes import threads_each
from synthbench.base.runtime import Progress, Runtime
from synthbench.config.environment_checks import missing_keys
from synthbench.config.experiment import Experiment
from synthbench.config.key_hosts import check_key_hosts
from synthbench.config.llm import SHORT_FORM, NamedLLM, WorldLLM
from synthbench.config.precisions import check_precisions
from synthbench.config.served_llm import ServedLLM
from synthbench.engine.artifacts import Artifacts
from synthbench.engine.bars import RichProgress
from synthbench.engine.jobs import Executor
from synthbench.engine.local_executors import executor
from synthbench.engine.monitor import RunMonitor
from synthbench.engine.plan import Plan, statuses
from synthbench.engine.progress import PlainProgress, QuietProgress
from synthbench.engine.ray_executor import ray_cluster
from synthbench.engine.records import ArtifactDamagedError
from synthbench.engine.run_notes import telling
from synthbench.engine.runner import Runner, RunReport, matching
from synthbench.engine.shared_ledger import CountedHold
from synthbench.engine.slurm_executor import slurm_arrays
from synthbench.engine.stage import Stage
from synthbench.engine.store import Store, disk_errors
from synthbench.engine.stores import open_store
from synthbench.estimates.facts import StageFacts
from synthbench.estimates.figures import estimator_for
from synthbench.estimates.needs import needs_of
from synthbench.estimates.side_by_side import local_devices
from synthbench.llm import ledger
from synthbench.llm.endpoint import ChatModel
from synthbench.llm.server import servers
from synthbench.pipeline.hub_needs import files_on_hub, look_up, missing, planned
from synthbench.pipeline.invocation import Invocation
from synthbench.pipeline.planning import make_outline
from synthbench.registration.registering import Registering
from synthbench.reporting.files import (
    current_report,
    make_report_folder,
    place_report,
    report_files,
    report_folder,
    report_inputs,
)
from synthbench.reporting.results import ExperimentResult, RunResult
from synthbench.results.audits import deliver_sheet
from synthbench.results.collect import collect, request
from synthbench.results.so_far import runs_so_far
from synthbench.tracking.live import LiveNames
from synthbench.tracking.live_worker import import_tracking, live_tracking
from synthbench.tracking.mlflow_tracker import MlflowTracker
from synthbench.tracking.redaction import redacted
from synthbench.tracking.trackio_copy import copy_to_trackio, is_wanted
from synthbench.worlds import world

RunProgress = QuietProgress | PlainProgress | RichProgress


@dataclass(frozen=True)
class Computed:
    """The outcome of computing a plan: `report` lists executed and failed stages.

    `folder` is for the files that people read: tables, figures, page.
    """

    report: RunReport
    result: ExperimentResult
    artifacts: Artifacts
    folder: Path


@dataclass(frozen=True)
class Recorded:
    """Where a run's results were tracked and reported.

    `tracked`: the results' location in MLflow, "" if tracking failed; `errors` say why. `edited`: report
    files that people had changed -> their copies. `sheets`: instructions for the blank sheets of audits.
    """

    tracked: str = ""
    errors: tuple[str, ...] = ()
    edited: Mapping[str, str] = field(default_factory=dict)
    sheets: tuple[str, ...] = ()


def _check_keys(experiment: Experiment) -> None:
    """Raise UserError if a stage that certainly runs asks an LLM whose API key is missing."""
    lacking = missing_keys(experiment)
    if not lacking:
        return
    states = statuses(make_outline(experiment), open_store())
    to_run = [status.stage for status in states if status.is_to_run and status.state != "unknown"]
    asked = {llm.name for stage in to_run if (llm := stage.operation.asked_llm) is not None}
    if messages := [message for name, message in lacking.items() if name in asked]:
        raise UserError(*messages)


def _prepared_store(progress: RunProgress) -> Store:
    make_store_folder()
    store = open_store()
    store.say = progress.say
    store.prepare()
    return store


def _check_hub(to_run: Iterable[Stage], experiment: Experiment, progress: RunProgress) -> None:
    """Raise UserError if stages need a file that this machine lacks and the hub can't give."""
    if lacking := missing(files_on_hub(to_run)):
        progress.say(f"looking up {counted(len(lacking), 'name')} on the hub")
        look_up(lacking, experiment)


def compute(
    invocation: Invocation, progress: RunProgress, *, jobs: int, force: Collection[str], output: Path
) -> Computed:
    """Compute the missing stages into the home's store, and collect the results.

    Checks API keys, the hub, the report's folder and the tracker before anything is spent; raises UserError
    if a check fails. Raises UserError also for invalid data: nothing was generated or trained then. Other
    failed stages are in the outcome's `report`.
    """
    experiment = invocation.experiment
    check_key_hosts(experiment.llms[name] for name in sorted(experiment.used_llms))
    progress.say(f"{experiment.name}: planning")
    _check_keys(experiment)
    plan = planned(experiment)
    store = _prepared_store(progress)
    progress.say("checking report folder and tracking")
    folder = report_folder(output, experiment.name, invocation.overrides)
    make_report_folder(folder)
    MlflowTracker(home()).check(experiment.name)
    is_wanted()
    progress.say(f"checking the store for {counted(len(plan.stages), 'stage')}")
    to_run = [status.stage for status in statuses(plan, store) if status.is_to_run]
    if experiment.precisions and to_run:
        check_precisions(experiment.precisions, experiment.runtime, may_open_gpu=False)
    _check_hub(to_run, experiment, progress)
    runtime = _runtime(experiment, jobs)
    monitor = RunMonitor(
        lambda stages: estimator_for(stages, runtime, StageFacts(store)), jobs, before=import_tracking
    )
    registering = Registering(plan, store, invocation.overrides, progress.say)
    spent = partial(ledger.spent, store.answers, experiment.name)
    with (
        disk_errors(store.root),
        store.locks.run(f"experiment {experiment.name}", plan.stages) as name,
        llms_on_demand(progress, are_elsewhere=runtime.executor == "ray") as llm,
        # Ends after the workers: at Ctrl-C, they await what they have asked, and this sends the answers.
        CountedHold(store.ledger.held) as asking,
        _executor(plan, store, runtime, jobs, progress) as workers,
    ):
        runner = Runner(store, workers, runtime, progress, llm, experiment.name, monitor, asking)
        told = telling(store, name, experiment.name, monitor, spent)
        with told, progress.watching(monitor), _live_tracking(invocation, plan, store, monitor, progress):
            # No score of this run exists before its test sets have been read.
            report = runner.run(
                plan,
                matching(plan, force),
                also=registering.unread,
                once_read=lambda: registering.registered,
            )
        _remember_addresses(store, plan, progress)
        progress.say(_summary(plan, report))
        if report.is_data_faulty:
            progress.say("invalid data: nothing was generated or trained, in any row")
            raise UserError(*dict.fromkeys(line for _, lines in report.failed.values() for line in lines))
        progress.say("collecting results and checking training data")
        registering.mark_scored()
        result = collect_whole(plan, runner, report, invocation.overrides)
        result = result.model_copy(update={"registration": registering.registered})
    return Computed(report, result, Artifacts(store, progress.say), folder)


def record(computed: Computed, progress: RunProgress) -> Recorded:
    """Track the results, then write the report and the blank sheets of audits.

    A report that is current stays as it is. Tracking comes first, so that `synthbench report` can repeat a
    report that failed.
    """
    result, folder = computed.result, computed.folder
    # The page and the tracker show settings, which may hold passwords.
    shown = redacted(result)
    inputs = report_inputs(shown)
    files = current_report(folder, inputs)
    is_current = files is not None
    if files is None:
        progress.say("making tables, figures and the page")
        files = {}
        try:
            files.update(report_files(shown))
        except Exception:
            _track(shown, files, progress)
            raise
    progress.say("tracking in MLflow")
    tracked, errors = _track(shown, files, progress)
    edited = {} if is_current else place_report(files, folder, inputs)
    unjudged = (audit for audit in result.audits if audit.audit is None)
    sheets = tuple(deliver_sheet(audit, computed.artifacts, folder) for audit in unjudged)
    return Recorded(tracked, errors, edited, sheets)


def _live_tracking(
    invocation: Invocation, plan: Plan, store: Store, monitor: RunMonitor, progress: RunProgress
) -> AbstractContextManager[None]:
    """Return a context that sends training curves and scores to MLflow until it ends."""
    name, overrides = invocation.experiment.name, invocation.overrides
    names = LiveNames(name, " ".join((name, *overrides)), request(invocation.experiment, overrides))

    def so_far() -> Iterable[tuple[RunResult, bool]]:
        missing = monitor.missing
        # If nothing is missing, nothing is computed and the final result comes at once.
        return runs_so_far(plan, store, missing) if missing else ()

    return live_tracking(MlflowTracker(home()), names, so_far, progress.say)


def _executor(
    plan: Plan, store: Store, runtime: Runtime, jobs: int, progress: RunProgress
) -> AbstractContextManager[Executor]:
    """Open the executor of the stages; raises UserError if it can't run all of them."""
    known = StageFacts(store)
    if runtime.executor == "local":
        say = None if isinstance(progress, PlainProgress) else progress.say
        return executor(jobs, say, local_devices(plan.stages.values(), runtime, known, jobs))
    needs = partial(needs_of, known=known, runtime=runtime)
    if runtime.executor == "slurm":
        return slurm_arrays(runtime, plan.stages.values(), needs, store, home() / "slurm", jobs)
    # The root of a shared store is a cache that each machine has for itself.
    folder = store.root if store.shared is None else None
    return ray_cluster(runtime, plan.stages.values(), needs, folder, jobs, progress.say)


def _runtime(experiment: Experiment, jobs: int) -> Runtime:
    """Return the runtime, its cores divided among the jobs unless it sets threads or runs on a cluster."""
    if experiment.runtime.threads is not None or experiment.runtime.executor != "local":
        return experiment.runtime
    return experiment.runtime.model_copy(update={"threads": threads_each(jobs)})


def _remember_addresses(store: Store, plan: Plan, progress: RunProgress) -> None:
    name = plan.experiment.name
    try:
        store.addresses.remember(name, plan.addresses)
    except DamagedFileError as damage:
        progress.say(f"the record of what {name} uses {damage}; writing it anew")
        store.addresses.forget(name)
        store.addresses.remember(name, plan.addresses)


def _summary(plan: Plan, report: RunReport) -> str:
    failed = {"failed": len(report.failed), "left out": len(report.skipped)}
    pending = {"pending": len(report.pending), "held up": len(report.held_up)}
    unfinished = {**(failed if report.failed else {}), **(pending if report.pending else {})}
    reused = len(plan.stages) - len(report.executed) - sum(unfinished.values())
    more = "".join(f", {number} {what}" for what, number in unfinished.items())
    return f"{len(report.executed)} stages executed, {reused} reused{more}"


def _track(
    result: ExperimentResult, files: Mapping[str, bytes], progress: RunProgress
) -> tuple[str, tuple[str, ...]]:
    """Track a result and its report files in MLflow, and the result in Trackio if that is set.

    Returns the location in MLflow and no errors; if MLflow or Trackio fails, "" and the errors.
    """
    with tempfile.TemporaryDirectory() as name:
        for file, content in files.items():
            (Path(name) / file).write_bytes(content)
        try:
            tracked = MlflowTracker(home(), progress.say).log(result, Path(name))
        except UserError as error:
            return "", error.messages
    try:
        if is_wanted():
            copy_to_trackio(result, home())
    except UserError as error:
        return "", error.messages
    return tracked, ()


def collect_whole(
    plan: Plan, runner: Runner, report: RunReport, overrides: tuple[str, ...] = ()
) -> ExperimentResult:
    """Return a finished plan's results; stages with a damaged artifact run again and are added to `report`.

    Raises UserError if the new artifact is damaged, too.
    """
    repaired: set[str] = set()
    while True:
        artifacts = Artifacts(runner.store, runner.progress.say)
        try:
            return collect(plan, artifacts, report.failure_lines, overrides, report.pending_lines)
        except ArtifactDamagedError as damage:
            stage = plan.stages[damage.identity]
            if damage.identity in repaired:
                message = f"{stage}: damaged again as soon as it was computed ({damage})"
                raise UserError(f"{message}; is the disk of {runner.store} failing?") from damage
            repaired.add(damage.identity)
            report.add(runner.compute_again(stage, damage))


@contextmanager
def llms_on_demand(
    progress: Progress, *, are_elsewhere: bool = False
) -> Iterator[Callable[[NamedLLM], ChatModel]]:
    """Yield a function that returns an LLM's address; the generated world's LLMs are started if needed.

    LLMs of the generated world with equal settings share a server. Servers of local models have no address
    yet: they start when a stage first asks them, on a cluster if `are_elsewhere`. The function raises
    UserError if a server does not start.
    """
    with ExitStack() as stack:
        running: dict[str, tuple[ChatModel, Callable[[], bool]]] = {}
        door = stack.enter_context(servers(home() / "servers", are_elsewhere=are_elsewhere))

        def address(llm: NamedLLM) -> ChatModel:
            settings = llm.settings
            if isinstance(settings, ServedLLM):
                return replace(settings.address(), door=door)
            if not isinstance(settings, WorldLLM):
                return settings.address()
            key = settings.server().model_dump_json()
            if key not in running or not running[key][1]():
                running[key] = _start(settings, stack)
                name = settings.endpoint if llm.name == SHORT_FORM else llm.name
                progress.say(f"started the LLM '{name}' at {running[key][0].base_url}")
            return running[key][0]

        yield address


def _start(settings: WorldLLM, servers: ExitStack) -> tuple[ChatModel, Callable[[], bool]]:
    server = servers.enter_context(world().running_llm(settings.server()))
    found = ChatModel(name=settings.endpoint, base_url=server.base_url, model=server.model)
    return found, server.is_running
