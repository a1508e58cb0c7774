"""Where a written text ends, and what it is good for."""

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

QUOTE = '"'
Outcome = Literal["kept", "identical", "duplicate", "newline", "unclosed", "empty"]


class QuoteEndings:
    """A row ends with the token that holds a quotation mark; or a line break, after which none can help."""

    def __init__(self, tokenizer: "PreTrainedTokenizerBase") -> None:
        texts = tokenizer.batch_decode([[token] for token in range(len(tokenizer))])
        self._ending = frozenset(token for token, text in enumerate(texts) if QUOTE in text or "\n" in text)

    def is_end(self, key: str, label: str, number: int, tokens: Sequence[int]) -> bool:
        """Say whether the row is over after these tokens."""
        return tokens[-1] in self._ending


def judged(written: str, unwanted: Collection[str]) -> tuple[str, Outcome]:
    """Return the text before the first quotation mark, and what is to be thought of it; "kept": usable.

    The authors decode on and cut at the mark; a line break before it, or no mark at all, drops the text.
    """
    text, mark, _ = written.partition(QUOTE)
    if "\n" in text:
        return text, "newline"
    if not mark:
        return text, "unclosed"
    if not text.strip():
        return text, "empty"
    return text, "identical" if text in unwanted else "kept"
