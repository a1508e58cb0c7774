"""Sizes of base models, which decide a recipe's learning rates."""

from typing import Literal

from synthbench.base.errors import NotAvailableError, UserError
from synthbench.hub.repositories import HubRepository, is_reachable
from synthbench.models.facts import facts_of
from synthbench.models.pretrained import Pretrained
from synthbench.models.reference import local
from synthbench.models.work import shape_of_base

Size = Literal["tiny", "static", "small", "base", "large"]
"""static: word or token vectors; the others: transformers, by the parameters of their layers."""
LIMITS: tuple[tuple[int, Size], ...] = ((3_000_000, "tiny"), (35_000_000, "small"), (150_000_000, "base"))
"""(maximum parameters in the layers, size): MiniLM has 11 to 21 million, BERT-base 85. Above: large."""


def size_of(base: Pretrained) -> Size | None:
    """Return a base's size from its metadata, a table of published models, or the hub; None if unknown."""
    if not base.has_layers:
        return "static"
    try:
        shape = shape_of_base(base)
        facts = facts_of(base.model, base.revision, asks=shape is None)
        if facts is not None and not facts.is_transformer:
            return "static"
        shape = shape or shape_of_base(base)
    except (OSError, UserError):
        return None
    if shape is None:
        return None
    return next((size for most, size in LIMITS if shape.layer_parameters <= most), "large")


def check_known(base: Pretrained) -> None:
    """Raise UserError, with similar names, if the hub answers that it has no such model.

    Raises UserError, too, if a local model does not exist. Without an answer, the model passes.
    """
    try:
        if local(base.model) is None and is_reachable():
            HubRepository("model", base.model, base.revision).commit()
    except NotAvailableError:
        return
