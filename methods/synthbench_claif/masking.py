"""Masking of sentences by hashes: equal settings and sentence ids give equal masks."""

import hashlib
import math

MASK = "<mask>"


def masked(sentence: str, rate: float, merge: float, *of: object) -> str:
    """Return a sentence with a share of its words masked, rounded up; depends only on the arguments.

    With probability `merge`, consecutive masks become one, so that the length may change (the authors'
    released code; 0.5 there).
    """
    words = sentence.split()
    order = sorted(range(len(words)), key=lambda place: _number(*of, rate, place))
    # 0.3 of 10 words are 3, not 4, although the product is slightly above 3.
    hidden = {*order[: math.ceil(round(rate * len(words), 9))]}
    left = [MASK if place in hidden else word for place, word in enumerate(words)]
    if _number(*of, rate, "merge") < merge:
        left = [word for place, word in enumerate(left) if word != MASK or left[place - 1 : place] != [MASK]]
    return " ".join(left)


def _number(*of: object) -> float:
    """Return a number in [0, 1)."""
    content = "\x1f".join(map(str, of)).encode(errors="surrogatepass")
    return int.from_bytes(hashlib.sha256(content).digest()[:4]) / 2**32
