"""Export a trained model as a folder that sentence-transformers loads, with card, results and lineage."""

import json
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from synthbench.base.errors import UserError
from synthbench.config.documents import flatten
from synthbench.exporting import facts
from synthbench.exporting.cards import Statements, card, common_facts, write_texts
from synthbench.exporting.evaluation_results import evaluation_results, write_files
from synthbench.exporting.subject import Subject, stored
from synthbench.models.artifact import CHECKPOINT_FOLDER, is_trained, model_kind, runs_code
from synthbench.models.facts import described, facts_in
from synthbench.models.interfaces import ModelKind
from synthbench.plugins.model_contracts import Trainer
from synthbench.reporting.model.seen_notes import seen_sentences
from synthbench.reporting.model.what_varies import what_varies
from synthbench.training.settings import TrainingSettings

if TYPE_CHECKING:
    from huggingface_hub import EvalResult

TASK_TYPES = {"sts": "semantic-similarity", "reranking": "reranking", "pairs": "binary-classification"}
"""Evaluator -> the hub's name for the type of its task."""
UNKNOWN = "unknown"


def write_model(subject: Subject, statements: Statements, folder: Path) -> None:
    """Write the run's model, card, scores, experiment file and lineage into the existing, empty `folder`.

    Raises UserError if the run trained no model, if the store's copy is gone or damaged, if a part of the
    data is damaged, or if a file would reveal private data.
    """
    artifact = _artifact(subject)
    shutil.copytree(artifact / CHECKPOINT_FOLDER, folder, dirs_exist_ok=True)
    parts = tuple(facts.parts(subject))
    scores = tuple(facts.scores(subject))
    write_files(folder, evaluation_results(subject))
    write_texts(_card(subject, statements, artifact, parts, scores), subject, parts, folder)


def _artifact(subject: Subject) -> Path:
    if not subject.run.model_folder:
        raise UserError(f"'{subject.title}' trains no model; `synthbench export dataset` writes its data")
    artifact = stored(subject, subject.run.model_folder, "the model")
    if not is_trained(artifact):
        base = subject.run.parameters.get("train.base.model") or "no model at all"
        raise UserError(
            f"'{subject.title}' was not trained: its model is {base}, as it is; nothing to export"
        )
    return artifact


def _card(
    subject: Subject,
    statements: Statements,
    artifact: Path,
    parts: Sequence[facts.ExportedPart],
    scores: Sequence[facts.Score],
) -> str:
    trained_on = [part for part in parts if part.summary.trained_on]
    trainer = subject.config.trainer
    assert trainer is not None, "a model was trained"
    head = _head(subject, statements, artifact, trained_on, scores)
    content = {
        "name": f"{subject.result.experiment}: {subject.row.label}",
        "run": subject.run,
        "encoder": _encoder(artifact),
        "needs_code": runs_code(artifact),
        "shape": _shape(artifact),
        "bases": list(_bases(subject)),
        "starts_from": subject.config.starts_from,
        "parts": trained_on,
        "others": [part for part in parts if not part.summary.trained_on],
        "num_records": sum(part.splits.get("train", 0) for part in trained_on),
        "costs": facts.costs_text(facts.costs_of(parts)),
        "scores": scores,
        "seen": tuple(
            seen_sentences(
                (one for one in subject.result.seen if subject.row.label in one.rows), {subject.row.label}
            )
        ),
        "varies": tuple(what_varies(subject.result, {subject.row: subject.runs}, "the second interval")),
        "overlaps": subject.run.overlaps,
        "sources": list(facts.source_texts(subject)),
        "trainer": subject.config.trainer_name,
        "losses": _losses(subject),
        "settings": _settings(trainer),
        "selection": subject.config.selection,
        "has_dev": any("dev" in part.splits for part in trained_on),
        **common_facts(subject, statements, parts),
    }
    return card("model_card.md.jinja", head, content)


