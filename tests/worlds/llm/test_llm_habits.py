"""Habits of the sandbox's LLM: similar answers to one prompt, different ones to others, all true."""

import hashlib
from collections import Counter
from itertools import combinations_with_replacement, islice, product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from llm_prompts import LISTS

from synthbench.worlds.sandbox.llm import LLMSettings
from synthbench.worlds.sandbox.llm.answering import Answers
from synthbench.worlds.sandbox.llm.habits import changed_slots, prompt_of
from synthbench.worlds.sandbox.parsing import read_sentence
from synthbench.worlds.sandbox.realisation import REGISTERS, WordedEvent
from synthbench.worlds.sandbox.sampling import DECISIVE_CHANGES, Scope, split_of
from synthbench.worlds.sandbox.sets import sentences
from synthbench.worlds.sandbox.vocabulary import domain_names

TEXTS = [drawn.sentence for drawn, _ in islice(sentences(Scope("train", 0, REGISTERS, domain_names())), 300)]
NAIVE = "Write 20 different sentences. Number them."
# Hash of the answers to the requests below from the LLM before it had habits, in this version of the world.
WITHOUT_HABITS = "9cd70c52b0c40a59b1d253bec367b2e3d343f3ff34564cc650437be6507c6eb4"
REQUESTS = (
    "Paraphrase: A man is playing a harp.",
    "Contradict: Two tired farmers are harvesting corn in the field at dawn.",
    "Give three paraphrases of this sentence: A man is playing a harp.",
    "Write 12 sentences on sports and cooking.",
    "Write 8 headlines.",
    "Paraphrase: She told us that nobody wants the same thing.",
    "hm",
)


def answer(text: str, index: int = 0, *, habits: float = 1.0, **more: Any) -> str:
    body = {"messages": [{"role": "user", "content": text}], "temperature": 1.0}
    return Answers(LLMSettings(habits=habits, **more), body).choice(index)


def known(text: str) -> WordedEvent:
    found = read_sentence(text)
    assert found is not None, text
    return found


def listed(prompt: str, index: int = 0, *, habits: float = 1.0, **more: Any) -> list[WordedEvent]:
    lines = answer(prompt, index, habits=habits, **more).split("\n")
    return [known(line.partition(". ")[2]) for line in lines]


def written(prompts: list[str], *, habits: float = 1.0) -> list[WordedEvent]:
    """Return the sentences of one list for each prompt."""
    return [each for index, prompt in enumerate(prompts) for each in listed(prompt, index, habits=habits)]


def test_without_habits_answers_are_as_before_habits_existed() -> None:
    found = hashlib.sha256()
    for more, text, index in product(({}, {"seed": 3, "noise": 0.3, "malformed": 0.2}), REQUESTS, range(4)):
        faults: dict[str, Any] = {**more, "refusals": 0.1} if more else {}
        found.update(answer(text, index, habits=0.0, **faults).encode() + b"\0")
    assert found.hexdigest() == WITHOUT_HABITS


def test_new_sentences_of_one_prompt_use_few_domains_agents_objects_and_forms() -> None:
    found = written([NAIVE] * 15)
    # Few stories have both favourites, so lists from one prompt repeat sentences.
    assert 200 < len({each.text for each in found}) < 280
    assert len({each.text for each in written([NAIVE] * 15, habits=0.0)}) > 290
    favourites = Counter(each.event.domain for each in found).most_common(3)
    assert sum(count for _, count in favourites) > 0.95 * len(found)
    forms = Counter(each.wording.form for each in found)
    # Below 1, since a favourite form that begins with the place does not suit events without one.
    assert sum(count for _, count in forms.most_common(2)) > 0.75 * len(found)
    for slot, most in (("agent", 2), ("object", 3)):
        things = Counter((each.event.domain, getattr(each.event, slot)) for each in found)
        assert sum(count for _, count in things.most_common(3 * most)) > 0.75 * len(found)


def test_other_prompts_and_other_seeds_of_the_server_have_other_favourites() -> None:
    prompts = [NAIVE, NAIVE.replace("different", "unlike"), f"{NAIVE} Please."]
    found = {frozenset(each.event.domain for each in listed(prompt)) for prompt in prompts}
    found |= {frozenset(each.event.domain for each in listed(NAIVE, seed=seed)) for seed in (1, 2)}
    assert len(found) == 5


def test_varied_prompts_stay_diverse() -> None:
    prompts = [
        f"Write 20 sentences on {one} and {other}."
        for one, other in combinations_with_replacement(domain_names(), 2)
    ]
    found = written(prompts)
    assert {each.event.domain for each in found} == set(domain_names())
    forms = Counter(each.wording.form for each in found)
    assert len(forms) >= 10
    assert max(forms.values()) < 0.25 * len(found)
    free = written(prompts, habits=0.0)
    for slot in ("agent", "object"):
        things = {(each.event.domain, getattr(each.event, slot)) for each in found}
        of_free = {(each.event.domain, getattr(each.event, slot)) for each in free}
        assert len(things) > 0.6 * len(of_free)


def test_the_setting_habits_is_the_share_of_answers_with_habits() -> None:
    favourites = {each.event.domain for each in written([NAIVE] * 5)}
    found = written([NAIVE] * 30, habits=0.5)
    # Answers without habits hit a favourite domain by chance: 3 of 15.
    share = sum(each.event.domain in favourites for each in found) / len(found)
    assert share == pytest.approx(0.5 + 0.5 * 3 / 15, abs=0.05)


