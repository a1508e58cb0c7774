"""Model artifacts in the store: a folder with a description and, if trained, the checkpoint.

`model.json` is {"kind": "encoder" | "pair_scorer", "pretrained": null | the fields of Pretrained}. The
subfolder `model` holds the checkpoint; an unchanged pretrained model has none. Further keys:
"trust_remote_code": true if the trained model runs Python code of its base; "dtype" of the weights and
"precision" of encoding or scoring, if not fp32; "encoder": sparse or late-interaction, if not dense;
"baseline": the name of a scorer without a model.
"""

import json
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from synthbench.base.errors import UserError, first_fault
from synthbench.base.terminal import quiet_transformers
from synthbench.base.user_files import read_json_object
from synthbench.models import reference, word_vectors
from synthbench.models.building import build_cross_encoder, build_encoder
from synthbench.models.facts import EncoderKind, facts_in, object_in
from synthbench.models.interfaces import Encoder, ModelKind, PairScorer
from synthbench.models.loading import Dtype
from synthbench.models.own_code import foreign_module, why_untrusted
from synthbench.models.precision import Precision, check_precision
from synthbench.models.pretrained import Pretrained
from synthbench.models.warm import loaded

if TYPE_CHECKING:
    from sentence_transformers.base import BaseModel as LibraryModel

    from synthbench.base.runtime import Progress, Runtime


DESCRIPTION_FILE = "model.json"
CHECKPOINT_FOLDER = "model"
RUNS_CODE, PRECISION, DTYPE, ENCODER = "trust_remote_code", "precision", "dtype", "encoder"
_NOTED = (RUNS_CODE, PRECISION, DTYPE, ENCODER)


def save_model(
    model: "LibraryModel",
    folder: Path,
    precision: Precision = "fp32",
    dtype: Dtype = "fp32",
    encoder: EncoderKind = "dense",
) -> None:
    """Save a trained model, pooling or head included, into `folder`, which must exist.

    Records in model.json: `precision` (of later encoding or scoring), `dtype` (of the weights), `encoder`.
    """
    from sentence_transformers import CrossEncoder

    with quiet_transformers():
        model.save(str(folder / CHECKPOINT_FOLDER), create_model_card=False)
    is_pair_scorer = isinstance(model, CrossEncoder)
    kind = ModelKind.PAIR_SCORER if is_pair_scorer else ModelKind.ENCODER
    noted = {RUNS_CODE: True} if model.trust_remote_code else {}
    given = {DTYPE: dtype, PRECISION: precision, ENCODER: encoder}
    unusual = {name: value for name, value in given.items() if value not in ("fp32", "dense")}
    _describe(folder, kind, None, **noted, **unusual)


def save_untrained(base: Pretrained, folder: Path, kind: ModelKind = ModelKind.ENCODER) -> None:
    """Record in `folder`, which must exist, that the model is an unchanged pretrained one."""
    _describe(folder, kind, base)


def save_baseline(name: str, folder: Path) -> None:
    """Record in `folder`, which must exist, that the model is the pair scorer `BASELINES[name]`."""
    _write({"kind": ModelKind.PAIR_SCORER.value, "baseline": name}, folder)


def is_artifact(folder: Path) -> bool:
    """Return whether the folder is a model artifact: whether it has a model.json."""
    return (folder / DESCRIPTION_FILE).is_file()


def runs_code(folder: Path) -> bool:
    """Return whether loading the folder runs Python code that comes with the model.

    False if the folder is no artifact. Raises UserError if its model.json is invalid.
    """
    if not is_artifact(folder) or _description(folder).get("baseline") is not None:
        return False
    return _base(folder).trust_remote_code


def is_trained(folder: Path) -> bool:
    """Return whether the artifact has a checkpoint of its own, unlike a pretrained model or baseline."""
    return (folder / CHECKPOINT_FOLDER).is_dir()


def model_kind(folder: Path) -> ModelKind:
    """Return the artifact's kind of model; raises UserError if the folder is no valid artifact."""
    return ModelKind(_description(folder)["kind"])


