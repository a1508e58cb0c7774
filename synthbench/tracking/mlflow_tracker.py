"""Track results in MLflow: one experiment per file, one parent run per result."""

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from synthbench.base.errors import UserError, did_you_mean, first_fault
from synthbench.base.listing import listed
from synthbench.engine.progress import PlainProgress
from synthbench.reporting.results import ExperimentResult
from synthbench.tracking.live import LiveNames, LiveRuns, delete_live_runs, live_parents
from synthbench.tracking.mlflow_access import foreseen_failures, quieten, reason_of, sqlite_uri
from synthbench.tracking.mlflow_runs import (
    KIND_TAG,
    LOGGED_TAG,
    REQUEST_TAG,
    RESULT_FILE,
    RunWriter,
    is_newest,
    pages_of,
    run_ids,
)
from synthbench.tracking.outbox import Outbox, read_entry
from synthbench.tracking.redaction import mask_password_of, redacted

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Experiment, Run

REFUSED = "INVALID_PARAMETER_VALUE"
"""MLflow's error code for invalid requests, where a retry can't help."""
LOCK_FILE = "tracking.lock"
LOCK_SECONDS = 600
NAMES_SHOWN = 5
NOTHING_LOST = "no result is lost: fix this and run the same command again"
WAITS = "no result is lost: it waits in {folder} for the next run, report or dashboard that reaches MLflow"
STAYS = "the result in {folder} can't be recorded: {reason}; run its experiment again, or delete the folder"


@dataclass(frozen=True)
class Addresses:
    """Where MLflow's UI shows a result: `pages` are name -> path below the server's address."""

    title: str
    pages: Mapping[str, str]


