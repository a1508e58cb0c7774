"""Parse the sandbox's sentences back into events, for its oracle and its LLM."""

import re
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from itertools import product
from typing import Any

from synthbench.worlds.sandbox import morphology
from synthbench.worlds.sandbox.events import Event, Number
from synthbench.worlds.sandbox.realisation import (
    FORMS,
    QUANTITIES,
    Form,
    Register,
    WordedEvent,
    Wording,
    object_phrase,
    place_phrase,
)
from synthbench.worlds.sandbox.vocabulary import Concepts, Domain, domains, times

_Named = dict[str, list[tuple[str, str]]]
_SLOTS = ("attribute", "agent", "action", "object", "place", "time")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+")


def parse(text: str) -> Event | None:
    """Return the event that a sentence describes, None if it is outside the grammar."""
    return next((found.event for found in parses(text)), None)


def parses(text: str) -> Iterator[WordedEvent]:
    """Yield each event and wording that gives exactly this sentence; none if it is outside the grammar."""
    if not text:
        return
    lowered = text[0].lower() + text[1:]
    for domain in _candidate_domains(lowered):
        for form in FORMS:
            match = form_pattern(domain.name, form).fullmatch(lowered)
            if match is not None:
                found = readings(domain, form, match.groupdict())
                yield from (each for each in found if each.text == text)


def read_sentence(text: str) -> WordedEvent | None:
    """Parse a sentence despite a wrong first letter, full stop or blanks; None if outside the grammar."""
    words = " ".join(text.split())
    capitalised = words[:1].upper() + words[1:]
    bare = capitalised.rstrip(".!")
    for spelling in dict.fromkeys((capitalised, f"{bare}.", bare)):
        for found in parses(spelling):
            return found
    return None


def sentences_told(passage: str) -> list[WordedEvent]:
    """Parse the sentences of a passage; sentences outside the grammar are left out."""
    return [known for known in map(read_sentence, _SENTENCE_END.split(passage)) if known is not None]


def _candidate_domains(text: str) -> list[Domain]:
    """Return the domains with an object that occurs in the text."""
    return [domain for domain in domains().values() if _object_pattern(domain.name).search(text)]


@cache
def _object_pattern(domain: str) -> re.Pattern[str]:
    return re.compile(rf"\b{_alternatives(_objects(domain, 'headlines'))}\b")


@cache
def form_pattern(domain: str, form: Form) -> re.Pattern[str]:
    """Return a pattern for a form's sentences; their first letter must be lower-case.

    It also matches wrong agreement ("two men is"). So `parses` makes the sentence of each parsed event, and
    compares it with the text.
    """
    parts = []
    for position, piece in enumerate(form.pieces):
        parts.append(re.escape(piece) if position % 2 == 0 else _token_pattern(domain, form.register, piece))
    return re.compile("".join(parts))


def _token_pattern(domain: str, register: Register, token: str) -> str:
    if token == "agent":
        return _agent_pattern(domain, register)
    if token == "object":
        return _group("object", _objects(domain, register))
    if token in ("act", "acts", "acting", "acted", "noun"):
        return _group("action", _actions(domain, token))
    if token in ("place", "place_inside", "place_first"):
        return _circumstance("place", _places(domain, register), token)
    if token in ("time", "time_first"):
        return _circumstance("time", _times(), token)
    fixed = {"not": "(?P<negation> not)?", "nt": "(?P<negation> not|n't)?", "no": "(?P<negation>no )?"}
    return fixed[token] if token in fixed else {"do": "(?:do|does)"}.get(token, "(?:is|are)")


def _agent_pattern(domain: str, register: Register) -> str:
    quantities = [words for group in QUANTITIES[register].values() for words in group if words]
    quantity = _group("quantity", [*quantities, "an"] if register == "captions" else quantities)
    attribute = _group("attribute", _attributes(domain))
    return f"(?:{quantity} )?(?:{attribute} )?{_group('agent', _agents(domain))}"


def _circumstance(group: str, words: Iterable[str], token: str) -> str:
    pattern = _group(group, words)
    if token.endswith("_first"):
        return pattern
    return f" {pattern}" if token.endswith("_inside") else f"(?: {pattern})?"


