"""Write a result as MLflow runs, and complete those that a killed process left."""

import hashlib
import json
import math
import shutil
import sqlite3
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING

from synthbench.base.durability import DamagedFileError, read_sealed
from synthbench.reporting.model import aggregate
from synthbench.reporting.results import ExperimentResult, RunResult
from synthbench.stages.evaluation import read_items
from synthbench.tracking.mlflow_references import MODEL_TAG, delete_run, log_datasets, log_model
from synthbench.tracking.payload import (
    Columns,
    MetricPoint,
    Settings,
    columns_of,
    content_digest,
    experiment_digest,
    experiment_points,
    experiment_run_name,
    experiment_tags,
    legal_name,
    legal_texts,
    row_name,
    run_digest,
    run_name,
    run_points,
    samples_of,
    score_points,
    settings_of,
)
from synthbench.tracking.views import (
    ORDER_TAG,
    ROWS,
    SEEDS,
    View,
    artifacts_address,
    runs_address,
    view_key,
)

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Run

RESULT_FILE = "result.json"
SOURCE_FILE = "experiment.yaml"
MARKDOWN_FILE, PAGE = "table.md", "report.html"
KIND_TAG = "synthbench.kind"
EXPERIMENT_TAG = "synthbench.experiment"
IDENTITY_TAG = "synthbench.identity"
REQUEST_TAG = "synthbench.request"
DIGEST_TAG = "synthbench.digest"
CONTENT_TAG = "synthbench.content"
"""Tag with a hash of the whole result, including computing time and environment, unlike the digests."""
INCOMPLETE_TAG = "synthbench.incomplete"
"""Tag of a parent run whose result has failed or pending stages; the request's next result replaces it."""
PARENT_TAG = "mlflow.parentRunId"
LOGGED_TAG = "synthbench.logged"
MAX_RUNS = 50_000
# MLflow accepts 1,000 entities per request, at most 100 of them parameters.
METRICS_PER_BATCH = 900
PARAMETERS_PER_BATCH = 100
# Raise it when the same result is recorded differently: earlier records are then replaced.
LAYOUT = 4
_TAGS_OF_NEWEST = """
SELECT key, value FROM tags WHERE run_uuid = (
    SELECT runs.run_uuid FROM tags JOIN runs USING (run_uuid) JOIN experiments USING (experiment_id)
    WHERE tags.key = ? AND runs.status = 'FINISHED'
    AND runs.lifecycle_stage = 'active' AND experiments.lifecycle_stage = 'active'
    ORDER BY tags.value DESC LIMIT 1
)
"""


