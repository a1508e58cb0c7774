"""A model's tokenizer and its limit of input tokens, without loading weights."""

from typing import Any

from synthbench.base.errors import UserError, in_one_line
from synthbench.base.terminal import quiet_transformers
from synthbench.models.facts import first_count, object_in
from synthbench.models.pretrained import Pretrained

_SETTINGS = "sentence_bert_config.json"
UNLIMITED = 10**6
"""A tokenizer's limit that is not below this number means no limit."""


def tokenizer_and_limit(base: Pretrained, longest: int | None = None) -> tuple[Any, int] | None:
    """Return the base's tokenizer and its input limit in tokens, at most `longest`, if given.

    None for a base without a limit, such as static ones. Works offline, and never runs the model's own code.
    Raises UserError if the model is not on this machine or its tokenizer can't be loaded.
    """
    if not base.has_layers:
        return None
    facts = base.facts()
    if facts is None:
        raise UserError(f"{base.model} is not on this machine")
    if not facts.is_transformer:
        return None
    from transformers import AutoTokenizer

    try:
        with quiet_transformers():
            tokenizer = AutoTokenizer.from_pretrained(
                facts.folder, local_files_only=True, trust_remote_code=False
            )
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise UserError(f"{base.model}: its tokenizer can't be loaded: {in_one_line(error)}") from error
    own = object_in(facts.folder / _SETTINGS)
    limits = (
        base.max_length or first_count(own, "max_seq_length") or tokenizer.model_max_length,
        first_count(facts.config, "max_position_embeddings"),
        facts.positions,
        longest,
    )
    known = [limit for limit in limits if limit is not None and 0 < limit < UNLIMITED]
    return (tokenizer, min(known)) if known else None
