"""A model as the store keeps it: a folder with a description and, if trained, the checkpoint.

`model.json` is {"kind": "encoder" | "pair_scorer", "pretrained": null | the fields of Pretrained}; the
subfolder `model` is there unless the model is a pretrained one as it is. A scorer without any model has its
name as "baseline" instead.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from synthbench.errors import UserError
from synthbench.models import reference
from synthbench.models.interfaces import Encoder, ModelKind, PairScorer
from synthbench.models.pretrained import Pretrained, build_cross_encoder, build_encoder
from synthbench.quiet import quiet_transformers

if TYPE_CHECKING:
    from sentence_transformers import CrossEncoder, SentenceTransformer

    from synthbench.runtime import Progress, Runtime

DESCRIPTION_FILE = "model.json"
CHECKPOINT_FOLDER = "model"


def save_encoder(model: "SentenceTransformer", folder: Path) -> None:
    """Save a trained encoder, pooling included, into `folder`, which must exist."""
    with quiet_transformers():
        model.save(str(folder / CHECKPOINT_FOLDER), create_model_card=False)
    _describe(folder, ModelKind.ENCODER, None)


def save_cross_encoder(model: "CrossEncoder", folder: Path) -> None:
    """Save a trained cross-encoder into `folder`, which must exist."""
    with quiet_transformers():
        model.save(str(folder / CHECKPOINT_FOLDER), create_model_card=False)
    _describe(folder, ModelKind.PAIR_SCORER, None)


def save_untrained(base: Pretrained, folder: Path, kind: ModelKind = ModelKind.ENCODER) -> None:
    """Note in `folder`, which must exist, that the model is the pretrained one as it is."""
    _describe(folder, kind, base)


def save_baseline(name: str, folder: Path) -> None:
    """Note in `folder`, which must exist, that the pair scorer is the one of that name in `BASELINES`."""
    _write({"kind": ModelKind.PAIR_SCORER.value, "baseline": name}, folder)


def is_artifact(folder: Path) -> bool:
    """Say whether the folder is a model artifact."""
    return (folder / DESCRIPTION_FILE).is_file()


def model_kind(folder: Path) -> ModelKind:
    """Return what the artifact holds; raises UserError if the folder is none."""
    return ModelKind(_description(folder)["kind"])


def load(folder: Path, runtime: "Runtime", progress: "Progress | None" = None) -> Encoder | PairScorer:
    """Load the model, ready to encode or score.

    What an untrained model lacks (random embeddings, a head) is drawn with seed 0. Raises UserError if the
    folder is no artifact, its checkpoint is missing, or a pair scorer has more than one output.
    """
    baseline = _description(folder).get("baseline")
    if baseline is not None:
        from synthbench.models.baselines import BASELINES

        return BASELINES[baseline]()
    return load_pretrained(_base(folder), model_kind(folder), runtime, progress)


def load_pretrained(
    base: Pretrained, kind: ModelKind, runtime: "Runtime", progress: "Progress | None" = None
) -> Encoder | PairScorer:
    """Load a pretrained model as what it is used for; raises UserError as `load` does."""
    from synthbench.models.device import device_name
    from synthbench.models.encoder import LengthBatchedEncoder
    from synthbench.models.pair_scorer import LengthBatchedPairScorer

    device = device_name(runtime)
    if kind is ModelKind.ENCODER:
        return LengthBatchedEncoder(build_encoder(base, 0, device), runtime.batch_tokens, progress)
    cross_encoder = build_cross_encoder(base, 0, device, num_labels=None)
    return LengthBatchedPairScorer(cross_encoder, runtime.batch_tokens, progress)


def fingerprint(folder: Path) -> dict[str, str]:
    """Return {model: content hash or commit}; raises UserError if the folder is no artifact."""
    baseline = _description(folder).get("baseline")
    if baseline is not None:
        return {"baseline": baseline}
    return _base(folder).fingerprint()


def _base(folder: Path) -> Pretrained:
    pretrained = _description(folder)["pretrained"]
    if pretrained is None:
        return Pretrained(model=str((folder / CHECKPOINT_FOLDER).absolute()))
    return Pretrained.model_validate(pretrained)


def _description(folder: Path) -> dict[str, Any]:
    path = folder / DESCRIPTION_FILE
    if not path.is_file():
        raise UserError(f"{folder}: not a model artifact: no {DESCRIPTION_FILE}")
    description: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return description


def _describe(folder: Path, kind: ModelKind, base: Pretrained | None) -> None:
    pretrained = None if base is None else {**base.model_dump(), "model": reference.anywhere(base.model)}
    _write({"kind": kind.value, "pretrained": pretrained}, folder)


def _write(description: Mapping[str, Any], folder: Path) -> None:
    temporary = folder / f"{DESCRIPTION_FILE}.partial"
    temporary.write_text(json.dumps(description, indent=1) + "\n", encoding="utf-8")
    temporary.replace(folder / DESCRIPTION_FILE)