@dataclass(frozen=True)
class RunWriter:
    """Writes `result`, already without secrets, into one MLflow experiment.

    The parent run has a child for each row, with means over seeds, and a row's run has a child for each seed.
    """

    client: "MlflowClient"
    experiment_id: str
    result: ExperimentResult

    @cached_property
    def settings(self) -> Settings:
        """The recorded settings."""
        return settings_of(self.result)

    @cached_property
    def columns(self) -> Columns:
        """The recorded columns of the result's table, as `columns_of` returns them."""
        return columns_of(self.result)

    def finished(self, report_folder: Path) -> str:
        """Return the id of this result's finished parent run, now marked as logged last; "" if there is none.

        If only computing time or environment differ from the recorded result, the run gets the new result and
        report.
        """
        for run in self._of(self.result.identity, "experiment"):
            if _is_finished(run) and run.data.tags.get(DIGEST_TAG) == self._digest:
                if run.data.tags.get(CONTENT_TAG) != self._content:
                    self._log_parent_artifacts(run.info.run_id, report_folder)
                    self.client.set_tag(run.info.run_id, CONTENT_TAG, self._content)
                self.client.set_tag(run.info.run_id, LOGGED_TAG, _now())
                return str(run.info.run_id)
        return ""

    def write(self, report_folder: Path) -> str:
        """Write the parent, row and seed runs; return the id of the parent, which is finished last.

        Finished seed runs of earlier recordings are reused; the other runs of these recordings are deleted.
        """
        identities = (self.result.identity, *self._replaced())
        former = [
            run for each in identities for kind in ("experiment", "row") for run in self._of(each, kind)
        ]
        former_children = [run for each in identities for run in self._of(each, "run")]
        table_file = report_folder / MARKDOWN_FILE
        table = table_file.read_text(encoding="utf-8") if table_file.is_file() else ""
        digests = {DIGEST_TAG: self._digest, CONTENT_TAG: self._content}
        tags = {REQUEST_TAG: self.result.request, **digests, LOGGED_TAG: _now()}
        if self.result.failures or self.result.pending:
            tags[INCOMPLETE_TAG] = "true"
        parent_id, _ = self._create(
            experiment_run_name(self.result),
            "experiment",
            {IDENTITY_TAG: self.result.identity, **tags, **experiment_tags(self.result, table)},
        )
        self._write_rows(parent_id, former_children)
        shared = {**legal_texts(self.settings.shared), "num_runs": str(len(self.result.runs))}
        log_points(self.client, parent_id, experiment_points(self.result), shared)
        self._log_parent_artifacts(parent_id, report_folder)
        for view in self._views():
            self.client.set_experiment_tag(self.experiment_id, *view.tag)
        for run in former:
            self.client.delete_run(run.info.run_id)
        self.client.set_terminated(parent_id)
        return parent_id

    @cached_property
    def _digest(self) -> str:
        return result_digest(self.result)

    @cached_property
    def _content(self) -> str:
        return content_digest(self.result)

    def _write_rows(self, parent_id: str, former_children: Sequence["Run"]) -> None:
        reusable = self._reusable(former_children)
        for number, runs in enumerate(aggregate.rows(self.result).values()):
            order = {ORDER_TAG: f"{number:04d}"}
            tags = {PARENT_TAG: parent_id, **order, **legal_texts(self.settings.tags(runs[0]))}
            seconds = fmean(run.seconds for run in runs)
            row_id, ended = self._create(row_name(runs[0]), "row", tags, seconds)
            for run in runs:
                where = {PARENT_TAG: row_id, EXPERIMENT_TAG: self.result.identity, **order}
                child_id = reusable.get(self._run_digest(run))
                if child_id is None:
                    self._write_child(run, where)
                    continue
                for tag, value in where.items():
                    self.client.set_tag(child_id, tag, value)
            points = [*score_points(samples_of(self.columns, runs)), MetricPoint("num_seeds", len(runs))]
            log_points(self.client, row_id, points, legal_texts(self.settings.row(runs[0])))
            self.client.set_terminated(row_id, end_time=ended)

    def _reusable(self, former_children: Sequence["Run"]) -> dict[str, str]:
        """Return digest -> id of the finished children that this result reuses; delete the others."""
        digests = {self._run_digest(run) for run in self.result.runs}
        reusable: dict[str, str] = {}
        for child in former_children:
            digest = child.data.tags.get(DIGEST_TAG, "")
            if _is_finished(child) and digest in digests and digest not in reusable:
                reusable[digest] = child.info.run_id
            else:
                delete_run(self.client, self.experiment_id, child.info.run_id)
        return reusable

    def _run_digest(self, run: RunResult) -> str:
        """Return a hash of all that is recorded for a run, also setting names, which depend on other runs."""
        recorded = json.dumps([run_digest(run), self.settings.run(run)], sort_keys=True)
        return f"{LAYOUT}-{hashlib.sha256(recorded.encode()).hexdigest()}"

    def _write_child(self, run: RunResult, where: Mapping[str, str]) -> None:
        tags = {
            IDENTITY_TAG: run.identity,
            DIGEST_TAG: self._run_digest(run),
            **where,
            MODEL_TAG: run.model_folder,
            "seed": str(run.seed),
            **legal_texts(self.settings.tags(run)),
        }
        parameters = legal_texts(self.settings.run(run))
        run_id, ended = self._create(run_name(run), "run", tags, run.seconds)
        model_id = log_model(self.client, (self.experiment_id, run_id), run_name(run), run, parameters)
        scores = score_points(samples_of(self.columns, (run,)), model_id)
        log_points(self.client, run_id, [*scores, *run_points(run)], parameters)
        log_datasets(self.client, run_id, run)
        self._log_items(run_id, run)
        self.client.set_terminated(run_id, end_time=ended)

    def _views(self) -> Iterable[View]:
        """Yield the saved views of the rows' means and of all seeds."""
        scores = [legal_name("score", name) for name in self.columns]
        spreads = [legal_name("sd", name) for name in self.columns]
        coordinates = [legal_name(name) for name in ("variant", *self.settings.axes.values())]
        settings = dict.fromkeys([*coordinates, *(legal_name(name) for name in self.settings.varying)])
        details = dict.fromkeys(point.name for run in self.result.runs for point in run_points(run))
        same = {EXPERIMENT_TAG: self.result.identity}
        title = experiment_run_name(self.result)
        rows = {KIND_TAG: "row", **same}
        yield View(ROWS, title, rows, coordinates, [*settings], scores, scores, spreads)
        seeds = {KIND_TAG: "run", **same}
        yield View(SEEDS, title, seeds, coordinates, [*settings, "seed"], scores, scores, [*details])

    def _of(self, identity: str, kind: str) -> list["Run"]:
        return _runs_of(self.client, self.experiment_id, identity, kind)

    def _replaced(self) -> list[str]:
        """Return the identities of incomplete results of the same request, which this result replaces."""
        incomplete = self.client.search_runs(
            [self.experiment_id], f"tags.`{INCOMPLETE_TAG}` = 'true'", max_results=MAX_RUNS
        )
        same = (run.data.tags for run in incomplete if run.data.tags.get(REQUEST_TAG) == self.result.request)
        return [tags[EXPERIMENT_TAG] for tags in same if tags[EXPERIMENT_TAG] != self.result.identity]

    def _create(self, name: str, kind: str, tags: Mapping[str, str], seconds: float = 0.0) -> tuple[str, int]:
        """Create a run that took `seconds` and ended now; return its id and end time (ms since 1970)."""
        all_tags = {KIND_TAG: kind, EXPERIMENT_TAG: self.result.identity, **tags}
        ended = time.time_ns() // 1_000_000
        start = ended - round(1000 * seconds) if math.isfinite(seconds) else ended
        run = self.client.create_run(self.experiment_id, start, all_tags, name)
        return str(run.info.run_id), ended

    def _log_items(self, run_id: str, run: RunResult) -> None:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            for scores in run.scores:
                source = Path(scores.items_file)
                if scores.items_file and source.is_file():
                    target = (
                        folder / legal_name(scores.evaluator) / f"{legal_name(scores.task)}{source.suffix}"
                    )
                    target.parent.mkdir(parents=True, exist_ok=True)
                    _copy_items(source, scores.sentences_file, target)
            if any(folder.iterdir()):
                self.client.log_artifacts(run_id, name, "items")

    def _log_parent_artifacts(self, run_id: str, report_folder: Path) -> None:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            (folder / RESULT_FILE).write_text(self.result.model_dump_json(indent=1), encoding="utf-8")
            (folder / SOURCE_FILE).write_text(self.result.source, encoding="utf-8")
            # Subfolders are reports of overridden runs, which have parent runs of their own.
            tables = [file for file in report_folder.glob("*") if file.is_file()]
            for file in tables:
                (folder / "report").mkdir(exist_ok=True)
                shutil.copyfile(file, folder / "report" / file.name)
            self.client.log_artifacts(run_id, name)


