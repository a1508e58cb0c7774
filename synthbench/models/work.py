"""The size of transformers and the operations of their work, without loading them."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from synthbench.base.errors import UserError
from synthbench.base.user_files import read_json_object
from synthbench.models import reference, word_vectors
from synthbench.models.pretrained import Pretrained

BYTES = {"fp32": 4, "bf16": 2, "fp16": 2}
_CONFIG_FILES = ("config.json", "0_Transformer/config.json")


@dataclass(frozen=True)
class Shape:
    """Layers, width, width of keys, inner width and vocabulary of a transformer."""

    num_layers: int
    width: int
    key_width: int
    inner_width: int
    vocabulary: int
    is_gated: bool = False

    @property
    def layer_parameters(self) -> int:
        """About as many parameters as all layers have: norms and biases are left out."""
        attention = 2 * self.width**2 + 2 * self.width * self.key_width
        inner = (3 if self.is_gated else 2) * self.width * self.inner_width
        return self.num_layers * (attention + inner)

    @property
    def num_parameters(self) -> int:
        """The layers' parameters and those of the vocabulary, which a decoder computes with, too."""
        return self.layer_parameters + self.vocabulary * self.width

    @property
    def keys_per_token(self) -> int:
        """Numbers that are kept of each token that has been read."""
        return 2 * self.num_layers * self.key_width

    def with_layers(self, num_layers: int | None) -> "Shape":
        """Return the shape of the first so many layers, all if None."""
        return self if num_layers is None else replace(self, num_layers=num_layers)


def _plain(num_layers: int, width: int, vocabulary: int) -> Shape:
    return Shape(num_layers, width, width, 4 * width, vocabulary)


_BERT, _ROBERTA = _plain(12, 768, 30522), _plain(12, 768, 50265)
PUBLISHED: Mapping[str, Shape] = {
    # Radford et al. 2019, table 2
    "gpt2": _plain(12, 768, 50257),
    "gpt2-medium": _plain(24, 1024, 50257),
    "gpt2-large": _plain(36, 1280, 50257),
    "gpt2-xl": _plain(48, 1600, 50257),
    # Devlin et al. 2019, section 3; the multilingual vocabulary is that of its released files
    "bert-base-uncased": _BERT,
    "bert-large-uncased": _plain(24, 1024, 30522),
    "bert-base-multilingual-cased": _plain(12, 768, 119547),
    # Liu et al. 2019, section 4
    "roberta-base": _ROBERTA,
    "roberta-large": _plain(24, 1024, 50265),
    # Reimers & Gurevych 2019: fine-tuned from the models above; word vectors have no layer
    "sentence-transformers/bert-base-nli-mean-tokens": _BERT,
    "sentence-transformers/roberta-base-nli-mean-tokens": _ROBERTA,
    "sentence-transformers/average_word_embeddings_glove.6B.300d": _plain(0, 300, 400001),
}
"""Of models that papers name, where no configuration is at hand."""
_OWNERS = ("openai-community/", "google-bert/", "FacebookAI/")


def shape_of(model: str, revision: str | None = None) -> Shape | None:
    """Return the shape that the model's configuration states.

    Looks into local folders and the local hub cache, then among the published; asks no one, so None if the
    configuration is not at hand.
    """
    config = _config(model, revision)
    if config is None:
        name = next((model.removeprefix(owner) for owner in _OWNERS if model.startswith(owner)), model)
        return PUBLISHED.get(name)
    width = _first(config, "hidden_size", "n_embd", "d_model", "dim")
    layers = _first(config, "num_hidden_layers", "n_layer", "num_layers", "n_layers")
    heads = _first(config, "num_attention_heads", "n_head", "num_heads", "n_heads")
    vocabulary = _first(config, "vocab_size")
    if not (width and layers and heads and vocabulary):
        return None
    size = _first(config, "head_dim") or width // heads
    key_width = (_first(config, "num_key_value_heads") or heads) * size
    inner = _first(config, "intermediate_size", "n_inner", "ffn_dim", "hidden_dim", "d_ff") or 4 * width
    is_gated = str(config.get("hidden_act", "")) in ("silu", "swiglu")
    return Shape(layers, width, key_width, inner, vocabulary, is_gated)


def _config(model: str, revision: str | None) -> dict[str, Any] | None:
    """Return the configuration that is at hand, None if there is none, or none that can be read."""
    try:
        folder = reference.local(model)
    except UserError:
        return None
    for name in _CONFIG_FILES:
        path = folder / name if folder is not None else _cached(model, revision, name)
        if path is not None and path.is_file():
            return _read(path)
    return None


