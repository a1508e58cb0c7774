"""Escape plain text for LaTeX, and estimate how wide it is printed."""

import unicodedata

_MEANINGS = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "`": r"\textasciigrave{}",
    '"': r"\char34{}",
    **{sign: f"\\{sign}" for sign in "{}$&#%_"},
    # After \\, LaTeX would take a bracket as an argument and a star as a variant of the command.
    **{sign: f"{{{sign}}}" for sign in "[]*"},
}
_MATH = {
    "−": "-", "≤": r"\leq", "≥": r"\geq", "≠": r"\neq", "≈": r"\approx", "∞": r"\infty",
    "→": r"\rightarrow", "←": r"\leftarrow",
}  # fmt: skip
_LIGATURES = ("-", "'", ",")
_GREEK = "αβγδεζηθικλμνξπρστυφχψωΓΔΘΛΞΠΣΥΦΨΩ"
_PUNCTUATION = "–—‘’“”…†‡‰€"
_UNKNOWN = "«»ÐÞðþĄąĐđĘęĦħĮįĸĿŀŉŊŋŦŧŲųſ"
"""Latin letters and signs that pdflatex's default font lacks."""
_MARKS = "\u0300\u0301\u0302\u0303\u0304\u0306\u0307\u0308\u030a\u030b\u030c\u0323\u0327"
_ACCENTS = dict(zip(_MARKS, "`'^~=u.\"rHvdc", strict=True))
_BELOW = "\u0323\u0327"


def escape(text: str) -> str:
    """Return LaTeX that prints `text`; characters that LaTeX can't print become their U+ numbers."""
    escaped = "".join(_escape_character(character) for character in unicodedata.normalize("NFC", text))
    for sign in _LIGATURES:
        while sign * 2 in escaped:
            escaped = escaped.replace(sign * 2, f"{sign}{{}}{sign}")
    return escaped


def _escape_character(character: str) -> str:
    if character in _MEANINGS:
        return _MEANINGS[character]
    if character.isspace():
        return " "
    if character.isprintable() and (character.isascii() or _is_in_fonts(character)):
        return character
    if character in _MATH or character in _GREEK:
        return rf"\ensuremath{{{_MATH.get(character) or _greek(character)}}}"
    return _accented(character) or rf"\texttt{{U+{ord(character):04X}}}"


def _is_in_fonts(character: str) -> bool:
    """Return whether LaTeX's default fonts have a character."""
    return character in _PUNCTUATION or ("\u00a1" <= character <= "\u017e" and character not in _UNKNOWN)


def _greek(letter: str) -> str:
    _, size, _, name = unicodedata.name(letter).lower().replace("lamda", "lambda").split()
    return rf"\{name.title() if size == 'capital' else name}"


def _accented(character: str) -> str:
    parts = unicodedata.normalize("NFD", character)
    if len(parts) != 2 or not (parts[0].isascii() and parts[0].isalpha()) or parts[1] not in _ACCENTS:
        return ""
    dotless = parts[0] in "ij" and parts[1] not in _BELOW
    return rf"\{_ACCENTS[parts[1]]}{{{chr(92) if dotless else ''}{parts[0]}}}"


_NARROW, _WIDE = frozenset("ijltfrI.,:;|!()[]' "), frozenset("mwMW@%−±+<")


def estimated_width(text: str, font_size: float) -> float:
    """Return about how wide LaTeX prints a text, in points."""
    letters = {**dict.fromkeys(_NARROW, 0.32), **dict.fromkeys(_WIDE, 0.8)}
    widths = (letters.get(letter, 0.72 if letter.isupper() else 0.51) for letter in text)
    return font_size * sum(widths)
