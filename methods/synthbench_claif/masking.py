"""Masking of sentences by hashes: equal settings and sentence ids give equal masks."""

import math

from synthbench.api import hashed_share

MASK = "<mask>"


def masked(sentence: str, rate: float, merge: float, *of: object) -> str:
    """Return a sentence with the share `rate` of its words masked, rounded up; `of` seeds the choice.

    With probability `merge` (0.5 in the authors' released code), consecutive masks become one, so that the
    completion may have another length.
    """
    words = sentence.split()
    order = sorted(range(len(words)), key=lambda place: hashed_share(*of, rate, place, num_bytes=4))
    # 0.3 of 10 words are 3, not 4, although the product is slightly above 3.
    hidden = {*order[: math.ceil(round(rate * len(words), 9))]}
    left = [MASK if place in hidden else word for place, word in enumerate(words)]
    if hashed_share(*of, rate, "merge", num_bytes=4) < merge:
        left = [word for place, word in enumerate(left) if word != MASK or left[place - 1 : place] != [MASK]]
    return " ".join(left)
