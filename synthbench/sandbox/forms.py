"""The sentence forms of the two registers."""

import re
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from synthbench.sandbox.events import Event, Number

Register = Literal["captions", "headlines"]
REGISTERS: tuple[Register, ...] = ("captions", "headlines")

QUANTITIES: dict[Register, dict[Number, tuple[str, ...]]] = {
    "captions": {
        "one": ("a",),
        "two": ("two", "a couple of"),
        "three": ("three",),
        "several": ("several", "a few"),
    },
    "headlines": {
        "one": ("",),
        "two": ("two", "pair of"),
        "three": ("three", "trio of"),
        "several": ("several", "group of"),
    },
}
NEGATIONS: dict[str, tuple[str, ...]] = {"not": (" not",), "nt": (" not", "n't"), "no": ("no ",)}
_TOKEN = re.compile(r"{(\w+)}")


@dataclass(frozen=True)
class Form:
    """One way to say an event.

    Tokens of the template: agent, object (noun phrases); act, acts, acting, acted (the verb), noun (its noun
    with preposition); be, do (agreeing with the agent), object_be; place and time (after a blank, may be
    empty), place_first and time_first (must be told); not, nt, no (nothing in an affirmative sentence).
    """

    register: Register
    template: str
    polarity: Literal["both", "affirmative", "negative"] = "both"

    @cached_property
    def pieces(self) -> tuple[str, ...]:
        """The template cut into literal text and tokens, which alternate; the first is text."""
        return tuple(_TOKEN.split(self.template))

    @cached_property
    def tokens(self) -> frozenset[str]:
        """The names of the tokens."""
        return frozenset(self.pieces[1::2])

    @cached_property
    def negations(self) -> tuple[str, ...]:
        """The ways in which this form denies."""
        return next((NEGATIONS[token] for token in self.pieces[1::2] if token in NEGATIONS), ())

    def tells_polarity(self, *, is_negative: bool) -> bool:
        """Say whether the form has affirmative (or negative) sentences."""
        return self.polarity == "both" or (self.polarity == "negative") == is_negative

    def suits(self, event: Event, *, has_noun: bool) -> bool:
        """Say whether the form can tell an event whose action has (or lacks) a noun."""
        return (
            self.tells_polarity(is_negative=event.is_negative)
            and (has_noun or "noun" not in self.tokens)
            and (event.place is not None or not self.tokens & {"place_first", "place_inside"})
            and (event.time is not None or "time_first" not in self.tokens)
        )


FORMS = (
    Form("captions", "{agent} {be}{nt} {acting} {object}{place}{time}."),
    Form("captions", "{agent} {acts} {object}{place}{time}.", "affirmative"),
    Form("captions", "{agent} {do}{nt} {act} {object}{place}{time}.", "negative"),
    Form("captions", "{object} {object_be}{nt} being {acted} by {agent}{place}{time}."),
    Form("captions", "{object} {object_be}{nt} {acted} by {agent}{place}{time}."),
    Form("captions", "{place_first}, {agent} {be}{nt} {acting} {object}{time}."),
    Form("captions", "{place_first}, {object} {object_be}{nt} being {acted} by {agent}{time}."),
    Form("captions", "{time_first}, {agent} {be}{nt} {acting} {object}{place}."),
    Form("captions", "there {be} {agent} {acting} {object}{place}{time}.", "affirmative"),
    Form("captions", "there {be} {agent} who {be}{nt} {acting} {object}{place}{time}."),
    Form("captions", "{agent} {acting} {object}{place}{time}.", "affirmative"),
    Form("headlines", "{agent} {acts} {object}{place}{time}", "affirmative"),
    Form("headlines", "{agent} {do}{nt} {act} {object}{place}{time}", "negative"),
    Form("headlines", "{agent}{not} {acting} {object}{place}{time}"),
    Form("headlines", "{object}{not} {acted} by {agent}{place}{time}"),
    Form("headlines", "{object}{not} {acted}{place_inside} by {agent}{time}"),
    Form("headlines", "{no}{noun} {object} by {agent}{place}{time}"),
    Form("headlines", "{no}{noun} {object}{place_inside} by {agent}{time}"),
)
