"""The vocabulary of the sandbox: concepts with their synonyms, by domain."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property

from synthbench.worlds.sandbox.words import ATTRIBUTES, PEOPLE, PRIVATE_LIFE, PUBLIC_LIFE, TIMES, DomainWords


@dataclass(frozen=True)
class Concept:
    """One meaning and its words in their basic form; the first word is the concept's name."""

    words: tuple[str, ...]
    nouns: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The first word."""
        return self.words[0]


Concepts = Mapping[str, Concept]


@dataclass(frozen=True)
class Scene:
    """Actions and objects that all combine with each other.

    An action's `nouns` include their preposition ("repair of", "attack on"); objects include their article.
    """

    actions: Concepts
    objects: Concepts


@dataclass(frozen=True)
class Domain:
    """A domain of life: its agents, places and scenes."""

    name: str
    agents: Concepts
    attributes: Concepts
    places: Concepts
    scenes: tuple[Scene, ...]

    @cached_property
    def actions(self) -> Concepts:
        """The actions of all scenes."""
        return {name: concept for scene in self.scenes for name, concept in scene.actions.items()}

    @cached_property
    def objects(self) -> Concepts:
        """The objects of all scenes."""
        return {name: concept for scene in self.scenes for name, concept in scene.objects.items()}

    @cached_property
    def _scene_of_object(self) -> Mapping[str, Scene]:
        return {name: scene for scene in self.scenes for name in scene.objects}

    def scene(self, object_name: str) -> Scene:
        """Return the scene that an object belongs to."""
        return self._scene_of_object[object_name]


@cache
def domains() -> Mapping[str, Domain]:
    """Return name -> domain, of all domains."""
    return {words.name: _domain(words) for words in (*PRIVATE_LIFE, *PUBLIC_LIFE)}


def domain_names() -> tuple[str, ...]:
    """Return the names of all domains."""
    return tuple(domains())


@cache
def times() -> Concepts:
    """Return the times of day and year, which all domains share."""
    return _concepts(TIMES)


@cache
def people() -> Concepts:
    """Return the agents (man, woman, ...) that domains of private life share."""
    return _concepts(PEOPLE)


def _domain(words: DomainWords) -> Domain:
    agents = _concepts(words.agents)
    return Domain(
        name=words.name,
        agents={**agents, **people()} if words.people else agents,
        attributes=_concepts(ATTRIBUTES[words.agent_type]),
        places=_concepts(words.places),
        scenes=tuple(Scene(_concepts(actions), _concepts(objects)) for actions, objects in words.scenes),
    )


def _concepts(text: str) -> dict[str, Concept]:
    """Parse "chop|cut up; repair|mend: repair of": concepts, their words, and after a colon their nouns."""
    concepts = (_concept(item.strip()) for item in text.split(";"))
    return {concept.name: concept for concept in concepts}


def _concept(item: str) -> Concept:
    words, _, nouns = item.partition(":")
    return Concept(tuple(words.split("|")), tuple(nouns.strip().split("|")) if nouns else ())
