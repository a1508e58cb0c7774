"""Words between spaces, and pairs of letters in scripts without spaces between words."""

import re
from collections.abc import Callable, Iterator
from functools import cache
from itertools import pairwise
from unicodedata import category

from synthbench.base.patterns import linear_pattern

Splitter = Callable[[str], list[str]]
"""A function that returns the words of a text."""

_IDEOGRAPHS = ((0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xF900, 0xFAFF), (0x20000, 0x3FFFF))
_OTHER_BLOCKS = (
    (0x3005, 0x3007),  # ideographic iteration mark and zero
    (0x3041, 0x3129),  # Hiragana, Katakana, Bopomofo
    (0x31A0, 0x31BF),  # Bopomofo extended
    (0x31F0, 0x31FF),  # Katakana extended
    (0xFF66, 0xFF9F),  # half-width Katakana
    (0x0E01, 0x0E7F),  # Thai
    (0x0E80, 0x0EFF),  # Lao
    (0x0F40, 0x0FBC),  # Tibetan
    (0x1000, 0x109F),  # Burmese
    (0xAA60, 0xAA7F),
    (0xA9E0, 0xA9FF),
    (0x1780, 0x17DD),  # Khmer
    (0x1950, 0x19DF),  # Tai Le, New Tai Lue
    (0x1A20, 0x1AAF),  # Tai Tham
    (0xAA80, 0xAADF),  # Tai Viet
    (0xA980, 0xA9DF),  # Javanese
    (0x1B00, 0x1B7F),  # Balinese
    (0xA000, 0xA48C),  # Yi
)
_MARKS_UP_TO = 0x1FFFF


def words_between_spaces(text: str) -> list[str]:
    """Return the lower-cased words between white space, without words that are only punctuation.

    Punctuation next to a letter belongs to its word. In scripts without spaces between words (Chinese,
    Japanese, Thai, Lao, Khmer, Burmese ...), a run of letters becomes its pairs of neighbouring letters, as
    in Lucene's CJKAnalyzer. A text of punctuation alone is split at white space.
    """
    lowered = text.lower()
    found = lowered.split()
    words = [word for each in found for word in _parts_of(each) if not _is_punctuation(word)]
    return words or found


def words_alone(text: str) -> list[str]:
    """Return the lower-cased runs of letters, digits and underscores; without any, the whole text.

    Scripts without spaces are split as in `words_between_spaces`.
    """
    return list(_pieces(text.lower())) or [text]


def has_unspaced(text: str) -> bool:
    """Return whether a text has a letter of a script without spaces."""
    return not text.isascii() and _unspaced().search(text) is not None


def is_unspaced(text: str) -> bool:
    """Return whether most letters and digits of a text belong to scripts without spaces."""
    if not has_unspaced(text):
        return False
    unspaced = sum(map(str.isalnum, _unspaced().findall(text)))
    return 2 * unspaced > sum(map(str.isalnum, text))


def pairs_of_letters(word: str) -> list[str]:
    """Return the pairs of neighbouring letters of scripts without spaces, and the words between them."""
    return list(_pieces(word))


def _parts_of(word: str) -> list[str]:
    """Return the word alone, or its `pairs_of_letters` if it has letters of a script without spaces."""
    return list(_pieces(word)) if has_unspaced(word) else [word]


def _pieces(text: str) -> Iterator[str]:
    for match in _piece().finditer(text):
        if match["run"] is None:
            yield match[0]
        else:
            yield from _bigrams(match["run"])


def _bigrams(run: str) -> list[str]:
    """Return the pairs of neighbouring letters with their marks, or a single letter."""
    letters: list[str] = []
    for character in run:
        if letters and category(character).startswith("M"):
            letters[-1] += character
        else:
            letters.append(character)
    return [first + second for first, second in pairwise(letters)] or letters


def _is_punctuation(word: str) -> bool:
    return not word.isalnum() and all(category(character).startswith("P") for character in word)


@cache
def _unspaced() -> re.Pattern[str]:
    return linear_pattern(f"[{_unspaced_letters()}]")


@cache
def _piece() -> re.Pattern[str]:
    """Return a pattern for a run of a script without spaces, or a word with its combining marks."""
    letters = _unspaced_letters()
    marks = "".join(chr(code) for code in range(0x300, _MARKS_UP_TO + 1) if _begins(code, "M"))
    return linear_pattern(rf"(?P<run>[{letters}]++)|(?>(?:(?![{letters}])[\w{re.escape(marks)}])+)")


def _unspaced_letters() -> str:
    """Return the letters and marks of scripts without spaces, as the inside of a regex character class."""
    ideographs = "".join(f"{chr(first)}-{chr(last)}" for first, last in _IDEOGRAPHS)
    others = (code for first, last in _OTHER_BLOCKS for code in range(first, last + 1))
    return ideographs + re.escape("".join(chr(code) for code in others if _begins(code, "LM")))


def _begins(code: int, classes: str) -> bool:
    return category(chr(code))[0] in classes
