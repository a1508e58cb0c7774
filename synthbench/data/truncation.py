"""How many texts a model's maximum length cuts, and how many it can't tell apart afterwards."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import blake2b
from itertools import islice
from typing import Any

import numpy as np

TEXTS_AT_ONCE = 1024


@dataclass(frozen=True)
class Truncation:
    """Counts of distinct texts: all, those that are cut, and cut ones that equal another afterwards."""

    texts: int
    truncated: int
    equal_after: int

    @property
    def share(self) -> float:
        """The share of texts that are cut, in [0, 1]."""
        return self.truncated / max(self.texts, 1)


def count_truncated(
    texts: Iterable[str],
    tokenizer: Any,  # noqa: ANN401 - transformers' PreTrainedTokenizerBase
    max_tokens: int,
) -> Truncation:
    """Count what a model does not read of texts, whose tokenizer cuts them at `max_tokens`.

    Special tokens count, as in a model's maximum length. A text that is given several times counts once.
    Texts that the tokenizer can't tell apart at full length count as equal only if they are cut.
    """
    room = max(0, max_tokens - tokenizer.num_special_tokens_to_add())
    num_texts = num_cut = 0
    of_cut: Counter[bytes] = Counter()
    whole: set[bytes] = set()
    distinct = _distinct(texts)
    while batch := list(islice(distinct, TEXTS_AT_ONCE)):
        num_texts += len(batch)
        for tokens in _tokens([text for text in batch if _may_fill(text, room)], tokenizer):
            if len(tokens) > room:
                num_cut += 1
                of_cut[_digest_of(_kept(tokens, room, tokenizer))] += 1
            elif len(tokens) == room:
                whole.add(_digest_of(tokens))
    equal = sum(number for key, number in of_cut.items() if number > 1 or key in whole)
    return Truncation(num_texts, num_cut, equal)


def _distinct(texts: Iterable[str]) -> Iterator[str]:
    seen: set[bytes] = set()
    for text in texts:
        key = blake2b(text.encode(errors="surrogatepass"), digest_size=16).digest()
        if key not in seen:
            seen.add(key)
            yield text


def _may_fill(text: str, room: int) -> bool:
    """Return whether a text may have so many tokens; ASCII has at most one a character, and one more."""
    return not text.isascii() or len(text) + 1 >= room


def _tokens(texts: list[str], tokenizer: Any) -> list[list[int]]:  # noqa: ANN401 - see count_truncated
    if not texts:
        return []
    features = tokenizer(texts, add_special_tokens=False, truncation=False, padding=False, verbose=False)
    rows: list[list[int]] = features["input_ids"]
    return rows


def _kept(tokens: list[int], room: int, tokenizer: Any) -> list[int]:  # noqa: ANN401 - see count_truncated
    is_left = getattr(tokenizer, "truncation_side", "right") == "left"
    return tokens[len(tokens) - room :] if is_left else tokens[:room]


def _digest_of(tokens: list[int]) -> bytes:
    return blake2b(np.array(tokens, np.int64).tobytes(), digest_size=16).digest()
