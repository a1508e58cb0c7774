"""Checks that a base suits its settings, by its configuration and weight headers, without loading it.

A model that is not on this machine passes the checks of its files.
"""

from collections.abc import Mapping
from typing import Any

from synthbench.base.errors import UserError
from synthbench.models.facts import TOKENIZER_FILES, CheckpointFacts
from synthbench.models.loading import (
    check_outputs,
    check_weights,
    no_pair_head,
    too_many_tokens,
    without_padding,
)
from synthbench.models.pretrained import PASSAGE, QUERY, Pretrained, only_dense


def check_files(base: Pretrained) -> None:
    """Raise UserError if the local checkpoint can't be used, by its configuration and weight headers.

    Faults: a tokenizer that is missing or has too many tokens; weights that are quantised or incomplete.
    """
    facts = base.facts()
    if facts is None:
        return
    if facts.is_transformer and not base.trust_remote_code and facts.weights:
        _check_tokenizer(base, facts)
    check_weights(base.model, facts, base.num_layers if base.has_layers else 0)


def _check_tokenizer(base: Pretrained, facts: CheckpointFacts) -> None:
    if not facts.has_tokenizer:
        raise UserError(
            f"{base.model}: no tokenizer in {facts.folder}: looked for {', '.join(TOKENIZER_FILES)}"
        )
    tokens, vectors = facts.num_tokens, facts.vocabulary
    if tokens is not None and vectors is not None and tokens > vectors and base.static_dimension is None:
        raise UserError(too_many_tokens(base.model, tokens, vectors))


def check_encoder(base: Pretrained) -> None:
    """Raise UserError if the local checkpoint doesn't suit `base.encoder`."""
    facts = None if base.static else base.facts()
    if facts is not None:
        base.check_encoder(facts)


def check_dense(base: Pretrained) -> None:
    """Raise UserError if the base is a sparse or late-interaction encoder."""
    if base.encoder != "dense":
        raise UserError(f"{base.model}: {only_dense(base)}")


def check_layers(base: Pretrained) -> None:
    """Raise UserError if the local model has fewer layers than the settings ask for."""
    facts = None if base.num_layers is None else base.facts()
    if facts is not None and facts.num_layers is not None:
        base.require_layers(facts.num_layers)


def check_pair_reader(base: Pretrained, *, needs_head: bool = False) -> None:
    """Raise UserError if the local checkpoint can't be a cross-encoder's base, or lacks a required head.

    Does not check settings: see `Pretrained.why_no_pair_reader`.
    """
    if base.why_no_pair_reader():
        return
    facts = base.facts()
    if facts is not None:
        check_outputs(base.model, facts.outputs)
        if facts.pads is False:
            raise UserError(without_padding(base.model))
        if needs_head and facts.outputs is None and facts.saved_as != "CrossEncoder":
            raise UserError(no_pair_head(base.model))


def default_dtype(base: Pretrained) -> str:
    """Return the dtype that transformers loads the model in by default.

    "" if that is fp32 or unknown, or if the base is static or sets `dtype`. Until November 2026, models were
    trained and encoded in this dtype. A configuration missing in the local cache is requested from the hub.
    """
    if base.static or base.dtype != "fp32":
        return ""
    try:
        facts = base.facts(asks=True)
    except UserError:
        return ""
    stored = None if facts is None else facts.dtype
    return "" if stored in (None, "fp32") else str(stored)


def prompts_of_rankings(base: Pretrained) -> Mapping[str, Any] | None:
    """Return the model's own prompts for rankings, if synthbench encoded them otherwise before November 2026.

    Until then, passages got the passage prompt only if the model's default was the query prompt; otherwise
    they got the default, as all other texts did. Keys: `query`, `document`, and `routed` (True) if the model
    has separate modules for queries and passages.

    None if nothing differs or the prompts are unknown, for a base without layers, or if `base.prompts` is
    set. A configuration missing in the local cache is requested from the hub.
    """
    if base.prompts is not None or not base.has_layers:
        return None
    try:
        facts = base.facts(asks=True)
    except UserError:
        return None
    if facts is None:
        return None
    own = {QUERY: "", PASSAGE: "", **facts.prompts}
    default = own.get(facts.default_prompt or "", "")
    before = (default, own[PASSAGE] if facts.default_prompt == QUERY else default)
    if (own[QUERY], own[PASSAGE]) == before and not facts.routes_tasks:
        return None
    return {QUERY: own[QUERY], PASSAGE: own[PASSAGE], **({"routed": True} if facts.routes_tasks else {})}