def check_artifact(folder: Path, trusted: Collection[Pretrained] = ()) -> None:
    """Raise UserError if an artifact's model.json is missing or invalid, or asks for untrusted code.

    `trusted` is as in `base_of`. A model.json without `kind` passes: another package's trainer wrote it.
    """
    path = folder / DESCRIPTION_FILE
    # Other packages' trainers may write descriptions of their own; `load` accepts only ours.
    if not path.is_file() or "kind" in read_json_object(path):
        base_of(folder, trusted)


def load(
    folder: Path,
    runtime: "Runtime",
    progress: "Progress | None" = None,
    precision: Precision | None = None,
    trusted: Collection[Pretrained] | None = (),
) -> Encoder | PairScorer:
    """Load an artifact's model, ready to encode or score, in its own precision or a given one.

    `trusted` is as in `base_of`. Weights that an untrained model lacks (random embeddings, a head) are drawn
    with seed 0. Raises UserError if the folder is no artifact, its checkpoint is missing, its code is not
    trusted, the precision is not supported, or a pair scorer has more than one output.
    """
    baseline = _description(folder).get("baseline")
    if baseline is not None:
        from synthbench.models.pair_scorer import BASELINES

        return BASELINES[baseline]()
    base = base_of(folder, trusted)
    if precision is not None:
        if base.static and precision != "fp32":
            raise UserError(f"precision {precision}: {folder} is static and computes no products; take fp32")
        base = base.model_copy(update={PRECISION: precision})
    return load_pretrained(base, model_kind(folder), runtime, progress)


def load_pretrained(
    base: Pretrained, kind: ModelKind, runtime: "Runtime", progress: "Progress | None" = None
) -> Encoder | PairScorer:
    """Load a pretrained model as an encoder or pair scorer; raises UserError as `load` does."""
    import torch

    from synthbench.base.runtime import device_name
    from synthbench.models.encoder import LengthBatchedEncoder
    from synthbench.models.pair_scorer import LengthBatchedPairScorer
    from synthbench.models.search_encoders import build_search_encoder, search_encoder

    device = device_name(runtime)
    check_precision(base.precision, torch.device(device), "base.precision")
    key = f"{kind} {base.model_dump_json()} {device}"
    if kind is ModelKind.ENCODER:
        if base.encoder != "dense":
            searching = loaded(key, lambda: build_search_encoder(base, 0, device))
            return search_encoder(searching, base.precision, progress)
        encoder = loaded(key, lambda: build_encoder(base, 0, device))
        return LengthBatchedEncoder(encoder, runtime.batch_tokens, progress, precision=base.precision)
    cross_encoder = loaded(key, lambda: build_cross_encoder(base, 0, device, num_labels=None))
    return LengthBatchedPairScorer(cross_encoder, runtime.batch_tokens, progress, base.precision)


def fingerprint(folder: Path) -> dict[str, str]:
    """Return {the model's name: content hash or commit}, {"baseline": name} for a scorer without a model.

    Raises UserError if the folder is no artifact.
    """
    baseline = _description(folder).get("baseline")
    if baseline is not None:
        return {"baseline": baseline}
    return _base(folder).fingerprint()


def base_of(folder: Path, trusted: Collection[Pretrained] | None = ()) -> Pretrained:
    """Return the artifact as a base: its checkpoint, or the pretrained model that it names.

    Only code of the `trusted` bases may run; None: the user allowed the folder's own code. Raises UserError
    if the artifact asks for other code, or the folder is no valid artifact.
    """
    base = _base(folder)
    checkpoint = folder / CHECKPOINT_FOLDER if _description(folder)["pretrained"] is None else None
    why = ""
    if base.trust_remote_code:
        why = "" if trusted is None else why_untrusted(base, trusted, checkpoint)
    elif checkpoint is not None:
        why = foreign_module(checkpoint)
    if why:
        raise UserError(f"{folder}: {why}")
    return base


def _base(folder: Path) -> Pretrained:
    pretrained = _description(folder)["pretrained"]
    if pretrained is None:
        noted = {key: value for key, value in _description(folder).items() if key in _NOTED}
        return Pretrained(model=str((folder / CHECKPOINT_FOLDER).absolute()), **noted)
    return Pretrained.model_validate(pretrained)


