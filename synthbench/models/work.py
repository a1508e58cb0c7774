"""Sizes of transformers, and the FLOPs of training and running them, without loading them."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from synthbench.base.errors import UserError
from synthbench.models import word_vectors
from synthbench.models.facts import facts_of, first_count
from synthbench.models.pretrained import Pretrained

BYTES = {"fp32": 4, "bf16": 2, "fp16": 2}


@dataclass(frozen=True)
class Shape:
    """A transformer's number of layers, size of vocabulary, and widths (hidden, keys, feed-forward).

    `is_gated`: each feed-forward layer has a third, gating matrix.
    """

    num_layers: int
    width: int
    key_width: int
    inner_width: int
    vocabulary: int
    is_gated: bool = False

    @property
    def layer_parameters(self) -> int:
        """Approximate number of parameters in all layers, without norms and biases."""
        attention = 2 * self.width**2 + 2 * self.width * self.key_width
        inner = (3 if self.is_gated else 2) * self.width * self.inner_width
        return self.num_layers * (attention + inner)

    @property
    def num_parameters(self) -> int:
        """Number of parameters in layers and token embeddings; a decoder uses them all for each token."""
        return self.layer_parameters + self.vocabulary * self.width

    @property
    def keys_per_token(self) -> int:
        """How many numbers the kv cache holds for each token."""
        return 2 * self.num_layers * self.key_width


def _plain(num_layers: int, width: int, vocabulary: int) -> Shape:
    return Shape(num_layers, width, width, 4 * width, vocabulary)


_BERT, _ROBERTA = _plain(12, 768, 30522), _plain(12, 768, 50265)
_BERT_LARGE, _MPNET = _plain(24, 1024, 30522), _plain(12, 768, 30527)
_MINILM, _MINILM_6, _MINILM_OF_MANY = _plain(12, 384, 30522), _plain(6, 384, 30522), _plain(12, 384, 250037)
_XLM, _XLM_LARGE = _plain(12, 768, 250002), _plain(24, 1024, 250002)
PUBLISHED: Mapping[str, Shape] = {
    # Radford et al. 2019, table 2
    "gpt2": _plain(12, 768, 50257),
    "gpt2-medium": _plain(24, 1024, 50257),
    "gpt2-large": _plain(36, 1280, 50257),
    "gpt2-xl": _plain(48, 1600, 50257),
    # Devlin et al. 2019, section 3; the multilingual vocabulary is that of its released files
    "bert-base-uncased": _BERT,
    "bert-large-uncased": _BERT_LARGE,
    "bert-base-multilingual-cased": _plain(12, 768, 119547),
    # Liu et al. 2019, section 4
    "roberta-base": _ROBERTA,
    "roberta-large": _plain(24, 1024, 50265),
    # Reimers & Gurevych 2019: fine-tuned from the models above; word vectors have no layer
    "sentence-transformers/bert-base-nli-mean-tokens": _BERT,
    "sentence-transformers/roberta-base-nli-mean-tokens": _ROBERTA,
    "sentence-transformers/average_word_embeddings_glove.6B.300d": _plain(0, 300, 400001),
    # Sanh et al. 2019, Wang et al. 2020 (MiniLM), Song et al. 2020 (MPNet), Conneau et al. 2020 (XLM-R)
    "distilbert-base-uncased": _plain(6, 768, 30522),
    "distilroberta-base": _plain(6, 768, 50265),
    "microsoft/MiniLM-L12-H384-uncased": _MINILM,
    "microsoft/mpnet-base": _MPNET,
    "xlm-roberta-base": _XLM,
    "xlm-roberta-large": _XLM_LARGE,
    # sbert.net's list of pretrained models: fine-tuned from those above
    "sentence-transformers/all-MiniLM-L6-v2": _MINILM_6,
    "sentence-transformers/all-MiniLM-L12-v2": _MINILM,
    "sentence-transformers/all-mpnet-base-v2": _MPNET,
    "sentence-transformers/multi-qa-MiniLM-L6-cos-v1": _MINILM_6,
    "sentence-transformers/multi-qa-mpnet-base-dot-v1": _MPNET,
    "sentence-transformers/paraphrase-multilingual-MiniLM-L12-v2": _MINILM_OF_MANY,
    "sentence-transformers/paraphrase-multilingual-mpnet-base-v2": _XLM,
    # Xiao et al. 2023 (BGE), Wang et al. 2022 and 2024 (E5), Li et al. 2023 (GTE)
    "BAAI/bge-small-en-v1.5": _MINILM,
    "BAAI/bge-base-en-v1.5": _BERT,
    "BAAI/bge-large-en-v1.5": _BERT_LARGE,
    "BAAI/bge-m3": _XLM_LARGE,
    "intfloat/e5-small-v2": _MINILM,
    "intfloat/e5-base-v2": _BERT,
    "intfloat/e5-large-v2": _BERT_LARGE,
    "intfloat/multilingual-e5-small": _MINILM_OF_MANY,
    "intfloat/multilingual-e5-base": _XLM,
    "intfloat/multilingual-e5-large": _XLM_LARGE,
    "thenlper/gte-small": _MINILM,
    "thenlper/gte-base": _BERT,
    "thenlper/gte-large": _BERT_LARGE,
}
"""Shapes of published models, used without a local configuration."""
_OWNERS = ("openai-community/", "google-bert/", "FacebookAI/")


def shape_of(model: str, revision: str | None = None) -> Shape | None:
    """Return the shape in the model's configuration; without a configuration, the published shape.

    Reads only local folders and the local hub cache. None if the configuration can't be read or lacks a size,
    or if no shape was published.
    """
    try:
        facts = facts_of(model, revision)
    except (OSError, UserError):
        return None
    if facts is None:
        name = next((model.removeprefix(owner) for owner in _OWNERS if model.startswith(owner)), model)
        return PUBLISHED.get(name)
    width, layers, heads, vocabulary = (first_count(facts.config, *names) for names in _CONFIGURED)
    if not (width and layers and heads and vocabulary):
        return None
    size = first_count(facts.config, "head_dim") or width // heads
    key_width = (first_count(facts.config, "num_key_value_heads") or heads) * size
    inner = first_count(facts.config, "intermediate_size", "n_inner", "ffn_dim", "hidden_dim", "d_ff")
    is_gated = str(facts.config.get("hidden_act", "")) in ("silu", "swiglu")
    return Shape(layers, width, key_width, inner or 4 * width, vocabulary, is_gated)


_CONFIGURED = (
    ("hidden_size", "n_embd", "d_model", "dim"),
    ("num_hidden_layers", "n_layer", "num_layers", "n_layers"),
    ("num_attention_heads", "n_head", "num_heads", "n_heads"),
    ("vocab_size",),
)
"""Names of width, layers, heads and vocabulary in configurations."""


TOKENS_PER_SENTENCE = 14
"""Assumed tokens of a sentence, special tokens included: the average of STSb's test sentences."""
BYTES_READ = 4
"""Bytes for each parameter of a model in fp32."""
FORWARD, TRAINED = 2, 6
"""Operations for each parameter and token: a product and a sum forward; in training, 4 more for gradients."""
OPTIMISER = 250
"""Operations, for each parameter and step, that take as long as AdamW, which mostly waits for memory."""


