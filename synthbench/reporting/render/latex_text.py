"""Plain text as ASCII LaTeX that any engine sets, with no character left that has a meaning."""

import unicodedata

_ASCII = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    # After \\ a bracket would be an argument and a star a variant of the command.
    "[": "{[}",
    "]": "{]}",
    "*": "{*}",
    "`": r"\textasciigrave{}",
    '"': r"\char34{}",
}
_SYMBOLS = {
    "–": r"\textendash{}",
    "—": r"\textemdash{}",
    "−": r"\ensuremath{-}",
    "‘": r"\textquoteleft{}",
    "’": r"\textquoteright{}",
    "“": r"\textquotedblleft{}",
    "”": r"\textquotedblright{}",
    "…": r"\ldots{}",
    "†": r"\dag{}",
    "‡": r"\ddag{}",
    "§": r"\S{}",
    "©": r"\copyright{}",
    "·": r"\ensuremath{\cdot}",
    "×": r"\ensuremath{\times}",
    "±": r"\ensuremath{\pm}",
    "≤": r"\ensuremath{\leq}",
    "≥": r"\ensuremath{\geq}",
    "≠": r"\ensuremath{\neq}",
    "≈": r"\ensuremath{\approx}",
    "→": r"\ensuremath{\rightarrow}",
    "←": r"\ensuremath{\leftarrow}",
    "°": r"\ensuremath{^{\circ}}",
    "∞": r"\ensuremath{\infty}",
    "ß": r"\ss{}",
    "æ": r"\ae{}",
    "Æ": r"\AE{}",
    "œ": r"\oe{}",
    "Œ": r"\OE{}",
    "ø": r"\o{}",
    "Ø": r"\O{}",
    "ł": r"\l{}",
    "Ł": r"\L{}",
    "ı": r"\i{}",
}
_LIGATURES = ("-", "'", ",")
_GREEK = tuple("αβγδεζηθικλμνξπρστυφχψωΓΔΘΛΞΠΣΥΦΨΩ")
_ACCENTS = {
    "\u0300": "`",
    "\u0301": "'",
    "\u0302": "^",
    "\u0303": "~",
    "\u0304": "=",
    "\u0306": "u",
    "\u0307": ".",
    "\u0308": '"',
    "\u030a": "r",
    "\u030b": "H",
    "\u030c": "v",
    "\u0323": "d",
    "\u0327": "c",
}
_BELOW = "\u0323\u0327"


def _greek(letter: str) -> str:
    _, size, _, name = unicodedata.name(letter).lower().replace("lamda", "lambda").split()
    return rf"\ensuremath{{\{name.title() if size == 'capital' else name}}}"


_KNOWN = {**_ASCII, **_SYMBOLS, **{letter: _greek(letter) for letter in _GREEK}}


def escape(text: str) -> str:
    """Return `text` as ASCII LaTeX that prints it; a character LaTeX can't print becomes its U+ number."""
    escaped = "".join(_escape_character(character) for character in unicodedata.normalize("NFC", text))
    for sign in _LIGATURES:
        while sign * 2 in escaped:
            escaped = escaped.replace(sign * 2, f"{sign}{{}}{sign}")
    return escaped


def _escape_character(character: str) -> str:
    if character in _KNOWN:
        return _KNOWN[character]
    if character.isspace():
        return " "
    if character.isascii() and character.isprintable():
        return character
    return _accented(character) or rf"\texttt{{U+{ord(character):04X}}}"


def _accented(character: str) -> str:
    parts = unicodedata.normalize("NFD", character)
    if len(parts) != 2 or not (parts[0].isascii() and parts[0].isalpha()) or parts[1] not in _ACCENTS:
        return ""
    dotless = parts[0] in "ij" and parts[1] not in _BELOW
    return rf"\{_ACCENTS[parts[1]]}{{{chr(92) if dotless else ''}{parts[0]}}}"