class MlflowTracker:
    """Tracks results at $MLFLOW_TRACKING_URI, else in `mlflow.db` and `mlartifacts` in the folder `home`.

    `say` gets a message for each waiting result that can't be recorded. Default: print to standard error.
    """

    def __init__(self, home: Path, say: Callable[[str], None] | None = None) -> None:
        self.home = home.resolve()
        self._say = PlainProgress().say if say is None else say
        self.own_database = self.home / "mlflow.db"
        self.own_uri = sqlite_uri(self.own_database)
        self.uri = os.environ.get("MLFLOW_TRACKING_URI") or self.own_uri
        self.artifacts = self.home / "mlartifacts"
        self._outbox = Outbox(self.home, self.uri)

    def check(self, experiment: str) -> None:
        """Raise UserError if the user's tracking server or database can't be reached.

        Call it before anything is computed. The database in the home folder needs no check.
        """
        if self._is_own:
            return
        with self._failures_in_one_line("nothing was computed; fix this or unset MLFLOW_TRACKING_URI"):
            self._client().get_experiment_by_name(experiment)

    def log(self, result: ExperimentResult, report_folder: Path) -> str:
        """Record a result, without secrets, and its report; return the address or command that shows it.

        Idempotent, also after a kill: a finished parent run of the same result stays; otherwise finished
        child runs are reused, incomplete ones logged again, and the earlier parent is replaced. Computing
        time and environment do not distinguish results. Raises UserError if MLflow can't be reached; a result
        for $MLFLOW_TRACKING_URI then waits in the outbox.
        """
        result = redacted(result)
        if self._is_own and is_newest(self.own_database, result):
            return self.location
        with self._failures_in_one_line(NOTHING_LOST), self._lock():
            own = None if self._is_own else self._outbox.add(result, report_folder)
        what_now = WAITS.format(folder=own) if own else NOTHING_LOST
        with self._failures_in_one_line(what_now), self._lock():
            self._set_up_database()
            client = self._client()
            self._record_waiting(client, but=own)
            page = self._record(client, result, report_folder)
            if own:
                self._outbox.remove(own)
            return f"{self.location}{page}" if self.is_web else self.location

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Hold the lock on MLflow for this process, and create our own database if it is missing.

        Raises UserError if MLflow can't be reached or fails in the block.
        """
        with self._failures_in_one_line(NOTHING_LOST), self._lock():
            self._set_up_database()
            yield

    @contextmanager
    def sole_computer(self, request: str) -> Iterator[bool]:
        """Yield whether this process alone computes the request in this home; hold the request's lock."""
        from filelock import FileLock, Timeout

        folder = self.home / "live"
        folder.mkdir(parents=True, exist_ok=True)
        lock = FileLock(folder / f"{request[:16]}.lock")
        try:
            lock.acquire(timeout=0)
        except Timeout:
            yield False
            return
        try:
            yield True
        finally:
            lock.release()

    def live_runs(self, names: LiveNames) -> LiveRuns:
        """Return a writer of a result's live runs; call this and its methods only within `writing`."""
        client = self._client()
        return LiveRuns(client, self._experiment_id(client, names.experiment), names, self.home)

    def load(self, experiment: str, request: str = "", before: int = 0) -> ExperimentResult:
        """Return the experiment's finished result that was logged last, optionally of one `request`.

        `before`: how many results to go back from it. Raises UserError if there is none, if it can't be read,
        or if MLflow can't be reached.
        """
        with self._failures_in_one_line("fix this and run the same command again"):
            client = self._client_with_all(experiment)
            finished = self._finished(client, experiment)
            fitting = [run for run in finished if request in ("", run.data.tags.get(REQUEST_TAG))]
            if not fitting:
                raise UserError(_no_such_result(experiment, [run.info.run_name for run in finished]))
            if before >= len(fitting):
                raise UserError(
                    f"'{experiment}' has {len(fitting)} tracked results, none {before} before the last"
                )
            return _read_result(client, fitting[before].info.run_id)

    def addresses(self, experiment: str = "") -> Addresses:
        """Return the addresses in MLflow's UI of the experiment's last logged result; "": of any experiment.

        Prefers a result without overrides; without a finished result, returns the address of the live run.
        Raises UserError if there is neither, or if MLflow can't be reached.
        """
        with self._failures_in_one_line("fix this and run the same command again"):
            client = self._client_with_all(experiment)
            try:
                finished = self._finished(client, experiment)
            except UserError:
                live = live_parents(client, [one.experiment_id for one in _known(client, experiment)])
                if not live:
                    raise
                return Addresses(
                    live[0].info.run_name, {"so far": _page(live[0].info.experiment_id, live[0].info.run_id)}
                )
            shown = next((run for run in finished if run.info.run_name == experiment), finished[0])
            return Addresses(shown.info.run_name, pages_of(client, shown))

    def run_ids(self, result: ExperimentResult) -> dict[str, str]:
        """Return the ids of a result's MLflow runs: identity of the run -> id.

        Raises UserError if MLflow can't be reached.
        """
        with self._failures_in_one_line("fix this and run the same command again"):
            client = self._client()
            experiment = client.get_experiment_by_name(result.experiment)
            return {} if experiment is None else run_ids(client, experiment.experiment_id, result)

    @property
    def location(self) -> str:
        """The server's address, or the command that shows the database."""
        return self._shown_uri.rstrip("/") if self.is_web else "synthbench dashboard"

    @property
    def is_web(self) -> bool:
        """Whether results go to a server, which has a UI of its own."""
        return urlsplit(self.uri).scheme in ("http", "https")

    @property
    def _is_own(self) -> bool:
        return self.uri == self.own_uri

    @property
    def _shown_uri(self) -> str:
        return mask_password_of(self.uri, self.uri)

    @contextmanager
    def _lock(self) -> Iterator[None]:
        """Let one process write at a time; else unfinished runs look as if a killed process had left them."""
        from filelock import FileLock

        self.home.mkdir(parents=True, exist_ok=True)
        with FileLock(self.home / LOCK_FILE, timeout=LOCK_SECONDS):
            yield

    def _set_up_database(self) -> None:
        """Create our own database if it is missing, under a temporary name until it is complete."""
        if not self._is_own or self.own_database.exists():
            return
        quieten()
        from mlflow.store.tracking.sqlalchemy_store import SqlAlchemyStore

        folder = self.home / "mlflow.unfinished"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        unfinished = folder / "mlflow.db"
        artifacts = self.artifacts.as_uri()
        store = SqlAlchemyStore(sqlite_uri(unfinished), artifacts)  # type: ignore[no-untyped-call]
        store.engine.dispose()
        unfinished.replace(self.own_database)
        folder.rmdir()

    def _client(self) -> "MlflowClient":
        quieten()
        from mlflow import MlflowClient

        return MlflowClient(self.uri, self.uri)

    def _client_with_all(self, experiment: str) -> "MlflowClient":
        """Return a client, after recording the results that wait in the outbox.

        Raises UserError if our own database is used and does not exist.
        """
        if self._is_own and not self.own_database.exists():
            raise UserError(f"no tracked results in {self._shown_uri}; run {_quoted(experiment)} first")
        client = self._client()
        if self._outbox.waiting():
            with self._lock():
                self._record_waiting(client)
        return client

    def _record_waiting(self, client: "MlflowClient", but: Path | None = None) -> None:
        """Record the results in the outbox, oldest first, except the folder `but`.

        Damaged and refused results stay in the outbox, with a message.
        """
        from mlflow.exceptions import MlflowException

        for folder in self._outbox.waiting():
            if folder == but:
                continue
            try:
                self._record(client, *read_entry(folder))
            except (ValueError, MlflowException) as error:
                if isinstance(error, MlflowException) and error.error_code != REFUSED:
                    raise
                reason = mask_password_of(self.uri, reason_of(error))
                self._say(STAYS.format(folder=folder, reason=reason))
                continue
            self._outbox.remove(folder)

    def _record(self, client: "MlflowClient", result: ExperimentResult, report_folder: Path) -> str:
        """Record a result unless it is recorded already; return its path below the server's address.

        Deletes the live runs of the result's request.
        """
        experiment_id = self._experiment_id(client, result.experiment)
        writer = RunWriter(client, experiment_id, result)
        run_id = writer.finished(report_folder) or writer.write(report_folder)
        delete_live_runs(client, experiment_id, result.request)
        return _page(experiment_id, run_id)

    def _finished(self, client: "MlflowClient", experiment: str) -> list["Run"]:
        """Return the finished parent runs of an experiment ("": of all), newest first; UserError if none."""
        found = _known(client, experiment)
        if not found:
            hint = did_you_mean(experiment, [one.name for one in _known(client, "")])
            of = f" of '{experiment}'" if experiment else ""
            raise UserError(f"no tracked results{of} in {self._shown_uri}{hint}")
        finished = client.search_runs(
            [one.experiment_id for one in found],
            f"tags.`{KIND_TAG}` = 'experiment' and attributes.status = 'FINISHED'",
            order_by=[f"tags.`{LOGGED_TAG}` DESC"],
        )
        if not finished:
            raise UserError(
                f"{_quoted(experiment)} has no finished result in {self._shown_uri}; run it first"
            )
        return list(finished)

    def _experiment_id(self, client: "MlflowClient", name: str) -> str:
        found = client.get_experiment_by_name(name)
        if found is None:
            is_served = self.is_web or urlsplit(self.uri).scheme == "databricks"
            location = None if is_served else self.artifacts.as_uri()
            # Otherwise the UI opens on its pages for prompts and traces.
            tags = {"mlflow.experimentKind": "custom_model_development"}
            return str(client.create_experiment(name, artifact_location=location, tags=tags))
        if found.lifecycle_stage == "deleted":
            client.restore_experiment(found.experiment_id)
        return str(found.experiment_id)

    @contextmanager
    def _failures_in_one_line(self, what_now: str) -> Iterator[None]:
        try:
            yield
        except foreseen_failures() as error:
            reason = mask_password_of(self.uri, reason_of(error))
            raise UserError(f"MLflow at {self._shown_uri} failed: {reason}; {what_now}") from error


