"""The size of transformers and the operations of their work, without loading them."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from synthbench.base.errors import UserError
from synthbench.models import word_vectors
from synthbench.models.facts import facts_of
from synthbench.models.pretrained import Pretrained

BYTES = {"fp32": 4, "bf16": 2, "fp16": 2}


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
    """Return the shape that the model's configuration states, else the published one.

    Looks into local folders and the local hub cache, and asks no one: None if nothing is at hand.
    """
    try:
        facts = facts_of(model, revision)
    except (OSError, UserError):
        return None
    if facts is None:
        name = next((model.removeprefix(owner) for owner in _OWNERS if model.startswith(owner)), model)
        return PUBLISHED.get(name)
    width, layers, heads, vocabulary = (_first(facts.config, *names) for names in _CONFIGURED)
    if not (width and layers and heads and vocabulary):
        return None
    size = _first(facts.config, "head_dim") or width // heads
    key_width = (_first(facts.config, "num_key_value_heads") or heads) * size
    inner = _first(facts.config, "intermediate_size", "n_inner", "ffn_dim", "hidden_dim", "d_ff") or 4 * width
    is_gated = str(facts.config.get("hidden_act", "")) in ("silu", "swiglu")
    return Shape(layers, width, key_width, inner, vocabulary, is_gated)


_CONFIGURED = (
    ("hidden_size", "n_embd", "d_model", "dim"),
    ("num_hidden_layers", "n_layer", "num_layers", "n_layers"),
    ("num_attention_heads", "n_head", "num_heads", "n_heads"),
    ("vocab_size",),
)
"""What architectures call width, layers, heads and vocabulary."""


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
class Work:
    """So many floating-point operations of one model, in so many calls (steps, or texts that are read).

    `operations` is None if the model's size is unknown. `precision` is that of the products. A language
    model's `decodings` read its `weights` and the keys and values that are `kept`, in bytes, each time.
    """

    model: str
    operations: float | None
    calls: float
    precision: str = "fp32"
    decodings: float = 0.0
    weights: float = 0.0
    kept: float = 0.0

    def share(self, share: float) -> "Work":
        """Return a share of it, in [0, 1]."""
        operations = None if self.operations is None else share * self.operations
        calls, decodings = share * self.calls, share * self.decodings
        return replace(self, operations=operations, calls=calls, decodings=decodings)


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
    operations, num_sentences = None, TRAINED * num_steps * sentences_per_step + FORWARD * num_dev
    if (shape := shape_of_base(base)) is not None:
        layers = shape.layer_parameters * num_sentences * TOKENS_PER_SENTENCE
        operations = layers + OPTIMISER * shape.num_parameters * num_steps
    return Work(name_of(base), operations, num_steps)


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
    if shape is not None and base.static:
        width = base.static_dimension or shape.width
        return Shape(0, width, width, 0, shape.vocabulary)
    return shape and replace(shape, num_layers=base.num_layers or shape.num_layers)
