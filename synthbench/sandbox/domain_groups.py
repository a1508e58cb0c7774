"""Conventions about domains, so that experiments mean the same ones.

No labelled text of the held-out domain is trained on: its test sets tell how far an encoder carries beyond
what it was taught. (The shipped checkpoints have read unlabelled text of all domains.)
Of the domain that is known by its name, data are written from the name alone: text of it is for tests only.
"""

from collections.abc import Mapping
from functools import cache

from synthbench.sandbox.vocabulary import domain_names

HELD_OUT = "medicine"
KNOWN_BY_NAME = "science"


@cache
def domain_groups() -> Mapping[str, tuple[str, ...]]:
    """Return what each name of a group stands for."""
    apart = (HELD_OUT, KNOWN_BY_NAME)
    return {
        "in-domain": tuple(name for name in domain_names() if name not in apart),
        "held-out": (HELD_OUT,),
        "known-by-name": (KNOWN_BY_NAME,),
    }