def _head(
    subject: Subject,
    statements: Statements,
    artifact: Path,
    parts: Sequence[facts.ExportedPart],
    scores: Sequence[facts.Score],
) -> str:
    from huggingface_hub import ModelCardData

    encoder = _encoder(artifact)
    size = sum(part.splits.get("train", 0) for part in parts)
    hub_bases = [name for name, version in subject.run.revisions if facts.is_on_hub(name, version)]
    data = ModelCardData(
        language=statements.language or facts.language(subject),
        license=statements.license or UNKNOWN,
        library_name="sentence-transformers",
        pipeline_tag=_PIPELINES.get(encoder, "feature-extraction"),
        tags=[
            "sentence-transformers",
            *_TAGS[encoder],
            f"dataset_size:{size}",
            *(f"loss:{loss}" for loss in _losses(subject)),
            "synthbench",
            *(["synthetic"] if any(part.summary.method for part in parts) else []),
        ],
        base_model=hub_bases[0] if hub_bases else None,
        datasets=facts.hub_datasets(subject) or None,
        model_name=f"{subject.result.experiment} {subject.row.label}",
        eval_results=list(_eval_results(subject, scores)) or None,
    )
    return str(data.to_yaml())


_TAGS = {
    "": ("cross-encoder", "reranker"),
    "dense": ("sentence-similarity", "feature-extraction", "dense"),
    "sparse": ("sparse-encoder", "sparse", "splade"),
    "late-interaction": ("multi-vector", "colbert", "late-interaction"),
}
_PIPELINES = {"": "text-ranking", "dense": "sentence-similarity"}
"""Kind of encoder ("": cross-encoder) -> the hub's pipeline tag, as in sentence-transformers' cards."""


def _encoder(artifact: Path) -> str:
    """Return the trained encoder's kind, such as "dense"; "" for a cross-encoder."""
    if model_kind(artifact) is not ModelKind.ENCODER:
        return ""
    facts = facts_in(artifact / CHECKPOINT_FOLDER)
    return "dense" if facts is None else facts.encoder


def _losses(subject: Subject) -> tuple[str, ...]:
    """Return the names of the loss classes; () for trainers of other packages."""
    trainer = subject.config.trainer
    return trainer.losses if isinstance(trainer, TrainingSettings) else ()


def _eval_results(subject: Subject, scores: Sequence[facts.Score]) -> "Iterator[EvalResult]":
    """Yield the main scores, not x 100, in the format of the hub's model-index."""
    from huggingface_hub import EvalResult

    for score in scores:
        yield EvalResult(
            task_type=TASK_TYPES.get(score.evaluator, "other"),
            dataset_type=facts.hub_test_set(subject, score) or score.task,
            dataset_name=score.task,
            dataset_split=score.split,
            metric_type=score.name,
            metric_name=score.metric,
            metric_value=round(score.value / 100, 6),
        )


def _bases(subject: Subject) -> Iterator[tuple[str, str, bool]]:
    """Yield each base model of the training: name, commit or content hash, whether it is on the hub.

    The name of a local folder is the last part of its path.
    """
    for name, version in subject.run.revisions:
        yield (
            Path(name).name if name.startswith(("/", "~", ".")) else name,
            version,
            facts.is_on_hub(name, version),
        )


def _shape(folder: Path) -> dict[str, Any]:
    """Return the model card's fields that come from the model's files.

    They are metadata, modules, prompts and similarity function.
    """
    from synthbench.base.user_files import read_json_object

    checkpoint = folder / CHECKPOINT_FOLDER
    settings = read_json_object(checkpoint / "config_sentence_transformers.json")
    modules = json.loads((checkpoint / "modules.json").read_text(encoding="utf-8"))
    prompts = {name: text for name, text in (settings.get("prompts") or {}).items() if text}
    facts = facts_in(checkpoint)
    return {
        "facts": () if facts is None else tuple(described(facts, dtype=facts.dtype or "fp32")),
        "modules": [module["type"].rpartition(".")[2] for module in modules],
        "prompts": prompts,
        "default_prompt": settings.get("default_prompt_name"),
        "similarity": settings.get("similarity_fn_name"),
    }


def _settings(trainer: Trainer) -> dict[str, Any]:
    """Return dotted names and values of the settings, without those that are None or empty."""
    settings = flatten(trainer.model_dump(mode="json"))
    return {name: value for name, value in settings if value not in (None, [], {})}
