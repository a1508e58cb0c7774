"""Habits: what answers to one prompt have in common, such as few topics, sentence forms and kinds of change.

The prompt (instruction and exemplars, without the sentence in question) determines the favourites. Habits
choose only among possible answers, so they make none wrong.
"""

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from random import Random
from typing import Any, TypeVar

from synthbench.worlds.sandbox.events import Event
from synthbench.worlds.sandbox.llm.understanding import Message
from synthbench.worlds.sandbox.realisation import (
    FORMS,
    Form,
    Register,
    WordedEvent,
    Wording,
    draw_wording,
    sentence,
    tell,
)
from synthbench.worlds.sandbox.sampling import DECISIVE_CHANGES, draw_event
from synthbench.worlds.sandbox.vocabulary import domain_names, domains

Item = TypeVar("Item")

NUM_DOMAINS = 3
NUM_AGENTS = 2
NUM_OBJECTS = 3
NUM_FORMS = 2
COPIED_SHARE = 0.5
"""Probability that a word of a sentence is copied into its paraphrase, beyond chance."""
_DENIAL = ("polarity",)
_NUM_DRAWS = 60
_COPIED_SLOTS = ("quantity", "attribute", "agent", "object", "place", "time")


def prompt_of(messages: Sequence[Message], asked: str) -> str:
    """Return a prompt's id: a hash of all messages, without the last occurrence of the sentence `asked`."""
    texts = [text for _, text in messages]
    last = max((place for place, text in enumerate(texts) if asked and asked in text), default=None)
    if last is not None:
        before, _, after = texts[last].rpartition(asked)
        texts[last] = f"{before}\0{after}"
    said = [[role, text] for (role, _), text in zip(messages, texts, strict=True)]
    return hashlib.sha256(json.dumps(said).encode()).hexdigest()


@dataclass(frozen=True)
class Habits:
    """The favourites of one prompt, which `key` identifies."""

    key: str

    def domain(self, random: Random) -> str:
        """Draw one of the favourite domains."""
        return random.choice(self._domains[:NUM_DOMAINS])

    def event(self, names: Sequence[str], random: Random) -> Event:
        """Draw an event of a favourite domain in `names`, if possible with favourite agents and objects."""
        favourites = [name for name in self._domains if name in names][:NUM_DOMAINS]
        return _best(lambda: draw_event(favourites, random), self._strangeness)

    def contradiction(self, event: Event, draw: Callable[[], Event]) -> Event:
        """Return the prompt's favourite among the contradicting events that `draw` yields.

        Under every measured prompt, three real LLMs preferred a negation. So a negation is the favourite; if
        `draw` yields none, the favourite is the prompt's own kind of change.
        """
        favourites = (_DENIAL, self._change)

        def rank(other: Event) -> int:
            changed = changed_slots(event, other)
            return favourites.index(changed) if changed in favourites else len(favourites)

        return _best(draw, rank)

    def new(self, event: Event, register: Register, random: Random) -> str:
        """Describe an event in one of the favourite forms."""
        return sentence(event, self._wording(event, register, random))

    def paraphrase(self, known: WordedEvent, random: Random) -> str:
        """Describe a known sentence's event in another favourite form, copying many words."""
        wording = self._wording(known.event, known.register, random, but_not=known.wording.form)
        text = sentence(known.event, _with_copies(wording, known.wording, random))
        return text if text != known.text else tell(known.event, known.register, random, but_not=text)

    def _wording(
        self, event: Event, register: Register, random: Random, but_not: Form | None = None
    ) -> Wording:
        """Draw a wording in a favourite form; if no favourite suits the event, in one of the next rank."""

        def rank(wording: Wording) -> int:
            return len(FORMS) if wording.form == but_not else self._forms[wording.form]

        return _best(lambda: draw_wording(event, register, random), rank)

    def _strangeness(self, event: Event) -> int:
        agents, objects = self._casts[event.domain]
        return int(event.agent not in agents) + int(event.object not in objects)

    @cached_property
    def _casts(self) -> dict[str, tuple[frozenset[str], frozenset[str]]]:
        """Each domain's favourite agents, and favourite objects of one scene."""
        return {name: self._cast(name) for name in domain_names()}

    def _cast(self, domain: str) -> tuple[frozenset[str], frozenset[str]]:
        random, of = self._random(f"cast/{domain}"), domains()[domain]
        agents, objects = list(of.agents), list(random.choice(of.scenes).objects)
        return (
            frozenset(random.sample(agents, min(NUM_AGENTS, len(agents)))),
            frozenset(random.sample(objects, min(NUM_OBJECTS, len(objects)))),
        )

    @cached_property
    def _domains(self) -> tuple[str, ...]:
        return self._ordered(domain_names(), "domains")

    @cached_property
    def _change(self) -> tuple[str, ...]:
        changes = [change for change in DECISIVE_CHANGES if change != _DENIAL]
        return self._random("change").choice(changes)

    @cached_property
    def _forms(self) -> dict[Form, int]:
        """Form -> rank in its register: 0 for the `NUM_FORMS` favourites, 1 for the next `NUM_FORMS`, ..."""
        ranks: dict[Form, int] = {}
        num_ranked: dict[Register, int] = {}
        for form in self._ordered(FORMS, "forms"):
            place = num_ranked.get(form.register, 0)
            ranks[form] = place // NUM_FORMS
            num_ranked[form.register] = place + 1
        return ranks

    def _ordered(self, items: Sequence[Item], what: str) -> tuple[Item, ...]:
        return tuple(self._random(what).sample(items, len(items)))

    def _random(self, what: str) -> Random:
        return Random(f"sandbox-llm-habits/{self.key}/{what}")


def changed_slots(event: Event, other: Event) -> tuple[str, ...]:
    """Return which of action, agent and object differ; ("polarity",) if only one event is negated."""
    if event.is_negative != other.is_negative:
        return _DENIAL
    slots = ("action", "agent", "object")
    return tuple(slot for slot in slots if getattr(event, slot) != getattr(other, slot))


def _best(draw: Callable[[], Item], rank: Callable[[Item], int]) -> Item:
    """Draw until a result has rank 0; after `_NUM_DRAWS` draws, return the one with the lowest rank."""
    best = draw()
    lowest = rank(best)
    for _ in range(_NUM_DRAWS - 1):
        if lowest == 0:
            break
        drawn = draw()
        if (found := rank(drawn)) < lowest:
            best, lowest = drawn, found
    return best


def _with_copies(wording: Wording, source: Wording, random: Random) -> Wording:
    """Return a wording of the same event with some words copied from another wording."""
    slots = list(_COPIED_SLOTS)
    if ("noun" in wording.form.tokens) == ("noun" in source.form.tokens):
        slots.append("action")
    copied: dict[str, Any] = {slot: getattr(source, slot) for slot in slots if random.random() < COPIED_SHARE}
    return replace(wording, **copied)