def _copy_items(source: Path, sentences: str, target: Path) -> None:
    """Copy per-item scores, with the ids of each item's sentences if they are known."""
    import pyarrow.parquet as pq

    known = None
    if sentences:
        # The file is a cache: without it, only the sentences are missing.
        with suppress(FileNotFoundError, DamagedFileError):
            known = read_sealed(Path(sentences))["value"]
    if known is None:
        shutil.copyfile(source, target)
    else:
        pq.write_table(read_items(source, known), target)


def log_points(
    client: "MlflowClient",
    run_id: str,
    points: Iterable[MetricPoint],
    parameters: Mapping[str, str] | None = None,
) -> None:
    """Log metrics and parameters, in as many requests as MLflow needs."""
    from mlflow.entities import Metric, Param

    now = int(time.time() * 1000)
    metrics = [Metric(point.name, point.value, now, point.step, point.model or None) for point in points]
    params = [Param(key, value) for key, value in (parameters or {}).items()]
    while metrics or params:
        client.log_batch(run_id, metrics[:METRICS_PER_BATCH], params[:PARAMETERS_PER_BATCH])
        metrics, params = metrics[METRICS_PER_BATCH:], params[PARAMETERS_PER_BATCH:]


def result_digest(result: ExperimentResult) -> str:
    """Return the id of a recorded result: the version of its runs' layout, and a hash of its content."""
    return f"{LAYOUT}-{experiment_digest(result)}"


