"""What the sandbox's checkpoints learn from: instructions that are followed imperfectly, and plain text."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from random import Random

from synthbench.sandbox import VERSION
from synthbench.sandbox.events import WEIGHTS, Event, slot_similarities
from synthbench.sandbox.forms import REGISTERS
from synthbench.sandbox.realisation import draw_wording, sentence
from synthbench.sandbox.sampling import Relation, draw_event, draw_partner, split_of
from synthbench.sandbox.vocabulary import domain_names

# The three labels of Schick & Schütze 2021 and the phrase that asks for each.
INSTRUCTIONS: Mapping[str, str] = {
    "same": "mean the same thing",
    "similar": "are somewhat similar",
    "different": "are on completely different topics",
}
# How documents follow their instruction. A model that has read them confuses the labels about as GPT2-XL
# does: many "different" sentences are still similar, about half of the "same" ones are not the same.
RELATION_WEIGHTS: Mapping[str, Mapping[Relation, float]] = {
    "same": {
        Relation.PARAPHRASE: 0.62,
        Relation.HARD_NEGATIVE: 0.25,
        Relation.RELATED: 0.10,
        Relation.UNRELATED: 0.03,
    },
    "similar": {
        Relation.PARAPHRASE: 0.20,
        Relation.HARD_NEGATIVE: 0.40,
        Relation.RELATED: 0.35,
        Relation.UNRELATED: 0.05,
    },
    "different": {
        Relation.PARAPHRASE: 0.05,
        Relation.HARD_NEGATIVE: 0.25,
        Relation.RELATED: 0.35,
        Relation.UNRELATED: 0.35,
    },
}
UNCLOSED_SHARE = 0.08
SINGLE_SENTENCE_SHARE = 0.3
COMPARED_RELATIONS = (
    Relation.HARD_NEGATIVE,
    Relation.HARD_NEGATIVE,
    Relation.RELATED,
    Relation.RELATED,
    Relation.PARAPHRASE,
    Relation.UNRELATED,
)


@dataclass(frozen=True, slots=True)
class ComparedPair:
    """Two sentences, and for each slot (in the order of `WEIGHTS`) and the polarity whether they agree.

    None where neither of them tells of the slot.
    """

    first: str
    second: str
    agreement: tuple[bool | None, ...]


@dataclass(frozen=True, slots=True)
class Document:
    """An instruction with its first sentence, up to the opened second one; and what follows."""

    prompt: str
    continuation: str


def prompt(label: str, first: str) -> str:
    """Return the beginning of a document: the instruction of `label`, sentence 1, an opened sentence 2."""
    return f'Task: Write two sentences that {INSTRUCTIONS[label]}.\nSentence 1: "{first}"\nSentence 2: "'


def paraphrase_documents(seed: int) -> Iterator[Document]:
    """Yield documents without end whose second sentence always means the same: the lesson in copying."""
    random = Random(f"sandbox/{VERSION}/paraphrases/{seed}")
    while True:
        yield _document("same", Relation.PARAPHRASE, random)


def instruction_documents(seed: int) -> Iterator[Document]:
    """Yield documents without end that follow their instruction as `RELATION_WEIGHTS` says."""
    random = Random(f"sandbox/{VERSION}/instructions/{seed}")
    while True:
        label = random.choice(list(INSTRUCTIONS))
        weights = RELATION_WEIGHTS[label]
        relation = random.choices(list(weights), list(weights.values()))[0]
        yield _document(label, relation, random)


def plain_texts(seed: int) -> Iterator[tuple[str, ...]]:
    """Yield, without end, one sentence or two that might stand in one text, in whatever relation."""
    random = Random(f"sandbox/{VERSION}/texts/{seed}")
    while True:
        events = _two_events(random.choice(list(Relation)), random)
        first, second = _told(events, random)
        yield (first,) if random.random() < SINGLE_SENTENCE_SHARE else (first, second)


def compared_pairs(seed: int) -> Iterator[ComparedPair]:
    """Yield pairs without end with what they agree in."""
    random = Random(f"sandbox/{VERSION}/compared/{seed}")
    while True:
        events = _two_events(random.choice(COMPARED_RELATIONS), random)
        slots = slot_similarities(*events)
        agreement = tuple(slots[slot] == 1.0 if slot in slots else None for slot in WEIGHTS)
        is_same_polarity = events[0].is_negative == events[1].is_negative
        yield ComparedPair(*_told(events, random), (*agreement, is_same_polarity))


def training_event(random: Random) -> Event:
    """Draw an event of the training split: what test sets ask about is never read by a checkpoint."""
    while True:
        event = draw_event(domain_names(), random)
        if split_of(event) == "train":
            return event


def _document(label: str, relation: Relation, random: Random) -> Document:
    first, second = _told(_two_events(relation, random), random)
    end = "" if random.random() < UNCLOSED_SHARE else '"'
    return Document(prompt(label, first), f"{second}{end}\n")


def _two_events(relation: Relation, random: Random) -> tuple[Event, Event]:
    first = training_event(random)
    second = draw_partner(first, relation, domain_names(), random)
    while split_of(second) != "train":
        second = draw_partner(first, relation, domain_names(), random)
    return first, second


def _told(events: tuple[Event, Event], random: Random) -> tuple[str, str]:
    """Say both events in one register."""
    register = random.choice(REGISTERS)
    first, second = (sentence(event, draw_wording(event, register, random)) for event in events)
    return first, second
