"""Turn events into sentences: the words, and the sentence forms of the two registers."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property, partial
from random import Random
from typing import Literal, TypeVar

from synthbench.worlds.sandbox import VERSION, morphology
from synthbench.worlds.sandbox.events import Event, Number
from synthbench.worlds.sandbox.premises import DEFAULT, Origin, Premises
from synthbench.worlds.sandbox.vocabulary import Concepts, domains, times

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
    """One sentence form for events.

    Tokens of the template:
    - agent, object: noun phrases.
    - act, acts, acting, acted: the verb; noun: the action's noun, with its preposition.
    - be, do: agree with the agent; object_be: agrees with the object.
    - place, time: a blank and the words; empty if the event has none.
    - place_inside, place_first, time_first: only for events with a place or a time; place_inside starts with
      a blank.
    - not, nt, no: the negation; empty in affirmative sentences.
    """

    register: Register
    template: str
    polarity: Literal["both", "affirmative", "negative"] = "both"

    @cached_property
    def pieces(self) -> tuple[str, ...]:
        """The template split into literal text and tokens, alternating, text first."""
        return tuple(_TOKEN.split(self.template))

    @cached_property
    def tokens(self) -> frozenset[str]:
        """The names of the tokens."""
        return frozenset(self.pieces[1::2])

    @cached_property
    def negations(self) -> tuple[str, ...]:
        """The form's negation words, such as " not" and "n't"; () if it has none."""
        return next((NEGATIONS[token] for token in self.pieces[1::2] if token in NEGATIONS), ())

    def tells_polarity(self, *, is_negative: bool) -> bool:
        """Return whether the form can express an event of this polarity."""
        return self.polarity == "both" or (self.polarity == "negative") == is_negative

    def suits(self, event: Event, *, has_noun: bool) -> bool:
        """Return whether the form can express an event; `has_noun`: its action has a noun."""
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


_ARTICLES = ("a ", "an ", "some ")
Option = TypeVar("Option")
_RETELLINGS = 50


@dataclass(frozen=True, slots=True)
class Wording:
    """The form and words that express an event; "" for empty slots.

    `action` is a verb's basic form, or its noun if the form takes a noun.
    """

    form: Form
    quantity: str
    attribute: str
    agent: str
    action: str
    object: str
    place: str
    time: str
    negation: str


@dataclass(frozen=True, slots=True)
class WordedEvent:
    """An event and its wording."""

    event: Event
    wording: Wording

    @property
    def register(self) -> Register:
        """The register of its form."""
        return self.wording.form.register

    @property
    def text(self) -> str:
        """The sentence."""
        return sentence(self.event, self.wording)


def sentence(event: Event, wording: Wording) -> str:
    """Return the English sentence: captions end with a full stop, headlines leave out articles."""
    values = _token_values(event, wording)
    pieces = enumerate(wording.form.pieces)
    text = "".join(values[piece] if position % 2 else piece for position, piece in pieces)
    return text[0].upper() + text[1:]


def draw_wording(
    event: Event,
    register: Register,
    random: Random,
    premises: Premises = DEFAULT,
    like: WordedEvent | None = None,
) -> Wording:
    """Draw a form that fits the event, and words for its slots.

    Form and words are each the usual ones with probability `premises.usual_words`. `like` is an event already
    worded in this register: its form is kept if it fits, its words where both events agree.
    """
    domain = domains()[event.domain]
    scene = domain.scene(event.object)
    action = scene.actions[event.action]
    usual = partial(_draw_words, event, random, premises)
    form = _form(event, register, usual, like, has_noun=bool(action.nouns))
    options = {
        "quantity": QUANTITIES[register][event.number],
        "attribute": _words(domain.attributes, event.attribute),
        "agent": _words(domain.agents, event.agent),
        "action": action.nouns if "noun" in form.tokens else action.words,
        "object": _words(scene.objects, event.object),
        "place": _words(domain.places, event.place),
        "time": _words(times(), event.time),
    }
    words = {told: usual(told, each) for told, each in options.items()}
    negation = random.choice(form.negations) if event.is_negative else ""
    if like is not None:
        words |= _words_of(like, event, options)
    return Wording(form=form, negation=negation, **words)


