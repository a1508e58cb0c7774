"""The sandbox LLM fills masked words to a sentence of the grammar, and keeps the other words."""

from itertools import islice
from random import Random
from statistics import mean

from synthbench.worlds.sandbox.events import similarity
from synthbench.worlds.sandbox.llm.filling import MASK, filled, masked_in
from synthbench.worlds.sandbox.llm.understanding import AskedTask, understand
from synthbench.worlds.sandbox.parsing import read_sentence
from synthbench.worlds.sandbox.realisation import REGISTERS
from synthbench.worlds.sandbox.sampling import Scope, split_of
from synthbench.worlds.sandbox.sets import sentences
from synthbench.worlds.sandbox.vocabulary import domain_names

TEXTS = [drawn.sentence for drawn, _ in islice(sentences(Scope("train", 0, REGISTERS, domain_names())), 40)]


def masked(text: str, share: float, draw: Random) -> str:
    words = text.split()
    for place in draw.sample(range(len(words)), round(share * len(words))):
        words[place] = MASK
    return " ".join(words)


def similarities(share: float) -> list[float]:
    """Return how similar filled sentences are to those whose words were masked."""
    found = []
    for number, text in enumerate(TEXTS):
        answer = read_sentence(filled(masked(text, share, Random(number)), Random(number)))
        original = read_sentence(text)
        assert answer is not None and original is not None
        assert split_of(answer.event) == "train"
        found.append(similarity(answer.event, original.event))
    return found


def test_more_masks_give_less_similar_sentences() -> None:
    few, half, most = (mean(similarities(share)) for share in (0.1, 0.5, 0.8))
    assert few > half > most
    assert few > 0.7
    assert most < 0.55


def test_outside_the_grammar_each_mask_is_replaced_by_a_word() -> None:
    answer = filled(f"Zebras quietly {MASK} along {MASK}!", Random(0))
    assert answer.startswith("Zebras quietly ") and " along " in answer and MASK not in answer


def test_a_labelled_sentence_is_filled_and_requests_without_one_are_not() -> None:
    asked = f"Put words in place of each {MASK}.\nSentence: A {MASK} plays a guitar."
    assert understand([("user", asked)]).task is AskedTask.FILLING
    assert masked_in(asked) == f"A {MASK} plays a guitar."
    assert masked_in(f"What does {MASK} mean?") == ""
