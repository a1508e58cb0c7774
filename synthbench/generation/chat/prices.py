"""What tokens cost: a dated table, which an experiment can override."""

from collections.abc import Mapping
from functools import cache
from importlib.resources import files

from synthbench.generation.chat.endpoint import Endpoint, Price

TABLE = "prices.yaml"


@cache
def price_table() -> Mapping[str, Price]:
    """Return the shipped prices by model."""
    from ruamel.yaml import YAML

    text = (files("synthbench.generation.chat") / TABLE).read_text(encoding="utf-8")
    rows = YAML(typ="safe", pure=True).load(text)
    return {model: Price.model_validate(row) for model, row in rows.items()}


def price_of(endpoint: Endpoint) -> Price | None:
    """Return the endpoint's own price, else its model's in the table; None if nobody knows it."""
    return endpoint.pacing.price or price_table().get(endpoint.model)
