"""Record unfinished runs of an experiment in MLflow; the final result replaces them."""

import hashlib
import socket
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from synthbench.reporting.results import RunResult
from synthbench.tracking.mlflow_runs import KIND_TAG, MAX_RUNS, PARENT_TAG, REQUEST_TAG, log_points
from synthbench.tracking.payload import legal_texts, live_points, run_name

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Run

PARENT, CHILD = "live", "live run"
HOME_TAG = "synthbench.home"


@dataclass
class LiveRuns:
    """The MLflow runs of an unfinished experiment: a parent, and a child for each run (row and seed).

    A child has its run's curve and scores. `home` is the results' home folder. The runs of a killed command
    stay until the same command runs again.
    """

    client: "MlflowClient"
    experiment_id: str
    names: "LiveNames"
    home: Path
    _parent: str = ""
    _children: dict[str, str] = field(default_factory=dict)
    _logged: dict[str, set[tuple[str, int]]] = field(default_factory=dict)
    _ended: set[str] = field(default_factory=set)

    def update(self, so_far: Iterable[tuple[RunResult, bool]]) -> None:
        """Log new points, and end the runs that are finished."""
        for run, is_finished in so_far:
            if run.identity in self._ended:
                continue
            logged = self._logged.setdefault(run.identity, set())
            new = [point for point in live_points(run) if (point.name, point.step) not in logged]
            if new:
                log_points(self.client, self._child(run), new)
                logged.update((point.name, point.step) for point in new)
            if is_finished:
                self.client.set_terminated(self._child(run))
                self._ended.add(run.identity)

    def end(self) -> None:
        """Mark the parent and unfinished children as killed."""
        unfinished = [run_id for name, run_id in self._children.items() if name not in self._ended]
        for run_id in [*unfinished, *filter(None, [self._parent])]:
            self.client.set_terminated(run_id, "KILLED")

    def _child(self, run: RunResult) -> str:
        if run.identity not in self._children:
            names = {"variant": run.variant, **run.axes, "seed": str(run.seed)}
            tags = {PARENT_TAG: self._parent_id(), **legal_texts(names)}
            self._children[run.identity] = self._create(run_name(run), CHILD, tags)
        return self._children[run.identity]

    def _parent_id(self) -> str:
        if not self._parent:
            delete_live_runs(self.client, self.experiment_id, self.names.request, self._home)
            self._parent = self._create(f"{self.names.title} (being computed)", PARENT, {})
        return self._parent

    def _create(self, name: str, kind: str, tags: dict[str, str]) -> str:
        all_tags = {KIND_TAG: kind, REQUEST_TAG: self.names.request, HOME_TAG: self._home, **tags}
        return str(self.client.create_run(self.experiment_id, tags=all_tags, run_name=name).info.run_id)

    @property
    def _home(self) -> str:
        """A hash of machine name and home folder, which keeps both private."""
        return hashlib.sha256(f"{socket.gethostname()}:{self.home}".encode()).hexdigest()[:16]


def live_parents(client: "MlflowClient", experiment_ids: Sequence[str]) -> list["Run"]:
    """Return the live parent runs, including those of killed commands, newest first."""
    if not experiment_ids:
        return []
    return list(client.search_runs(list(experiment_ids), f"tags.`{KIND_TAG}` = '{PARENT}'"))


def delete_live_runs(client: "MlflowClient", experiment_id: str, request: str, home: str = "") -> None:
    """Delete the live runs of a request; `home`: a home folder's hash, "" for all home folders."""
    for kind in (CHILD, PARENT):
        same = f"tags.`{KIND_TAG}` = '{kind}' and tags.`{REQUEST_TAG}` = '{request}'"
        same += f" and tags.`{HOME_TAG}` = '{home}'" if home else ""
        for run in client.search_runs([experiment_id], same, max_results=MAX_RUNS):
            client.delete_run(run.info.run_id)


@dataclass(frozen=True)
class LiveNames:
    """The names of live runs: MLflow experiment, title, and `request`, the hash of file and overrides."""

    experiment: str
    title: str
    request: str