def _known(client: "MlflowClient", experiment: str) -> list["Experiment"]:
    """Return the experiment with this name, [] if there is none; or all experiments for ""."""
    known = [one for one in client.search_experiments() if one.name != "Default"]
    found = [one for one in known if experiment in ("", one.name)]
    # A search returns at most a thousand experiments, which may be other people's.
    if not found and experiment and (one := client.get_experiment_by_name(experiment)):
        found = [one] if one.lifecycle_stage == "active" else []
    return found


def _page(experiment_id: str, run_id: str) -> str:
    return f"/#/experiments/{experiment_id}/runs/{run_id}"


def _quoted(experiment: str) -> str:
    return f"'{experiment}'" if experiment else "an experiment"


def _no_such_result(experiment: str, names: Sequence[str]) -> str:
    """Return the error message that lists existing results; `names` are the parent runs', newest first."""
    shown = listed((f"'{name}'" for name in dict.fromkeys(names)), NAMES_SHOWN)
    return (
        f"'{experiment}' has no tracked result of this file with these overrides; run it first. Tracked are, "
        f"newest first: {shown}; the tracked result with this name comes from another version of the file"
    )


def _read_result(client: "MlflowClient", run_id: str) -> ExperimentResult:
    from pydantic import ValidationError

    with tempfile.TemporaryDirectory() as folder:
        text = Path(client.download_artifacts(run_id, RESULT_FILE, folder)).read_text(encoding="utf-8")
    try:
        return ExperimentResult.model_validate_json(text)
    except ValidationError as error:
        fault = first_fault(error)
        raise UserError(f"{RESULT_FILE} of MLflow run {run_id} can't be read: {fault}; run again") from error
