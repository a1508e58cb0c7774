"""Record the models and training data of MLflow runs as references to the store; nothing is copied."""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

from synthbench.base.patterns import linear_pattern
from synthbench.reporting.results import DatasetSummary, RunResult
from synthbench.tracking.payload import NAME_LENGTH

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import DatasetInput

MODEL_TAG = "synthbench.model"
DIGEST_LENGTH = 36
MODELS_MOST = 100
_NOT_IN_NAMES = linear_pattern(r"[/:.%\"']")


def log_datasets(client: "MlflowClient", run_id: str, run: RunResult) -> None:
    """Record the parts of the training data, each with content hash and folder in the store."""
    if run.datasets:
        client.log_inputs(run_id, [_dataset_input(dataset) for dataset in run.datasets])


def log_model(
    client: "MlflowClient", ids: tuple[str, str], name: str, run: RunResult, parameters: Mapping[str, str]
) -> str:
    """Record the trained model, which stays in the store; return its id, "" if there is none.

    `ids`: the experiment's and the run's.
    """
    from mlflow.entities import LoggedModelOutput
    from mlflow.utils.mlflow_tags import MLFLOW_MODEL_IS_EXTERNAL

    if not run.model_folder:
        return ""
    experiment_id, run_id = ids
    model = client.create_logged_model(
        experiment_id,
        # MLflow forbids these characters in a model's name.
        name=_NOT_IN_NAMES.sub("_", name),
        source_run_id=run_id,
        tags={MODEL_TAG: run.model_folder, MLFLOW_MODEL_IS_EXTERNAL: "true"},
        params=dict(parameters),
        model_type=parameters.get("trainer"),
    )
    client.finalize_logged_model(model.model_id, "READY")
    client.log_outputs(run_id, [LoggedModelOutput(model.model_id, run.num_steps)])
    return str(model.model_id)


def delete_run(client: "MlflowClient", experiment_id: str, run_id: str) -> None:
    """Delete a run and its recorded models."""
    models = client.search_logged_models(
        [experiment_id], f"source_run_id = '{run_id}'", max_results=MODELS_MOST
    )
    for model in models:
        client.delete_logged_model(model.model_id)
    client.delete_run(run_id)


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
        [InputTag("mlflow.data.context", "training" if dataset.trained_on else "not trained on")],
    )
