"""Writes one result as MLflow runs, completing whatever a killed process left."""

import json
import shutil
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from synthbench.reporting.results import DatasetSummary, ExperimentResult, RunResult
from synthbench.tracking.payload import (
    NAME_LENGTH,
    Point,
    experiment_digest,
    experiment_points,
    experiment_run_name,
    experiment_tags,
    legal_name,
    run_digest,
    run_name,
    run_parameters,
    run_points,
)

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import DatasetInput, Run

RESULT_FILE = "result.json"
SOURCE_FILE = "experiment.yaml"
MARKDOWN_FILE = "table.md"
KIND_TAG = "synthbench.kind"
EXPERIMENT_TAG = "synthbench.experiment"
IDENTITY_TAG = "synthbench.identity"
REQUEST_TAG = "synthbench.request"
MODEL_TAG = "synthbench.model"
DIGEST_TAG = "synthbench.digest"
PARENT_TAG = "mlflow.parentRunId"
LOGGED_TAG = "synthbench.logged"
MAX_RUNS = 50_000
# MLflow takes 1,000 entities in a request, at most 100 of them parameters.
METRICS_PER_BATCH = 900
PARAMETERS_PER_BATCH = 100
DIGEST_LENGTH = 36


@dataclass(frozen=True)
class RunWriter:
    """Writes `result` into one MLflow experiment; the result holds no secrets any more."""

    client: "MlflowClient"
    experiment_id: str
    result: ExperimentResult

    def finished(self) -> str:
        """Return the id of the finished parent run of exactly this result, empty if there is none.

        It is marked as the one logged last, whatever else has been logged since it was written.
        """
        digest = experiment_digest(self.result)
        for run in self._known("experiment"):
            if _is_finished(run) and run.data.tags.get(DIGEST_TAG) == digest:
                self.client.set_tag(run.info.run_id, LOGGED_TAG, _now())
                return str(run.info.run_id)
        return ""

    def write(self, report_folder: Path) -> str:
        """Write parent and children and return the parent's id.

        The parent is marked as finished last of all, and only then counts.
        """
        former_parents = self._known("experiment")
        former_children = self._known("run")
        table_file = report_folder / MARKDOWN_FILE
        table = table_file.read_text(encoding="utf-8") if table_file.is_file() else ""
        parent_id = self._create(
            experiment_run_name(self.result),
            {
                KIND_TAG: "experiment",
                IDENTITY_TAG: self.result.identity,
                REQUEST_TAG: self.result.request,
                DIGEST_TAG: experiment_digest(self.result),
                LOGGED_TAG: _now(),
                **experiment_tags(self.result, table),
            },
        )
        self._write_children(parent_id, former_children)
        self._log_batches(parent_id, experiment_points(self.result), {"num_runs": str(len(self.result.runs))})
        self._log_parent_artifacts(parent_id, report_folder)
        for former in former_parents:
            self.client.delete_run(former.info.run_id)
        self.client.set_terminated(parent_id)
        return parent_id

    def _write_children(self, parent_id: str, former_children: Sequence["Run"]) -> None:
        reusable: dict[str, str] = {}
        digests = [run_digest(run) for run in self.result.runs]
        for child in former_children:
            digest = child.data.tags.get(DIGEST_TAG, "")
            if _is_finished(child) and digest in digests and digest not in reusable:
                reusable[digest] = child.info.run_id
                self.client.set_tag(child.info.run_id, PARENT_TAG, parent_id)
            else:
                self.client.delete_run(child.info.run_id)
        for run, digest in zip(self.result.runs, digests, strict=True):
            if digest not in reusable:
                self._write_child(run, digest, parent_id)

    def _write_child(self, run: RunResult, digest: str, parent_id: str) -> None:
        tags = {
            KIND_TAG: "run",
            IDENTITY_TAG: run.identity,
            DIGEST_TAG: digest,
            PARENT_TAG: parent_id,
            MODEL_TAG: run.model_folder,
        }
        run_id = self._create(run_name(run), tags)
        self._log_batches(run_id, run_points(run), run_parameters(run))
        if run.datasets:
            self.client.log_inputs(run_id, [_dataset_input(dataset) for dataset in run.datasets])
        self._log_items(run_id, run)
        self.client.set_terminated(run_id)

    def _known(self, kind: str) -> list["Run"]:
        return _runs_of(self.client, self.experiment_id, self.result, kind)

    def _create(self, name: str, tags: Mapping[str, str]) -> str:
        all_tags = {EXPERIMENT_TAG: self.result.identity, **tags}
        return str(self.client.create_run(self.experiment_id, tags=all_tags, run_name=name).info.run_id)

    def _log_batches(self, run_id: str, points: Sequence[Point], parameters: Mapping[str, str]) -> None:
        from mlflow.entities import Metric, Param

        now = int(time.time() * 1000)
        metrics = [Metric(point.name, point.value, now, point.step) for point in points]
        params = [Param(key, value) for key, value in parameters.items()]
        while metrics or params:
            self.client.log_batch(run_id, metrics[:METRICS_PER_BATCH], params[:PARAMETERS_PER_BATCH])
            metrics, params = metrics[METRICS_PER_BATCH:], params[PARAMETERS_PER_BATCH:]

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
                    shutil.copyfile(source, target)
            if any(folder.iterdir()):
                self.client.log_artifacts(run_id, name, "items")

    def _log_parent_artifacts(self, run_id: str, report_folder: Path) -> None:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            (folder / RESULT_FILE).write_text(self.result.model_dump_json(indent=1), encoding="utf-8")
            (folder / SOURCE_FILE).write_text(self.result.source, encoding="utf-8")
            # Reports of overridden runs stand in folders within; they belong to other parents.
            tables = [file for file in report_folder.glob("*") if file.is_file()]
            for file in tables:
                (folder / "report").mkdir(exist_ok=True)
                shutil.copyfile(file, folder / "report" / file.name)
            self.client.log_artifacts(run_id, name)


def run_ids(client: "MlflowClient", experiment_id: str, result: ExperimentResult) -> dict[str, str]:
    """Return the id of the finished MLflow run of each of a result's runs, by the run's identity."""
    finished = (run for run in _runs_of(client, experiment_id, result, "run") if _is_finished(run))
    return {run.data.tags[IDENTITY_TAG]: str(run.info.run_id) for run in finished}


def _runs_of(client: "MlflowClient", experiment_id: str, result: ExperimentResult, kind: str) -> list["Run"]:
    same = f"tags.`{KIND_TAG}` = '{kind}' and tags.`{EXPERIMENT_TAG}` = '{result.identity}'"
    return list(client.search_runs([experiment_id], same, max_results=MAX_RUNS))


def _now() -> str:
    """Return the time as text that sorts as times do."""
    return f"{time.time_ns():020d}"


def _is_finished(run: "Run") -> bool:
    return bool(run.info.status == "FINISHED")


def _dataset_input(dataset: DatasetSummary) -> "DatasetInput":
    from mlflow.entities import Dataset, DatasetInput, InputTag

    profile = dataset.model_dump(mode="json", exclude={"content_hash", "folder", "part"})
    return DatasetInput(
        Dataset(
            name=dataset.part[:NAME_LENGTH],
            digest=dataset.content_hash[:DIGEST_LENGTH],
            source_type="local",
            source=json.dumps({"uri": dataset.folder}),
            profile=json.dumps(profile, sort_keys=True),
        ),
        [InputTag("mlflow.data.context", "training")],
    )
