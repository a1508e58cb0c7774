"""Words of a text: the one implementation for BM25, lengths, word overlap, distinct-n and 13-grams.

Words are between white space. Scripts without spaces (Chinese, Japanese, Thai, Lao, Khmer, Burmese ...) are
split by a named splitter: `pairs` of neighbouring letters, or the dictionaries of `icu`.
"""

from collections.abc import Iterable, Mapping
from importlib.util import find_spec
from itertools import islice
from typing import Annotated, Any, Literal

from pydantic import AfterValidator

from synthbench.base.errors import UserError
from synthbench.base.frozen import added_field
from synthbench.words.scripts import Splitter, has_unspaced, is_unspaced, pairs_of_letters

NO_ICU = "icu needs the package icu4py: pip install 'synthbench[words]'; `pairs` needs none"
BY_NAME = "`words: icu`, or `words: pairs`"
MOST_TEXTS = 200
"""Maximum number of texts inspected to tell whether a data set's script has spaces."""


def _words_by_icu(word: str) -> list[str]:
    """Return the words that ICU's dictionaries find, without punctuation."""
    try:
        from icu4py.breakers import WordBreaker
    except ImportError:
        raise UserError(f"words: {NO_ICU}") from None
    found = [part for part in WordBreaker(word, "und") if any(map(str.isalnum, part))]
    return found or [word]


_SPLITTERS: Mapping[str, Splitter] = {"pairs": pairs_of_letters, "icu": _words_by_icu}


def _is_installed(words: str) -> str:
    if words == "icu" and find_spec("icu4py") is None:
        raise ValueError(NO_ICU)
    return words


Words = Annotated[Literal["pairs", "icu"], AfterValidator(_is_installed)]
"""The name of a splitter for scripts without spaces."""


def words_setting() -> Any:  # noqa: ANN401 - a field of any type
    """Return the field `words` for components that count or compare words; null is left out of identities."""
    return added_field(
        None,
        description="how to split scripts without spaces between words, such as Chinese. icu: by "
        "dictionaries; pairs: into pairs of neighbouring letters; null: not at all; such texts are refused",
    )


def split_words(text: str, words: str | None = "pairs") -> list[str]:
    """Return the text's words between white space; scripts without spaces are split by the named splitter.

    `words` None splits at white space alone. Case stays, and so does punctuation in words between spaces.
    """
    found = text.split()
    if words is None or not has_unspaced(text):
        return found
    split = _SPLITTERS[words]
    return [part for word in found for part in (split(word) if has_unspaced(word) else [word])]


def spaced(text: str, words: str) -> str:
    """Return the text with spaces between words; `words` names the splitter for scripts without spaces."""
    return " ".join(split_words(text, words)) if has_unspaced(text) else text


def lack_spaces(texts: Iterable[str]) -> bool:
    """Return whether most of the first texts are in a script without spaces between words."""
    some = list(islice(texts, MOST_TEXTS))
    return 2 * sum(map(is_unspaced, some)) > len(some)


def check_words(texts: Iterable[str], what: str, remedy: str = BY_NAME) -> None:
    """Raise UserError if most of the first texts are in a script without spaces between words.

    `what` names the component that splits at spaces; `remedy` is the setting to suggest.
    """
    if lack_spaces(texts):
        raise UserError(
            f"{what}: the texts have no spaces between words, so each would be one word; needed: {remedy}"
            " (docs/languages.md)"
        )