def tell(event: Event, register: Register, random: Random, but_not: str = "") -> str:
    """Return a sentence for the event: the first of 50 drawn that differs from `but_not`, else `but_not`."""
    text = but_not
    for _ in range(_RETELLINGS):
        text = sentence(event, draw_wording(event, register, random))
        if text != but_not:
            break
    return text


def _form(
    event: Event,
    register: Register,
    draw: Callable[[str, tuple[Form, ...]], Form],
    like: WordedEvent | None,
    *,
    has_noun: bool,
) -> Form:
    if like is not None and like.wording.form.suits(event, has_noun=has_noun):
        return like.wording.form
    forms = tuple(form for form in FORMS if form.register == register)
    return draw(f"form/{register}", tuple(form for form in forms if form.suits(event, has_noun=has_noun)))


def _words_of(like: WordedEvent, event: Event, options: Mapping[str, tuple[str, ...]]) -> dict[str, str]:
    """Return slot -> word of `like`, where both events have the same value and `options` has the word.

    `options` may lack a word: domains may use different words for a concept, and a form may need a noun
    instead of a verb.
    """
    words = {told: getattr(like.wording, told) for told in options}
    slots = {"quantity": "number"}
    return {
        told: each
        for told, each in words.items()
        if each in options[told]
        and getattr(event, slots.get(told, told)) == getattr(like.event, slots.get(told, told))
    }


def _draw_words(
    event: Event, random: Random, premises: Premises, slot: str, options: tuple[Option, ...]
) -> Option:
    """Draw one of the options, or take the usual one for this action and object."""
    chosen = random.choice(options)
    if random.random() < premises.usual_words:
        what = f"{event.domain}/{event.action}/{event.object}/{slot}"
        return options[_usual(premises.origin, what, len(options))]
    return chosen


@cache
def _usual(origin: Origin, what: str, num_options: int) -> int:
    return Random(f"{origin}/{VERSION}/usual/{what}").randrange(num_options)


def object_phrase(words: str, register: Register) -> str:
    """Return an object as spelt in the register: headlines leave out its article."""
    if register == "headlines":
        for article in _ARTICLES:
            words = words.removeprefix(article)
    return words


def place_phrase(words: str, register: Register) -> str:
    """Return a place as spelt in the register: headlines leave out its articles."""
    if register == "headlines":
        return " ".join(word for word in words.split() if word not in ("a", "an", "the"))
    return words


def _words(concepts: Concepts, name: str | None) -> tuple[str, ...]:
    return ("",) if name is None else concepts[name].words


def _token_values(event: Event, wording: Wording) -> dict[str, str]:
    register = wording.form.register
    is_single = event.number == "one"
    verb = wording.action
    place, time = place_phrase(wording.place, register), wording.time
    return {
        "agent": _agent_phrase(wording, is_single=is_single),
        "object": object_phrase(wording.object, register),
        "act": verb,
        "acts": morphology.third_person(verb) if is_single else verb,
        "acting": morphology.gerund(verb),
        "acted": morphology.participle(verb),
        "noun": wording.action,
        "be": "is" if is_single else "are",
        "do": "does" if is_single else "do",
        "object_be": "is" if wording.object.startswith(_ARTICLES) else "are",
        "place": f" {place}" if place else "",
        "place_inside": f" {place}",
        "time": f" {time}" if time else "",
        "place_first": place,
        "time_first": time,
        "not": wording.negation,
        "nt": wording.negation,
        "no": wording.negation,
    }


def _agent_phrase(wording: Wording, *, is_single: bool) -> str:
    noun = wording.agent if is_single else morphology.plural(wording.agent)
    words = f"{wording.attribute} {noun}" if wording.attribute else noun
    quantity = morphology.article(words) if wording.quantity == "a" else wording.quantity
    return f"{quantity} {words}" if quantity else words
