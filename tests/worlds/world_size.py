"""The numbers of words and sentences in the sandbox's world, for docs/sandbox.md."""

from collections.abc import Iterable, Iterator

from synthbench.worlds.sandbox.events import NUMBERS
from synthbench.worlds.sandbox.realisation import FORMS, QUANTITIES, Form
from synthbench.worlds.sandbox.vocabulary import Concepts, Domain, Scene, domains, times

_ARTICLES = {"a", "an", "the", "some", "no"}
_PREPOSITIONS = {
    "of",
    "on",
    "in",
    "at",
    "by",
    "to",
    "for",
    "from",
    "before",
    "after",
    "over",
    "near",
    "behind",
}
_PARTICLES = {"beside", "along", "outside", "during", "close", "up", "down", "out", "off"}


def content_words() -> frozenset[str]:
    """Return the distinct content words of all concepts, in their basic form."""
    phrases = set(_phrases(times()))
    for domain in domains().values():
        for concepts in (domain.agents, domain.attributes, domain.places, domain.actions, domain.objects):
            phrases.update(_phrases(concepts))
    words = {word for phrase in phrases for word in phrase.split()}
    return frozenset(words - _ARTICLES - _PREPOSITIONS - _PARTICLES)


def _phrases(concepts: Concepts) -> Iterator[str]:
    for concept in concepts.values():
        yield from concept.words
        yield from concept.nouns


def num_sentences(chosen: Iterable[Domain]) -> int:
    """Return how many distinct sentences the grammar has in these domains.

    Counts wordings; no two wordings give the same sentence, as every sentence has one parse.
    """
    return sum(
        _num_wordings(domain, scene, form) for domain in chosen for scene in domain.scenes for form in FORMS
    )


def _num_wordings(domain: Domain, scene: Scene, form: Form) -> int:
    polarities = int(form.tells_polarity(is_negative=False))
    if form.tells_polarity(is_negative=True):
        polarities += len(form.negations)
    agents = sum(len(QUANTITIES[form.register][number]) for number in NUMBERS)
    agents *= (1 + _num_words(domain.attributes)) * _num_words(domain.agents)
    actions = sum(
        len(action.nouns if "noun" in form.tokens else action.words) for action in scene.actions.values()
    )
    places = _num_words(domain.places) + int("place" in form.tokens)
    num_times = _num_words(times()) + int("time" in form.tokens)
    return polarities * agents * actions * _num_words(scene.objects) * places * num_times


def _num_words(concepts: Concepts) -> int:
    return sum(len(concept.words) for concept in concepts.values())