class _Description(BaseModel):
    """The fields of model.json."""

    model_config = ConfigDict(extra="forbid", strict=True, protected_namespaces=())

    kind: Literal["encoder", "pair_scorer"]
    pretrained: Pretrained | None = None
    baseline: str | None = None
    trust_remote_code: bool = False
    precision: Precision = "fp32"
    dtype: Dtype = "fp32"
    encoder: EncoderKind = "dense"


def _description(folder: Path) -> dict[str, Any]:
    path = folder / DESCRIPTION_FILE
    if not path.is_file():
        raise UserError(f"{folder}: not a model artifact: no {DESCRIPTION_FILE}")
    found = read_json_object(path)
    try:
        described = _Description.model_validate(found)
    except ValidationError as error:
        raise UserError(f"{path}: not a model's description: {first_fault(error)}") from None
    from synthbench.models.pair_scorer import BASELINES

    if described.baseline is not None and described.baseline not in BASELINES:
        raise UserError(f"{path}: no baseline is called {described.baseline[:40]!a}")
    return {"pretrained": None, **found}


def _describe(folder: Path, kind: ModelKind, base: Pretrained | None, **noted: bool | str) -> None:
    pretrained = None if base is None else {**base.model_dump(), "model": reference.anywhere(base.model)}
    _write({"kind": kind.value, "pretrained": pretrained, **noted}, folder)


def _write(description: Mapping[str, Any], folder: Path) -> None:
    temporary = folder / f"{DESCRIPTION_FILE}.partial"
    temporary.write_text(json.dumps(description, indent=1) + "\n", encoding="utf-8")
    temporary.replace(folder / DESCRIPTION_FILE)


def open_model(
    model: str,
    revision: str | None,
    runtime: "Runtime",
    progress: "Progress | None" = None,
    precision: Precision | None = None,
) -> Encoder | PairScorer:
    """Load the model of a reference (see `reference.resolve`), word-vector file or artifact's folder.

    The result is ready to encode or score. `precision` None means an artifact's own, or fp32 otherwise.
    Python code in an artifact runs, so callers must have asked the user before (`check_code_of`).
    `revision` is not used for artifacts.

    A checkpoint is a pair scorer if a CrossEncoder saved it, or if it has a classification head and
    sentence-transformers did not save it; all others are encoders.

    Raises UserError as `load` does, or if the model does not exist.
    """
    if is_artifact(Path(model)):
        return load(Path(model), runtime, progress, precision, trusted=None)
    kind, encoder = ModelKind.ENCODER, "dense"
    if not word_vectors.is_named(model):
        folder = Path(reference.resolve(model, revision))
        kind, facts = checkpoint_kind(folder), facts_in(folder)
        encoder = "dense" if facts is None else facts.encoder
    base = Pretrained.model_validate(
        {"model": model, "revision": revision, "precision": precision or "fp32", "encoder": encoder}
    )
    return load_pretrained(base, kind, runtime, progress)


def model_fingerprint(model: str, revision: str | None) -> dict[str, str]:
    """Return {model: content hash or commit} of what `open_model` loads, {"baseline": name} for a baseline.

    Raises UserError if the model does not exist, or if `revision` is given for a local one.
    """
    if is_artifact(Path(model)):
        reference.check_local(model, revision)
        return fingerprint(Path(model))
    if word_vectors.is_named(model):
        return Pretrained(model=model, revision=revision).fingerprint()
    return reference.fingerprint(model, revision)


def checkpoint_kind(folder: Path) -> ModelKind:
    """Return the kind of model in a checkpoint's folder, by the rule in `open_model`."""
    saved_as = object_in(folder / "config_sentence_transformers.json").get("model_type")
    if saved_as is not None or (folder / "modules.json").is_file():
        return ModelKind.PAIR_SCORER if saved_as == "CrossEncoder" else ModelKind.ENCODER
    facts = facts_in(folder)
    has_head = facts is not None and facts.outputs is not None
    return ModelKind.PAIR_SCORER if has_head else ModelKind.ENCODER
