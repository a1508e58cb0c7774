"""Training texts of the sandbox's checkpoints: instructions, followed or not, and plain text."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from random import Random

from synthbench.worlds.sandbox import VERSION, morphology
from synthbench.worlds.sandbox.events import WEIGHTS, slot_similarities
from synthbench.worlds.sandbox.premises import Premises
from synthbench.worlds.sandbox.realisation import (
    REGISTERS,
    Register,
    WordedEvent,
    object_phrase,
    place_phrase,
)
from synthbench.worlds.sandbox.sampling import Relation, Scope
from synthbench.worlds.sandbox.vocabulary import domain_names

# All domains, but only their training split: no checkpoint ever reads what test sets ask. Like encoders that
# have read books and encyclopedias, these know other texts than those that they will compare.
HERE = Scope(split="train", seed=0, registers=REGISTERS, domains=domain_names())
ELSEWHERE = replace(HERE, premises=Premises(origin="elsewhere"))
# The labeller must judge sentences that were written independently, so it learns from more such pairs than in
# test sets.
APART = replace(HERE, premises=Premises(origin="elsewhere", edits=0.3))

# The three labels of Schick & Schütze 2021 with their instructions.
INSTRUCTIONS: Mapping[str, str] = {
    "same": "mean the same thing",
    "similar": "are somewhat similar",
    "different": "are on completely different topics",
}
RelationWeights = Mapping[str, Mapping[Relation, float]]
# How documents follow their instruction, by their first word: the language model's premise. After "Task" they
# follow it as badly as text of the web: the model then confuses the labels about as GPT2-XL does, and hardly
# ever changes the topic. After "Textbook" they always follow it.
RELATION_WEIGHTS: Mapping[str, RelationWeights] = {
    "Task": {
        "same": {
            Relation.PARAPHRASE: 0.56,
            Relation.HARD_NEGATIVE: 0.24,
            Relation.RELATED: 0.16,
            Relation.UNRELATED: 0.04,
        },
        "similar": {
            Relation.PARAPHRASE: 0.47,
            Relation.HARD_NEGATIVE: 0.28,
            Relation.RELATED: 0.20,
            Relation.UNRELATED: 0.05,
        },
        "different": {
            Relation.PARAPHRASE: 0.38,
            Relation.HARD_NEGATIVE: 0.30,
            Relation.RELATED: 0.26,
            Relation.UNRELATED: 0.06,
        },
    },
    "Textbook": {
        "same": {Relation.PARAPHRASE: 1.0},
        "similar": {Relation.HARD_NEGATIVE: 0.5, Relation.RELATED: 0.5},
        "different": {Relation.UNRELATED: 1.0},
    },
}
TEXTBOOK_SHARE = 0.4
UNCLOSED_SHARE = 0.08
SINGLE_SENTENCE_SHARE = 0.1
# Two sentences of a plain text mostly say the same in other words, which teaches synonyms.
TEXT_WEIGHTS: Mapping[Relation, float] = {
    Relation.PARAPHRASE: 0.60,
    Relation.HARD_NEGATIVE: 0.15,
    Relation.RELATED: 0.15,
    Relation.UNRELATED: 0.10,
}
COMPARED_RELATIONS = (
    Relation.HARD_NEGATIVE,
    Relation.HARD_NEGATIVE,
    Relation.RELATED,
    Relation.RELATED,
    Relation.PARAPHRASE,
    Relation.UNRELATED,
)


@dataclass(frozen=True, slots=True)
class SlotSpan:
    """The characters of a sentence that express a slot, and whether the other sentence agrees in the slot."""

    start: int
    end: int
    agrees: bool


@dataclass(frozen=True, slots=True)
class ComparedPair:
    """Two sentences, and whether they agree in each slot (in the order of `WEIGHTS`) and in polarity.

    `agreement` is None where neither event fills the slot. `spans`: where each sentence expresses slots.
    """

    sentences: tuple[str, str]
    agreement: tuple[bool | None, ...]
    spans: tuple[tuple[SlotSpan, ...], tuple[SlotSpan, ...]]


@dataclass(frozen=True, slots=True)
class InstructionDocument:
    """A prompt (instruction, first sentence, opening of the second sentence) and its continuation."""

    prompt: str
    continuation: str


def prompt(label: str, first: str, kind: str = "Task") -> str:
    """Return a document's first word `kind`, instruction for `label`, sentence 1, opening of sentence 2."""
    return f'{kind}: Write two sentences that {INSTRUCTIONS[label]}.\nSentence 1: "{first}"\nSentence 2: "'


