"""Find texts without visible characters."""

from unicodedata import category

NUL = "\0"
HOLDS_NUL = "holds the character U+0000, which no text has; is the file damaged, or UTF-16?"
_BLANK_LETTERS = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
_SELECTORS = ((0xFE00, 0xFE0F), (0xE0100, 0xE01EF), (0x180B, 0x180F))
_OF_ASCII = "".join(map(chr, range(33))) + "\x7f"


def is_invisible(text: str) -> bool:
    """Return whether a text has no visible character: it is empty, blank or only U+200B, for example."""
    if text.isascii():
        return not text.strip(_OF_ASCII)
    return all(_is_invisible(character) for character in text)


def characters_of(value: object) -> str:
    """Return the end of a message that names up to 3 non-blank characters: " but for U+200B"; "" if none."""
    hidden = dict.fromkeys(value.split()) if isinstance(value, str) else {}
    codes = dict.fromkeys(f"U+{ord(character):04X}" for text in hidden for character in text)
    return f" but for {', '.join(list(codes)[:3])}" if codes else ""


def _is_invisible(character: str) -> bool:
    if category(character) in ("Cc", "Cf", "Zs", "Zl", "Zp") or character in _BLANK_LETTERS:
        return True
    return any(first <= ord(character) <= last for first, last in _SELECTORS)
