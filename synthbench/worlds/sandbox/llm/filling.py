"""Fill masked words: the unmasked words determine slots of the event, all other slots are drawn."""

import re
from dataclasses import replace
from difflib import SequenceMatcher
from functools import cache
from random import Random
from typing import Any

from synthbench.worlds.sandbox.events import Event
from synthbench.worlds.sandbox.realisation import Register, tell
from synthbench.worlds.sandbox.sampling import draw_event, split_of
from synthbench.worlds.sandbox.vocabulary import Concepts, domain_names, domains, times

MASK = "<mask>"
_LABELLED = re.compile(
    r"^\W*(?:masked )?(?:sentence|text|input)\s*:\s*(?P<text>.+)$", re.IGNORECASE | re.MULTILINE
)
_CONTENT = re.compile(
    r"\b(?!(?:being|couple|does|from|group|near|pair|several|some|there|three|with)\b)[^\W\d_]{4,}"
)
_NEGATION = re.compile(r"\b(?:not|no)\b|n't\b")
_MANY = 3
"""A text without words of the grammar, but with this many others, is outside the grammar."""
_NUM_DRAWS = 40
_FILLERS = ("new", "small", "old", "good", "whole", "other", "next", "long")


def masked_in(text: str) -> str:
    """Return the sentence with masked words that a message asks to fill, "" without one."""
    labelled = [match["text"].strip() for match in _LABELLED.finditer(text) if MASK in match["text"]]
    return labelled[-1] if labelled else ""


def filled(masked: str, random: Random) -> str:
    """Return a sentence of the grammar, of the train split, that keeps the recognised words.

    If no draw with these words is of the train split, the event is any of the domain. In a text outside the
    grammar, each mask becomes a filler word, such as "new".
    """
    left = masked.replace(MASK, " ").lower()
    register: Register = "captions" if masked.rstrip().endswith((".", MASK)) else "headlines"
    known = {name: _known(name, left) for name in domain_names()}
    most = max(map(len, known.values()))
    if not most and len(_CONTENT.findall(left)) >= _MANY:
        return re.sub(re.escape(MASK), lambda _: random.choice(_FILLERS), masked)
    name = random.choice([each for each, slots in known.items() if len(slots) == most])
    drawn = (_event(name, known[name], left, random) for _ in range(_NUM_DRAWS))
    events = [event for event in drawn if split_of(event) == "train"]
    texts = [tell(event, register, random) for event in events] or [
        tell(draw_event([name], random), register, random)
    ]
    words = masked.lower().split()
    return max(texts, key=lambda text: SequenceMatcher(None, words, text.lower().split()).ratio())


def _event(name: str, known: dict[str, Any], left: str, random: Random) -> Event:
    """Draw an event with the slots in `known`; an action that does not suit the object is redrawn."""
    domain, event = domains()[name], draw_event([name], random)
    if "object" not in known and "action" in known:
        scenes = [scene for scene in domain.scenes if known["action"] in scene.actions]
        event = replace(event, object=random.choice(list(random.choice(scenes).objects)))
    event = replace(event, **known, is_negative=bool(_NEGATION.search(left)))
    actions = domain.scene(event.object).actions
    return event if event.action in actions else replace(event, action=random.choice(list(actions)))


def _known(name: str, left: str) -> dict[str, Any]:
    """Return slot -> the domain's concept that occurs in `left`, the text without masks."""
    domain = domains()[name]
    of_slots = {
        "agent": domain.agents,
        "action": domain.actions,
        "object": domain.objects,
        "attribute": domain.attributes,
        "place": domain.places,
        "time": times(),
    }
    found = {slot: _mentioned(concepts, left) for slot, concepts in of_slots.items()}
    return {slot: concept for slot, concept in found.items() if concept is not None}


def _mentioned(concepts: Concepts, left: str) -> str | None:
    """Return the concept of the longest word that occurs in `left` in any form; None if no concept occurs."""
    found = [
        (len(word), name)
        for name, concept in concepts.items()
        for word in (*concept.words, *concept.nouns)
        if _pattern(word).search(left)
    ]
    return max(found)[1] if found else None


@cache
def _pattern(word: str) -> re.Pattern[str]:
    """Return a pattern of a word's forms: the word without article and final e, and any ending."""
    bare = re.sub(r"^(?:a|an|the|some) ", "", word)
    return re.compile(rf"\b{re.escape(bare.removesuffix('e'))}")
