"""How much models have to compute, in numbers that no device changes."""

from dataclasses import dataclass

from synthbench.models.pretrained import Pretrained
from synthbench.models.shape import Shape, shape_of

TOKENS_PER_SENTENCE = 14
"""Assumed of a sentence, the special tokens included: as many as STSb's test sentences have on average."""
FORWARD, TRAINED = 2, 6
"""Operations for each parameter and token: a product and a sum; the gradients take twice as many more."""
OPTIMISER = 250
"""Operations for each parameter and step that AdamW takes as long as: it waits for memory."""


@dataclass(frozen=True)
class Work:
    """So many floating-point operations of one model, in so many calls (steps, or texts that are read).

    `operations` is None if the model's size is unknown.
    """

    model: str
    operations: float | None
    calls: float


@dataclass(frozen=True)
class Expected:
    """What a method would make and compute, as far as amounts tell before it runs; None: unknown.

    At most `num_records` records come of it. `work` is what models compute in `generate`; an LLM that the
    experiment names is not among them. `tokens` is how many of them a language model writes at most.
    """

    num_records: int | None = None
    work: Work | None = None
    tokens: int | None = None


def reading(base: Pretrained, num_inputs: float, sentences: int = 1) -> Work:
    """Return the work of reading so many inputs, each of so many sentences."""
    shape = _shape(base)
    tokens = num_inputs * sentences * TOKENS_PER_SENTENCE
    operations = None if shape is None else FORWARD * shape.layer_parameters * tokens
    return Work(name_of(base), operations, num_inputs)


def training(base: Pretrained, num_steps: float, sentences_per_step: float, num_dev: float) -> Work:
    """Return the work of so many optimiser steps on batches of so many sentences.

    In all of them together, so many sentences of dev are read.
    """
    shape = _shape(base)
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


def _shape(base: Pretrained) -> Shape | None:
    shape = shape_of(base.model, base.revision)
    if shape is None or not base.static:
        return None if shape is None else shape.with_layers(base.num_layers)
    width = base.static_dimension or shape.width
    return Shape(0, width, width, 0, shape.vocabulary)