@dataclass(frozen=True)
class Work:
    """An amount of computation: FLOPs of one model, and the calls (steps, or texts read) they are split into.

    `operations` is None if the model's size is unknown. `precision`: the precision of matrix products. For a
    language model, in bytes: `weights`, `kept` (its kv cache at most), and `read` (all reads from memory).
    `texts`: the number of texts that a training tokenises.
    """

    model: str
    operations: float | None
    calls: float
    precision: str = "fp32"
    weights: float = 0.0
    kept: float = 0.0
    read: float = 0.0
    texts: float = 0.0

    def share(self, share: float) -> "Work":
        """Return this work times `share`, which is in [0, 1]; `weights` and `kept` stay."""
        operations = None if self.operations is None else share * self.operations
        return replace(
            self,
            operations=operations,
            calls=share * self.calls,
            read=share * self.read,
            texts=share * self.texts,
        )


@dataclass(frozen=True)
class Expected:
    """A method's expected output and work, estimated from the numbers of its sources' records; None: unknown.

    `num_records` is an upper bound. `tokens` bounds a local language model's output if each text succeeds
    at the first try; if all tries are used, the bound is `tries` times `tokens`. `work` is the work of local
    models in `generate`, and assumes one try for each text; the experiment's LLM does not count.
    """

    num_records: int | None = None
    work: Work | None = None
    tokens: int | None = None
    tries: float = 1.0


def weighted_size(num_records: int, weight: float) -> int:
    """Return the number of rows that `num_records` records with this weight add to an epoch."""
    whole, fraction = divmod(weight, 1.0)
    return int(whole) * num_records + round(fraction * num_records)


def reading(base: Pretrained, num_inputs: float, sentences: int = 1) -> Work:
    """Return the work of reading `num_inputs` inputs of `sentences` sentences each."""
    shape = shape_of_base(base)
    tokens = num_inputs * sentences * TOKENS_PER_SENTENCE
    operations = None if shape is None else FORWARD * _multiplied(base, shape) * tokens
    return Work(name_of(base), operations, num_inputs, base.precision)


def _multiplied(base: Pretrained, shape: Shape) -> int:
    """Return the number of parameters that each token is multiplied with."""
    return shape.num_parameters if base.encoder == "sparse" else shape.layer_parameters


def training(base: Pretrained, num_steps: float, sentences_per_step: float, num_dev: float) -> Work:
    """Return the work of `num_steps` optimiser steps on batches of `sentences_per_step` sentences.

    All steps together also read `num_dev` dev sentences.
    """
    operations, num_sentences = None, TRAINED * num_steps * sentences_per_step + FORWARD * num_dev
    if (shape := shape_of_base(base)) is not None:
        products = _multiplied(base, shape) * num_sentences * TOKENS_PER_SENTENCE
        operations = products + OPTIMISER * shape.num_parameters * num_steps
    return Work(name_of(base), operations, num_steps, texts=num_steps * sentences_per_step + num_dev)


def name_of(base: Pretrained) -> str:
    """Return the model's name and its used parts: the key under which computing times are compared."""
    if base.static:
        return f"{base.model}, static {base.static_dimension or ''}".rstrip()
    layers = "" if base.num_layers is None else f", {base.num_layers} layers"
    return f"{base.model}{layers}" + (f", {base.encoder}" if base.encoder != "dense" else "")


def shape_of_base(base: Pretrained) -> Shape | None:
    """Return the shape of a model's used parts, None if unknown.

    Raises UserError if word vectors can't be found or read.
    """
    if base.is_word_vectors:
        num_words, dimension = word_vectors.shape(base.vectors())
        return Shape(0, dimension, dimension, 0, num_words)
    shape = shape_of(base.model, base.revision)
    if shape is not None and base.static:
        width = base.static_dimension or shape.width
        return Shape(0, width, width, 0, shape.vocabulary)
    return shape and replace(shape, num_layers=base.num_layers or shape.num_layers)