def _group(name: str, words: Iterable[str]) -> str:
    return f"(?P<{name}>{_alternatives(words)})"


def _alternatives(words: Iterable[str]) -> str:
    return "(?:" + "|".join(re.escape(word) for word in sorted(set(words), key=lambda w: (-len(w), w))) + ")"


def readings(domain: Domain, form: Form, found: dict[str, str | None]) -> Iterator[WordedEvent]:
    """Yield each event and wording that a match of `form_pattern` may express.

    `found` holds the groups of the match.
    """
    token = next(piece for piece in form.pieces[1::2] if piece in ("act", "acts", "acting", "acted", "noun"))
    choices = product(
        _quantities(form.register, found["quantity"] or ""),
        _optional(_attributes(domain.name), found["attribute"]),
        _agents(domain.name)[found["agent"] or ""],
        _actions(domain.name, token)[found["action"] or ""],
        _objects(domain.name, form.register)[found["object"] or ""],
        _optional(_places(domain.name, form.register), found.get("place")),
        _optional(_times(), found.get("time")),
    )
    negation = found.get("negation") or ""
    for (number, quantity), *others in choices:
        meant: dict[str, Any] = {slot: each[0] for slot, each in zip(_SLOTS, others, strict=True)}
        told = {slot: each[1] for slot, each in zip(_SLOTS, others, strict=True)}
        if meant["action"] not in domain.scene(meant["object"]).actions:
            continue
        event = Event(domain=domain.name, number=number, is_negative=bool(negation), **meant)
        wording = Wording(form=form, quantity=quantity, negation=negation, **told)
        if form.tells_polarity(is_negative=event.is_negative):
            yield WordedEvent(event, wording)


def _quantities(register: Register, found: str) -> list[tuple[Number, str]]:
    words = "a" if found == "an" else found
    return [(number, words) for number, group in QUANTITIES[register].items() if words in group]


def _optional(named: _Named, found: str | None) -> list[tuple[str | None, str]]:
    return [(None, "")] if found is None else [*named[found]]


@cache
def _agents(domain: str) -> _Named:
    named = _named(domains()[domain].agents)
    for singular, meanings in list(named.items()):
        named.setdefault(morphology.plural(singular), []).extend(meanings)
    return named


@cache
def _objects(domain: str, register: Register) -> _Named:
    return _renamed(_named(domains()[domain].objects), lambda words: object_phrase(words, register))


@cache
def _places(domain: str, register: Register) -> _Named:
    return _renamed(_named(domains()[domain].places), lambda words: place_phrase(words, register))


@cache
def _actions(domain: str, token: str) -> _Named:
    actions = [action for scene in domains()[domain].scenes for action in scene.actions.values()]
    named: _Named = {}
    for action in actions:
        for words in action.nouns if token == "noun" else action.words:
            for inflected in _inflected(words, token):
                meanings = named.setdefault(inflected, [])
                if (action.name, words) not in meanings:
                    meanings.append((action.name, words))
    return named


@cache
def _attributes(domain: str) -> _Named:
    return _named(domains()[domain].attributes)


@cache
def _times() -> _Named:
    return _named(times())


def _named(concepts: Concepts) -> _Named:
    """Return word -> the concepts that it can express, each as (concept's name, word)."""
    named: _Named = {}
    for concept in concepts.values():
        for word in concept.words:
            named.setdefault(word, []).append((concept.name, word))
    return named


def _renamed(named: _Named, spell: Callable[[str], str]) -> _Named:
    """Return spelling -> meanings; words that `spell` spells the same share their meanings."""
    spelt: _Named = {}
    for words, meanings in named.items():
        spelt.setdefault(spell(words), []).extend(meanings)
    return spelt


def _inflected(words: str, token: str) -> tuple[str, ...]:
    if token == "acts":
        return (words, morphology.third_person(words))
    inflect = {"acting": morphology.gerund, "acted": morphology.participle}.get(token)
    return (inflect(words) if inflect else words,)
