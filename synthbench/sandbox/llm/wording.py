"""Sentences of the grammar, read generously and told anew."""

from dataclasses import dataclass
from random import Random

from synthbench.sandbox.events import Event
from synthbench.sandbox.forms import Register
from synthbench.sandbox.parsing import parses
from synthbench.sandbox.realisation import Wording, draw_wording, sentence

_TRIES = 50


@dataclass(frozen=True, slots=True)
class Heard:
    """A sentence of the grammar as it is spelt there, what it tells, and in which words."""

    text: str
    event: Event
    wording: Wording

    @property
    def register(self) -> Register:
        """The register of its form."""
        return self.wording.form.register


def heard(text: str) -> Heard | None:
    """Read a sentence whose first letter, full stop or blanks may be wrong; None if the grammar has none."""
    words = " ".join(text.split())
    capitalised = words[:1].upper() + words[1:]
    bare = capitalised.rstrip(".!")
    for spelling in dict.fromkeys((capitalised, f"{bare}.", bare)):
        for event, wording in parses(spelling):
            return Heard(spelling, event, wording)
    return None


def tell(event: Event, register: Register, random: Random, but_not: str = "") -> str:
    """Return a sentence that tells the event, in other words than those of one that is known."""
    text = but_not
    for _ in range(_TRIES):
        text = sentence(event, draw_wording(event, register, random))
        if text != but_not:
            break
    return text
