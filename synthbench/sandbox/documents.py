"""What the sandbox's checkpoints learn from: instructions that are followed imperfectly, and plain text."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from random import Random

from synthbench.sandbox import VERSION
from synthbench.sandbox.events import Event
from synthbench.sandbox.forms import REGISTERS, Register
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
        Relation.PARAPHRASE: 0.85,
        Relation.HARD_NEGATIVE: 0.10,
        Relation.RELATED: 0.04,
        Relation.UNRELATED: 0.01,
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


def sentence_pairs(seed: int) -> Iterator[tuple[str, str, bool]]:
    """Yield pairs without end, and whether both sentences mean the same: half of them do."""
    random = Random(f"sandbox/{VERSION}/pairs to read/{seed}")
    others = [relation for relation in Relation if relation is not Relation.PARAPHRASE]
    while True:
        is_same = random.random() < 0.5
        relation = Relation.PARAPHRASE if is_same else random.choice(others)
        yield (*_two_sentences(relation, random), is_same)


def training_event(random: Random) -> Event:
    """Draw an event of the training split: what test sets ask about is never read by a checkpoint."""
    while True:
        event = draw_event(domain_names(), random)
        if split_of(event) == "train":
            return event


def tell(event: Event, register: Register, random: Random) -> str:
    """Say an event in words drawn at random."""
    return sentence(event, draw_wording(event, register, random))


def _document(label: str, relation: Relation, random: Random) -> Document:
    first, second = _two_sentences(relation, random)
    end = "" if random.random() < UNCLOSED_SHARE else '"'
    return Document(prompt(label, first), f"{second}{end}\n")


def _two_sentences(relation: Relation, random: Random) -> tuple[str, str]:
    register = random.choice(REGISTERS)
    first = training_event(random)
    second = draw_partner(first, relation, domain_names(), random)
    while split_of(second) != "train":
        second = draw_partner(first, relation, domain_names(), random)
    return tell(first, register, random), tell(second, register, random)
