"""Sentences with masked words, drawn by hashes: equal settings and sentence ids make equal masks."""

import hashlib
import math

MASK = "<mask>"


def masked(sentence: str, rate: float, merge: float, *of: object) -> str:
    """Return a sentence with a share of its words masked, rounded up; a function of the arguments alone.

    With the chance `merge`, masks in a row become one, so that the length may change (the authors' released
    code; 0.5 there).
    """
    words = sentence.split()
    order = sorted(range(len(words)), key=lambda place: _number(*of, rate, place))
    # 0.3 of 10 words are 3: not 4, as the last bits of the product would have it.
    hidden = {*order[: math.ceil(round(rate * len(words), 9))]}
    left = [MASK if place in hidden else word for place, word in enumerate(words)]
    if _number(*of, rate, "merge") < merge:
        left = [word for place, word in enumerate(left) if word != MASK or left[place - 1 : place] != [MASK]]
    return " ".join(left)


def _number(*of: object) -> float:
    """Return a number in [0, 1)."""
    content = "\x1f".join(map(str, of)).encode(errors="surrogatepass")
    return int.from_bytes(hashlib.sha256(content).digest()[:4]) / 2**32