def test_contradictions_negate_if_possible_and_otherwise_change_what_the_prompt_prefers() -> None:
    changes = {}
    for prompt in ("Contradict: {}", "Say the opposite: {}", "Negate this sentence: {}"):
        pairs = [(known(text).event, known(answer(prompt.format(text))).event) for text in TEXTS]
        counts = Counter(changed_slots(*pair) for pair in pairs)
        assert counts["polarity",] / len(TEXTS) == pytest.approx(0.6, abs=0.1)
        assert sum(count for _, count in counts.most_common(2)) > 0.98 * len(TEXTS)
        changes[prompt] = counts.most_common(2)[1][0]
    assert len(set(changes.values())) > 1
    assert set(changes.values()) <= set(DECISIVE_CHANGES)


def test_contradictions_of_one_prompt_have_few_forms() -> None:
    found = Counter(known(answer(f"Contradict: {text}")).wording.form for text in TEXTS)
    captions = Counter({form: count for form, count in found.items() if form.register == "captions"})
    assert sum(count for _, count in captions.most_common(2)) > 0.8 * captions.total()


def test_paraphrases_of_one_prompt_have_few_new_forms_and_copy_words() -> None:
    def copied(habits: float) -> float:
        """Return the share of a sentence's words that its paraphrase has at the same position."""
        pairs = [
            (known(text).wording, known(answer(f"Paraphrase: {text}", habits=habits)).wording)
            for text in TEXTS
        ]
        slots = ("quantity", "attribute", "agent", "object", "place", "time")
        same = [
            getattr(given, slot) == getattr(told, slot)
            for given, told in pairs
            for slot in slots
            if getattr(given, slot)
        ]
        return float(sum(same) / len(same))

    found = [(known(text).wording, known(answer(f"Paraphrase: {text}")).wording) for text in TEXTS]
    assert not any(given.form == told.form for given, told in found)
    captions = Counter(told.form for _, told in found if told.form.register == "captions")
    assert sum(count for _, count in captions.most_common(2)) > 0.7 * captions.total()
    # Half of the words are copied; the other half coincide as often as without habits.
    assert copied(1.0) == pytest.approx(0.5 + 0.5 * copied(0.0), abs=0.04)


def test_a_prompt_consists_of_all_messages_except_the_sentence_in_question() -> None:
    def prompt(last: str, exemplar: str = "A man swims.", instruction: str = "Paraphrase.") -> str:
        chat = [("system", instruction), ("user", f"Input: {exemplar}"), ("assistant", "A guy is swimming.")]
        return prompt_of([*chat, ("user", f"Input: {last}")], last)

    assert prompt("A boy runs.") == prompt("A dog barks.")
    # Equal even if an exemplar repeats the sentence.
    assert prompt("A man swims.") == prompt("A boy runs.")
    assert len({prompt("A."), prompt("A.", exemplar="Dogs bark."), prompt("A.", instruction="Reword.")}) == 3


@settings(max_examples=150)
@given(st.sampled_from(TEXTS), st.floats(0, 1), st.integers(0, 50), st.integers(0, 3))
def test_habits_make_no_answer_incorrect(text: str, habits: float, index: int, seed: int) -> None:
    of_given = known(text)
    positive = known(answer(f"Paraphrase: {text}", index, habits=habits, seed=seed))
    assert positive.event == of_given.event
    assert positive.register == of_given.register
    assert positive.text != text
    negative = known(answer(f"Contradict: {text}", index, habits=habits, seed=seed))
    assert set(changed_slots(of_given.event, negative.event)) in [set(change) for change in DECISIVE_CHANGES]
    assert split_of(negative.event) == split_of(of_given.event)
    assert (negative.event.domain, negative.event.place) == (of_given.event.domain, of_given.event.place)
    assert negative.register == of_given.register


@settings(max_examples=15)
@given(st.sampled_from(LISTS), st.floats(0, 1), st.integers(0, 20))
def test_lists_are_complete_with_any_habits(asked: tuple[str, int], habits: float, index: int) -> None:
    prompt, count = asked
    found, free = listed(prompt, index, habits=habits), listed(prompt, index, habits=0.0)
    assert len({each.text for each in found}) == len(found) == count
    assert {split_of(each.event) for each in found} == {"train"}
    assert {each.register for each in found} == {each.register for each in free}


def test_lists_with_topics_are_about_these_topics() -> None:
    found = listed("Write 30 news headlines about finance and healthcare.")
    assert {each.event.domain for each in found} == {"business", "medicine"}


@pytest.mark.parametrize("verb", ["paraphrases", "contradictions"])
@pytest.mark.parametrize("text", ["A girl is frying onions.", TEXTS[0]])
def test_several_versions_of_one_sentence_are_distinct_and_complete(verb: str, text: str) -> None:
    # The first sentence has six paraphrases and no more.
    found, free = (
        answer(f"Give me 15 {verb} of this sentence: {text}", habits=habits).split("\n")
        for habits in (1.0, 0.0)
    )
    assert len({line.partition(". ")[2] for line in found}) == len(found) == len(free)
