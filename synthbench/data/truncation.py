"""Count the texts that exceed a model's maximum length, and those that truncation makes equal."""

from array import array
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from synthbench.data.checking import Fingerprints, batched

AT_ONCE = 1024
Input = tuple[str, ...]
"""A text, or a pair that a model reads together."""


@dataclass(frozen=True)
class Truncation:
    """Counts of distinct inputs: all, truncated ones, and those that truncation makes equal to another."""

    texts: int
    truncated: int
    equal_after: int

    @property
    def share(self) -> float:
        """The share of truncated inputs, in [0, 1]."""
        return self.truncated / max(self.texts, 1)


def count_truncated(
    inputs: Iterable[Input],
    tokenizer: Any,  # noqa: ANN401 - transformers' PreTrainedTokenizerBase
    max_tokens: int,
) -> Truncation:
    """Count the inputs that the tokenizer truncates at `max_tokens`.

    Special tokens count, as in a model's maximum length. A repeated input counts once. Inputs that the
    tokenizer can't tell apart at full length count as equal only if they are truncated.
    """
    num_inputs = 0
    of_cut: Counter[bytes] = Counter()
    whole: set[bytes] = set()
    for batch in batched(_distinct(inputs), AT_ONCE):
        num_inputs += len(batch)
        long = [each for each in batch if _may_fill(each, tokenizer, max_tokens)]
        rows = _tokens(long, tokenizer)
        whole.update(_digest_of(row) for row in rows if len(row) == max_tokens)
        cut = [each for each, row in zip(long, rows, strict=True) if len(row) > max_tokens]
        of_cut.update(map(_digest_of, _tokens(cut, tokenizer, truncation=True, max_length=max_tokens)))
    equal = sum(number for key, number in of_cut.items() if number > 1 or key in whole)
    return Truncation(num_inputs, of_cut.total(), equal)


def _distinct(inputs: Iterable[Input]) -> Iterator[Input]:
    seen = Fingerprints()
    return (each for each in inputs if seen.add(repr(each)))


def _may_fill(given: Input, tokenizer: Any, max_tokens: int) -> bool:  # noqa: ANN401 - see count_truncated
    """Return whether an input may reach `max_tokens`; always True for text that is not ASCII.

    n ASCII characters have at most n + 1 tokens.
    """
    most = sum(len(text) + 1 for text in given) + tokenizer.num_special_tokens_to_add(pair=len(given) > 1)
    return most >= max_tokens or not all(map(str.isascii, given))


def _tokens(inputs: list[Input], tokenizer: Any, **cut: object) -> list[list[int]]:  # noqa: ANN401 - see above
    if not inputs:
        return []
    sides = map(list, zip(*inputs, strict=True))
    rows: list[list[int]] = tokenizer(*sides, padding=False, verbose=False, **cut)["input_ids"]
    return rows


def _digest_of(tokens: list[int]) -> bytes:
    return blake2b(array("q", tokens), digest_size=16).digest()