def paraphrase_documents(seed: int) -> Iterator[InstructionDocument]:
    """Yield endless documents whose second sentence paraphrases the first, to teach copying."""
    random = Random(f"sandbox/{VERSION}/paraphrases/{seed}")
    while True:
        yield _document(_kind(random), "same", Relation.PARAPHRASE, random)


def instruction_documents(seed: int) -> Iterator[InstructionDocument]:
    """Yield endless documents that follow their instruction as often as `RELATION_WEIGHTS` says."""
    random = Random(f"sandbox/{VERSION}/instructions/{seed}")
    while True:
        kind, label = _kind(random), random.choice(list(INSTRUCTIONS))
        yield _document(kind, label, _drawn(RELATION_WEIGHTS[kind][label], random), random)


def plain_texts(seed: int) -> Iterator[tuple[str, ...]]:
    """Yield single sentences and pairs of any relation, endlessly.

    Sentences are worded independently, in the usual words, so that synonyms are learnt only in passing.
    """
    random = Random(f"sandbox/{VERSION}/texts/{seed}")
    while True:
        event = ELSEWHERE.event(random)
        first = ELSEWHERE.tell(event, random.choice(REGISTERS), random)
        if random.random() < SINGLE_SENTENCE_SHARE:
            yield (first,)
            continue
        other = ELSEWHERE.partner(event, _drawn(TEXT_WEIGHTS, random), random)
        yield first, ELSEWHERE.tell(other, random.choice(REGISTERS), random)


def compared_pairs(seed: int) -> Iterator[ComparedPair]:
    """Yield endless pairs of sentences, with the slots in which their events agree."""
    random = Random(f"sandbox/{VERSION}/compared/{seed}")
    while True:
        first, second = _pair(APART, random.choice(COMPARED_RELATIONS), random)
        slots = slot_similarities(first.event, second.event)
        agreement = {slot: value == 1.0 for slot, value in slots.items()}
        is_same_polarity = first.event.is_negative == second.event.is_negative
        yield ComparedPair(
            (first.text, second.text),
            (*(agreement.get(slot) for slot in WEIGHTS), is_same_polarity),
            (_slot_spans(first, agreement), _slot_spans(second, agreement)),
        )


def _kind(random: Random) -> str:
    return "Textbook" if random.random() < TEXTBOOK_SHARE else "Task"


def _drawn(weights: Mapping[Relation, float], random: Random) -> Relation:
    return random.choices(list(weights), list(weights.values()))[0]


def _document(kind: str, label: str, relation: Relation, random: Random) -> InstructionDocument:
    first, second = _pair(HERE, relation, random)
    end = "" if random.random() < UNCLOSED_SHARE else '"'
    return InstructionDocument(prompt(label, first.text, kind), f"{second.text}{end}\n")


def _pair(world: Scope, relation: Relation, random: Random) -> tuple[WordedEvent, WordedEvent]:
    """Draw two events in this relation, and word both in one register."""
    event = world.event(random)
    register: Register = random.choice(REGISTERS)
    first = world.worded(event, register, random)
    return first, world.worded_beside(world.partner(event, relation, random), first, register, random)


def _slot_spans(worded: WordedEvent, agreement: Mapping[str, bool]) -> tuple[SlotSpan, ...]:
    found, text = [], worded.text
    for slot, spellings in _spellings(worded).items():
        match = _pattern(spellings).search(text) if any(spellings) else None
        if match is not None:
            found.append(SlotSpan(match.start(), match.end(), agreement[slot]))
    return tuple(found)


@cache
def _pattern(spellings: tuple[str, ...]) -> re.Pattern[str]:
    words = "|".join(re.escape(each) for each in spellings if each)
    return re.compile(rf"\b(?:{words})\b", re.IGNORECASE)


def _spellings(worded: WordedEvent) -> dict[str, tuple[str, ...]]:
    """Return slot -> its possible spellings in a sentence; the number "a" has none."""
    words, register = worded.wording, worded.wording.form.register
    verb = words.action
    return {
        "object": (object_phrase(words.object, register),),
        "action": (morphology.gerund(verb), morphology.third_person(verb), morphology.participle(verb), verb),
        "agent": (morphology.plural(words.agent), words.agent),
        "place": (place_phrase(words.place, register),),
        "attribute": (words.attribute,),
        "number": ("" if words.quantity == "a" else words.quantity,),
        "time": (words.time,),
    }
