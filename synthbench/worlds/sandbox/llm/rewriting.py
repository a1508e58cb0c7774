"""Rewrite sentences outside the grammar slightly: a synonym, another word order, a negation."""

import re
from collections.abc import Iterator
from functools import cache
from random import Random

from synthbench.worlds.sandbox import morphology
from synthbench.worlds.sandbox.vocabulary import Concept, domains, times

_AUXILIARIES = r"is|are|was|were|has|have|had|can|could|will|would|shall|should|may|might|must|does|do|did"
_DENIED = re.compile(rf"\b({_AUXILIARIES})(?:n't| not)\b", re.IGNORECASE)
_CANNOT = re.compile(r"\b(?:cannot|can't)\b", re.IGNORECASE)
_AFFIRMED = re.compile(rf"\b({_AUXILIARIES})\b(?!\?)", re.IGNORECASE)
_NO_LONGER = re.compile(r"\b(?:never|hardly ever|no longer) ", re.IGNORECASE)
_CIRCUMSTANCE = re.compile(
    r"^(?P<rest>\w+ .+?) (?P<moved>(?:in|at|near|behind|during) "
    r"(?:(?:a|an|the|his|her|its|their|this|that) )?[\w'-]+(?: [\w'-]+)?)(?P<end>[.!]?)$"
)
_FIRST = re.compile(
    r"^(?P<moved>(?:In|On|At|Near|Behind|During|After|Before|Under|Outside) [^,]+), "
    r"(?P<rest>.+?)(?P<end>[.!]?)$"
)
_FRAMES = ("In other words, {}", "Put differently, {}", "That is to say, {}", "In short, {}")
_DENIALS = ("It is not true that {}", "It is not the case that {}", "Nobody would say that {}")


def reworded(text: str, random: Random) -> str:
    """Return another text with the same meaning, as far as the vocabulary allows."""
    replaced = _with_synonym(text, random)
    moved = _moved(replaced)
    if moved != text:
        return moved
    return random.choice(_FRAMES).format(_uncapitalised(text))


def denied(text: str, random: Random) -> str:
    """Return a negation of the text."""
    if _CANNOT.search(text):
        return _CANNOT.sub("can", text, count=1)
    if _DENIED.search(text):
        return _DENIED.sub(r"\1", text, count=1)
    if _NO_LONGER.search(text):
        return _capitalised(_NO_LONGER.sub("", text, count=1), like=text)
    if _AFFIRMED.search(text):
        return _AFFIRMED.sub(r"\1 not", text, count=1)
    return random.choice(_DENIALS).format(_uncapitalised(text))


def _with_synonym(text: str, random: Random) -> str:
    """Replace one word or phrase, drawn at random, by a synonym; without known synonyms, change nothing."""
    known = _synonyms()
    found = [match for match in _words_pattern().finditer(text) if match[0].lower() in known]
    if not found:
        return text
    match = random.choice(found)
    other = random.choice(known[match[0].lower()])
    before, after = text[: match.start()], text[match.end() :]
    before = re.sub(r"\b([Aa])n? $", lambda article: _article(article[1], other), before)
    return before + _capitalised(other, like=match[0]) + after


def _article(first_letter: str, noun: str) -> str:
    return first_letter + morphology.article(noun)[1:] + " "


def _moved(text: str) -> str:
    """Move a circumstance from the end to the beginning, or back."""
    first = _FIRST.match(text)
    if first:
        return _capitalised(f"{first['rest']} {_uncapitalised(first['moved'])}{first['end']}", like="A")
    last = _CIRCUMSTANCE.match(text)
    if last:
        return _capitalised(f"{last['moved']}, {_uncapitalised(last['rest'])}{last['end']}", like="A")
    return text


@cache
def _words_pattern() -> re.Pattern[str]:
    words = sorted(_synonyms(), key=lambda word: (-len(word), word))
    return re.compile(rf"\b(?:{'|'.join(map(re.escape, words))})\b", re.IGNORECASE)


@cache
def _synonyms() -> dict[str, tuple[str, ...]]:
    """Return for each inflected word its synonyms in the same inflection."""
    found: dict[str, dict[str, None]] = {}
    for forms in _inflected_concepts():
        for word in forms:
            found.setdefault(word, {}).update(dict.fromkeys(other for other in forms if other != word))
    return {word: tuple(others) for word, others in found.items() if others}


def _inflected_concepts() -> Iterator[tuple[str, ...]]:
    """Yield sets of interchangeable words: one for each concept and inflection."""
    for domain in domains().values():
        for agent in domain.agents.values():
            yield agent.words
            yield tuple(morphology.plural(word) for word in agent.words)
        for action in domain.actions.values():
            for inflect in (morphology.gerund, morphology.third_person, morphology.participle):
                yield tuple(inflect(word) for word in action.words)
        for thing in domain.objects.values():
            yield from _without_articles(thing)
        for place in domain.places.values():
            yield place.words
    for time in times().values():
        yield time.words


def _without_articles(thing: Concept) -> Iterator[tuple[str, ...]]:
    """Yield the object's words with "a" or "an", then those with "some", without the article."""
    for articles in (("a", "an"), ("some",)):
        yield tuple(
            word.partition(" ")[2]
            for word in thing.words
            if word.partition(" ")[0] in articles and " " in word
        )


def _capitalised(text: str, *, like: str) -> str:
    return text[:1].upper() + text[1:] if like[:1].isupper() else text


def _uncapitalised(text: str) -> str:
    """Return a text for use within a sentence; recognised names and "I" keep their capital."""
    first = text.split()[0] if text.split() else ""
    is_name = first in ("I", "I'm", "I've") or (first.isupper() and len(first) > 1)
    return text if is_name else text[:1].lower() + text[1:]
