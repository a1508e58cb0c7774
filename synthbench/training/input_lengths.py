"""Input limits in tokens: a model's own, and the one in training."""

import math
from collections.abc import Iterator
from contextlib import contextmanager

from sentence_transformers.base import BaseModel

from synthbench.training.settings import TrainingSettings


def length_of(model: BaseModel) -> int | None:
    """Return the model's own limit in tokens; None without one, as for static models."""
    length = model.max_seq_length
    return None if length is None or math.isinf(length) else length


def length_in_training(own_length: int | None, settings: TrainingSettings) -> int | None:
    """Return the lower of `max_length` and the model's own limit, in tokens; None if the model has none."""
    return None if own_length is None else min(settings.max_length or own_length, own_length)


@contextmanager
def reading_at_most(model: BaseModel, length: int | None) -> Iterator[None]:
    """Within the block, truncate inputs at `length` tokens; None keeps the model's own limit.

    ColBERT's own limits for queries and passages are lowered to `length`, too.
    """
    of_tasks = {name: getattr(model[0], name, None) for name in ("query_length", "document_length")}
    before = model.max_seq_length
    if length is not None:
        model.max_seq_length = length
        for name, own in of_tasks.items():
            if own is not None:
                setattr(model[0], name, min(own, length))
    try:
        yield
    finally:
        if length is not None:
            model.max_seq_length = before
            for name, own in of_tasks.items():
                if own is not None:
                    setattr(model[0], name, own)
