"""How large a language model is, told by its configuration, without loading it."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from synthbench.generation.language_model import LanguageModel
from synthbench.given_files import read_json_object
from synthbench.models import reference

BYTES = {"fp32": 4, "bf16": 2, "fp16": 2}


@dataclass(frozen=True)
class Shape:
    """Layers, width, width of keys, inner width and vocabulary of a decoder, as configurations name them."""

    num_layers: int
    width: int
    key_width: int
    inner_width: int
    vocabulary: int
    is_gated: bool = False

    @property
    def num_parameters(self) -> int:
        """About as many parameters as there are: norms, biases and positions are left out."""
        attention = 2 * self.width**2 + 2 * self.width * self.key_width
        inner = (3 if self.is_gated else 2) * self.width * self.inner_width
        return self.num_layers * (attention + inner) + self.vocabulary * self.width

    @property
    def keys_per_token(self) -> int:
        """Numbers that are kept of each token that has been read."""
        return 2 * self.num_layers * self.key_width


def _gpt2(num_layers: int, width: int) -> Shape:
    return Shape(num_layers, width, width, 4 * width, 50257)


PUBLISHED: Mapping[str, Shape] = {
    "gpt2": _gpt2(12, 768),
    "gpt2-medium": _gpt2(24, 1024),
    "gpt2-large": _gpt2(36, 1280),
    "gpt2-xl": _gpt2(48, 1600),
}
"""Of models that papers name, where no configuration is at hand (Radford et al. 2019, table 2)."""


def shape_of(model: LanguageModel) -> Shape | None:
    """Return the shape that the model's configuration tells; asks no one, so None if it is not at hand."""
    name = model.model
    config = _config(model)
    if config is None:
        return PUBLISHED.get(name.removeprefix("openai-community/"))
    width = _first(config, "hidden_size", "n_embd", "d_model")
    layers = _first(config, "num_hidden_layers", "n_layer", "num_layers")
    heads = _first(config, "num_attention_heads", "n_head", "num_heads")
    vocabulary = _first(config, "vocab_size")
    if not (width and layers and heads and vocabulary):
        return None
    size = _first(config, "head_dim") or width // heads
    key_width = (_first(config, "num_key_value_heads") or heads) * size
    inner = _first(config, "intermediate_size", "n_inner", "ffn_dim") or 4 * width
    is_gated = str(config.get("hidden_act", "")) in ("silu", "swiglu")
    return Shape(layers, width, key_width, inner, vocabulary, is_gated)


def _config(model: LanguageModel) -> dict[str, Any] | None:
    folder = reference.local(model.model)
    path = folder / "config.json" if folder is not None else _cached(model)
    if path is None or not path.is_file():
        return None
    return read_json_object(path)


def _cached(model: LanguageModel) -> Path | None:
    from huggingface_hub import try_to_load_from_cache

    found = try_to_load_from_cache(model.model, "config.json", revision=model.revision)
    return Path(found) if isinstance(found, str) else None


def _first(config: Mapping[str, Any], *names: str) -> int | None:
    return next((int(config[name]) for name in names if config.get(name)), None)
