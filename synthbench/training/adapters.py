"""LoRA: training of a few added weights of an encoder, merged into it at the end."""

from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, Field

from synthbench.base.errors import UserError

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

INSTALL = "pip install 'synthbench[peft]'"


class LoRA(BaseModel):
    """Low-rank adapters on all linear layers (Hu et al. 2021, arXiv 2106.09685), by the library peft."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)

    rank: int = Field(16, ge=1, le=4096, description="rank of each adapter's two matrices")
    alpha: float = Field(32.0, gt=0, description="the adapters' output is multiplied by alpha / rank")
    dropout: float = Field(0.0, ge=0, lt=1, description="dropout of the adapters' inputs in training")


def with_adapters(model: "SentenceTransformer", settings: LoRA, seed: int) -> "SentenceTransformer":
    """Add adapters to the model's transformer, freeze the transformer's own weights, and return the model.

    `seed` governs the adapters' initial weights. Layers after the transformer stay trainable. Raises
    UserError if peft is not installed, or if the model has no transformer.
    """
    try:
        from peft import LoraConfig, TaskType, get_peft_model
    except ImportError:
        raise UserError(f"train.lora needs peft: {INSTALL}") from None
    from synthbench.models.building import seeded

    transformer = _transformer(model)
    config = LoraConfig(
        task_type=TaskType.FEATURE_EXTRACTION,
        r=settings.rank,
        lora_alpha=settings.alpha,  # type: ignore[arg-type] # a share, in spite of its type
        lora_dropout=settings.dropout,
        target_modules="all-linear",
    )
    with seeded(seed):
        transformer.model = get_peft_model(transformer.model, config)
    return model


def merged(model: "SentenceTransformer") -> "SentenceTransformer":
    """Return the model with its adapters merged into the base's layers; it no longer needs peft."""
    transformer = _transformer(model)
    transformer.model = transformer.model.merge_and_unload()
    return model


def _transformer(model: "SentenceTransformer") -> Any:  # noqa: ANN401 - the library's first module
    first = model[0]
    if not hasattr(first, "model"):
        raise UserError("train.lora: a base without layers has nothing to adapt")
    return first
