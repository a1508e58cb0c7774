"""Any model that a user may name, loaded as what it is."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from synthbench.models import artifact, reference
from synthbench.models.interfaces import Encoder, ModelKind, PairScorer
from synthbench.models.pretrained import Pretrained
from synthbench.user_files import read_json_object

if TYPE_CHECKING:
    from synthbench.runtime import Progress, Runtime


def open_model(
    model: str, revision: str | None, runtime: "Runtime", progress: "Progress | None" = None
) -> Encoder | PairScorer:
    """Load a reference (see `reference.resolve`) or a model artifact, ready to encode or score.

    A checkpoint is a pair scorer if it was saved as a CrossEncoder, or has a classification head and was not
    saved by sentence-transformers at all; everything else is an encoder.

    Raises UserError if there is no such model, or it classifies instead of giving one score.
    """
    if artifact.is_artifact(Path(model)):
        return artifact.load(Path(model), runtime, progress)
    kind = checkpoint_kind(Path(reference.resolve(model, revision)))
    return artifact.load_pretrained(Pretrained(model=model, revision=revision), kind, runtime, progress)


def fingerprint(model: str, revision: str | None) -> dict[str, str]:
    """Return {model: content hash or commit} of a reference or an artifact; raises UserError if missing."""
    if artifact.is_artifact(Path(model)):
        return artifact.fingerprint(Path(model))
    return reference.fingerprint(model, revision)


def checkpoint_kind(folder: Path) -> ModelKind:
    """Return what the checkpoint in `folder` was saved as."""
    saved_as = _read(folder / "config_sentence_transformers.json").get("model_type")
    if saved_as is not None or (folder / "modules.json").is_file():
        return ModelKind.PAIR_SCORER if saved_as == "CrossEncoder" else ModelKind.ENCODER
    architectures = _read(folder / "config.json").get("architectures") or [""]
    has_head = str(architectures[0]).endswith("ForSequenceClassification")
    return ModelKind.PAIR_SCORER if has_head else ModelKind.ENCODER


def _read(path: Path) -> dict[str, Any]:
    return read_json_object(path) if path.is_file() else {}