def _read(path: Path) -> dict[str, Any] | None:
    try:
        return read_json_object(path)
    except (OSError, UserError):
        return None


def _cached(model: str, revision: str | None, name: str) -> Path | None:
    from huggingface_hub import try_to_load_from_cache

    found = try_to_load_from_cache(model, name, revision=revision)
    return Path(found) if isinstance(found, str) else None


def _first(config: Mapping[str, Any], *names: str) -> int | None:
    values = (config.get(name) for name in names)
    return next((value for value in values if isinstance(value, int) and value > 0), None)


TOKENS_PER_SENTENCE = 14
"""Assumed of a sentence, the special tokens included: as many as STSb's test sentences have on average."""
BYTES_READ = 4
"""Bytes for each parameter of a model in fp32."""
FORWARD, TRAINED = 2, 6
"""Operations for each parameter and token: a product and a sum; the gradients take twice as many more."""
OPTIMISER = 250
"""Operations for each parameter and step that AdamW takes as long as: it waits for memory."""


@dataclass(frozen=True)
class Writing:
    """So many tokens that a language model writes, `most` sequences at a time where there is room.

    `weights` and `sequence`: bytes of the model, and of the keys and values of a sequence at its longest.
    """

    weights: float
    sequence: float
    tokens: int
    most: int

    def batch(self, room: float) -> int:
        """Return how many sequences are written at a time in so many bytes of memory, 1 at least."""
        return max(1, min(self.most, int((room - self.weights) / self.sequence)))

    def bytes_read(self, room: float) -> float:
        """Return the bytes that all steps read: the weights once a step, keys and values of each sequence."""
        return self.tokens * (self.weights / self.batch(room) + self.sequence)


@dataclass(frozen=True)
class Work:
    """So many floating-point operations of one model, in so many calls (steps, or texts that are read).

    `operations` is None if the model's size is unknown. `precision` is that of the products; `writing`, that
    of a language model, goes at the pace of memory.
    """

    model: str
    operations: float | None
    calls: float
    precision: str = "fp32"
    writing: Writing | None = None


@dataclass(frozen=True)
class Expected:
    """What a method would make and compute, from amounts alone; None: unknown.

    `num_records` and `tokens` (written by a language model) are upper bounds. `work` is that of the models in
    `generate`, without the experiment's LLM.
    """

    num_records: int | None = None
    work: Work | None = None
    tokens: int | None = None


def weighted_size(num_records: int, weight: float) -> int:
    """Return how many rows an epoch has of a part with so many records and this weight."""
    whole, fraction = divmod(weight, 1.0)
    return int(whole) * num_records + round(fraction * num_records)


def reading(base: Pretrained, num_inputs: float, sentences: int = 1) -> Work:
    """Return the work of reading so many inputs, each of so many sentences."""
    shape = shape_of_base(base)
    tokens = num_inputs * sentences * TOKENS_PER_SENTENCE
    operations = None if shape is None else FORWARD * shape.layer_parameters * tokens
    return Work(name_of(base), operations, num_inputs, base.precision)


def training(base: Pretrained, num_steps: float, sentences_per_step: float, num_dev: float) -> Work:
    """Return the work of so many optimiser steps on batches of so many sentences.

    In all of them together, so many sentences of dev are read.
    """
    shape = shape_of_base(base)
    if shape is None:
        return Work(name_of(base), None, num_steps)
    num_sentences = TRAINED * num_steps * sentences_per_step + FORWARD * num_dev
    layers = shape.layer_parameters * num_sentences * TOKENS_PER_SENTENCE
    return Work(name_of(base), layers + OPTIMISER * shape.num_parameters * num_steps, num_steps)


def name_of(base: Pretrained) -> str:
    """Return the model's name with what is used of it: works of equal names take equally long."""
    if base.static:
        return f"{base.model}, static {base.static_dimension or ''}".rstrip()
    return base.model if base.num_layers is None else f"{base.model}, {base.num_layers} layers"


def shape_of_base(base: Pretrained) -> Shape | None:
    """Return the shape of what is used of a model, None if it is unknown."""
    if base.is_word_vectors:
        num_words, dimension = word_vectors.shape(base.vectors())
        return Shape(0, dimension, dimension, 0, num_words)
    shape = shape_of(base.model, base.revision)
    if shape is None or not base.static:
        return None if shape is None else shape.with_layers(base.num_layers)
    width = base.static_dimension or shape.width
    return Shape(0, width, width, 0, shape.vocabulary)