def is_newest(database: Path, result: ExperimentResult) -> bool:
    """Return whether a SQLite database recorded this result last, so that recording would change nothing.

    Reads MLflow's tables directly, since loading MLflow takes seconds; False if they are not as expected.
    """
    try:
        with closing(sqlite3.connect(f"{database.as_uri()}?mode=ro", uri=True)) as connection:
            tags = dict(connection.execute(_TAGS_OF_NEWEST, (LOGGED_TAG,)).fetchall())
    except sqlite3.Error:
        return False
    return (tags.get(DIGEST_TAG), tags.get(CONTENT_TAG)) == (result_digest(result), content_digest(result))


def run_ids(client: "MlflowClient", experiment_id: str, result: ExperimentResult) -> dict[str, str]:
    """Return the ids of a result's finished MLflow runs: identity of the run -> id."""
    finished = (run for run in _runs_of(client, experiment_id, result.identity, "run") if _is_finished(run))
    return {run.data.tags[IDENTITY_TAG]: str(run.info.run_id) for run in finished}


def pages_of(client: "MlflowClient", parent: "Run") -> dict[str, str]:
    """Return the pages of a finished result: name -> path below the server's address."""
    experiment_id, title = parent.info.experiment_id, parent.info.run_name
    same = f"tags.`{KIND_TAG}` = 'row' and tags.`{EXPERIMENT_TAG}` = '{parent.data.tags[EXPERIMENT_TAG]}'"
    rows = client.search_runs(
        [experiment_id], same, max_results=MAX_RUNS, order_by=[f"tags.`{ORDER_TAG}` ASC"]
    )
    # Reports of earlier versions have no page.
    pages = [
        file.path
        for file in client.list_artifacts(parent.info.run_id, "report")
        if file.path == f"report/{PAGE}"
    ]
    report = {"report": artifacts_address(experiment_id, parent.info.run_id, *pages)}
    if not rows:  # recorded by an older version, without runs for rows
        return report
    keys = {name: view_key(name, title) for name in (ROWS, SEEDS)}
    return {
        ROWS: runs_address(experiment_id, keys[ROWS], mode="TABLE"),
        SEEDS: runs_address(experiment_id, keys[SEEDS]),
        # MLflow's own comparison of runs opens on the settings that come first in the alphabet.
        "comparison": runs_address(experiment_id, keys[ROWS]),
        **report,
    }


def _runs_of(client: "MlflowClient", experiment_id: str, identity: str, kind: str) -> list["Run"]:
    same = f"tags.`{KIND_TAG}` = '{kind}' and tags.`{EXPERIMENT_TAG}` = '{identity}'"
    return list(client.search_runs([experiment_id], same, max_results=MAX_RUNS))


def _now() -> str:
    """Return the time as text that sorts chronologically."""
    return f"{time.time_ns():020d}"


def _is_finished(run: "Run") -> bool:
    return bool(run.info.status == "FINISHED")
