"""The sandbox LLM's answers: right by the grammar, wrong at the configured rate, reproducible."""

import json
import re
from collections.abc import Mapping
from itertools import islice
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from llm_prompts import LISTS, OUTSIDE
from pydantic import ValidationError

from synthbench.worlds.sandbox.events import similarity
from synthbench.worlds.sandbox.llm import LLMSettings
from synthbench.worlds.sandbox.llm.answering import Answers
from synthbench.worlds.sandbox.llm.understanding import domains_of, domains_of_topic, register_of
from synthbench.worlds.sandbox.parsing import read_sentence
from synthbench.worlds.sandbox.realisation import REGISTERS, WordedEvent
from synthbench.worlds.sandbox.sampling import Scope, split_of
from synthbench.worlds.sandbox.sets import sentences
from synthbench.worlds.sandbox.vocabulary import domain_names

EVERYTHING = Scope("dev", 0, REGISTERS, domain_names())
TEXTS = [drawn.sentence for drawn, _ in islice(sentences(EVERYTHING), 200)]


def answer(text: str, index: int = 0, settings: LLMSettings | None = None, **body: Any) -> str:
    request = {"messages": [{"role": "user", "content": text}], **body}
    return Answers(settings or LLMSettings(), request).choice(index)


def known(text: str) -> WordedEvent:
    found = read_sentence(text)
    assert found is not None, text
    return found


def listed(text: str) -> list[str]:
    lines = text.split("\n")
    assert all(line.startswith(f"{number}. ") for number, line in enumerate(lines, 1)), text
    return [line.partition(". ")[2] for line in lines]


@pytest.mark.parametrize("text", TEXTS[:60])
def test_a_paraphrase_has_the_same_event_and_register_in_other_words(text: str) -> None:
    for index in range(3):
        paraphrase = answer(f"Paraphrase: {text}", index)
        assert paraphrase != text
        assert known(paraphrase).event == known(text).event
        assert known(paraphrase).register == known(text).register


@pytest.mark.parametrize("text", TEXTS[:60])
def test_a_contradiction_is_a_hard_negative_of_the_same_split(text: str) -> None:
    for index in range(3):
        event, other = known(text).event, known(answer(f"Contradict: {text}", index)).event
        slots = ("action", "object", "agent", "is_negative")
        changed = [slot for slot in slots if getattr(event, slot) != getattr(other, slot)]
        assert 1 <= len(changed) <= 2
        assert (other.domain, other.place, other.time) == (event.domain, event.place, event.time)
        assert split_of(other) == split_of(event)


def test_a_sentence_with_spelling_errors_is_not_returned_corrected() -> None:
    for text in TEXTS[:50]:
        careless = text[0].lower() + text[1:].rstrip(".")
        assert answer(f"Paraphrase: {careless}") != text


@pytest.mark.parametrize(("prompt", "count"), LISTS)
def test_a_list_has_the_requested_number_of_different_sentences(prompt: str, count: int) -> None:
    found = listed(answer(prompt))
    assert len(found) == len(set(found)) == count
    assert {split_of(known(text).event) for text in found} == {"train"}


def test_a_list_keeps_to_its_topics_and_genre() -> None:
    found = listed(answer("Write 30 news headlines about finance and healthcare."))
    assert {known(text).event.domain for text in found} == {"business", "medicine"}
    assert {known(text).register for text in found} == {"headlines"}
    captions = listed(answer("Write 30 sentences in the style of image captions on wildlife, etc."))
    assert {known(text).event.domain for text in captions} == {"animals"}
    assert {known(text).register for text in captions} == {"captions"}


@pytest.mark.parametrize(
    ("topic", "domain"),
    [
        ("recipes and culinary techniques", "cooking"),
        ("space exploration", "science"),
        ("courtroom drama", "crime"),
        ("COVID-19", "medicine"),
        ("teaching methods", "education"),
        ("guitars", "music"),
    ],
)
def test_topics_in_everyday_words_are_mapped_to_domains(topic: str, domain: str) -> None:
    assert domain in domains_of_topic(topic.lower())


def test_unknown_topics_leave_all_domains() -> None:
    assert domains_of("Write 5 sentences on ancient myths, astrology and dreams.") == domain_names()


@pytest.mark.parametrize(
    ("instruction", "register"),
    [
        ("sentences that may appear in newspapers, on image editing", "headlines"),
        ("captions of news photos", "captions"),
        ("sentences found in letters, about the press", "captions"),
        ("10 short headlines", "headlines"),
    ],
)
def test_the_genre_determines_the_register(instruction: str, register: str) -> None:
    assert register_of(instruction) == register


@pytest.mark.parametrize(
    "text", [*OUTSIDE, "I love New York!", "Never.", "x", "EU leaders agreed on a budget"]
)
def test_a_sentence_outside_the_grammar_is_lightly_rewritten(text: str) -> None:
    for index in range(4):
        paraphrase = answer(f'Paraphrase the sentence "{text}"', index)
        contradiction = answer(f'Contradict the sentence "{text}"', index)
        assert len({text, paraphrase, contradiction} - {""}) == 3


@pytest.mark.parametrize(
    ("text", "denial"),
    [
        ("The old man was walking home.", "The old man was not walking home."),
        ("She doesn't like the film.", "She does like the film."),
        ("You cannot park here.", "You can park here."),
        ("EU leaders never agreed.", "EU leaders agreed."),
    ],
)
def test_a_negation_is_removed_or_added(text: str, denial: str) -> None:
    assert answer(f"Contradict: {text}") == denial


def test_sentences_outside_the_grammar_are_rewritten_with_the_vocabularys_synonyms() -> None:
    assert answer("Paraphrase: The physician smiled.") == "The doctor smiled."
    found = {answer("Paraphrase: He slept in the garden.", index) for index in range(20)}
    assert found == {"In the backyard, he slept."}


def test_an_unclear_request_gets_a_short_friendly_answer() -> None:
    found = {answer("hm", index) for index in range(30)}
    assert len(found) > 1
    assert all(10 < len(text) < 150 for text in found)


@settings(max_examples=100)
@given(st.text(max_size=120), st.integers(0, 3))
def test_every_text_gets_an_answer(text: str, index: int) -> None:
    assert answer(text, index) == answer(text, index)
    for verb in ("Paraphrase", "Contradict"):
        assert isinstance(answer(f"{verb} this sentence: {text}", index), str)


def share(settings: LLMSettings, pattern: str) -> float:
    found = [answer(f"Paraphrase: {text}", index, settings) for text in TEXTS for index in range(5)]
    return sum(bool(re.search(pattern, text)) for text in found) / len(found)


def test_refusals_and_empty_answers_occur_at_the_configured_rate() -> None:
    assert share(LLMSettings(refusals=0.3), r"can't|cannot|unable") == pytest.approx(0.3, abs=0.05)
    assert share(LLMSettings(empty=0.2), r"^$") == pytest.approx(0.2, abs=0.05)
    assert share(LLMSettings(refusals=1.0), r"(?i)(paraphrase|rephrase)") == 1


def test_noise_is_the_rate_of_wrong_relations() -> None:
    settings = LLMSettings(noise=0.25)
    right = [
        known(answer(f"Paraphrase: {text}", index, settings)).event == known(text).event
        for text in TEXTS
        for index in range(5)
    ]
    assert 1 - sum(right) / len(right) == pytest.approx(0.25, abs=0.04)
    titles = listed(answer("Write 200 headlines on crime.", settings=settings))
    off_topic = sum(known(text).event.domain != "crime" for text in titles)
    assert off_topic / len(titles) == pytest.approx(0.25, abs=0.1)


def test_unread_is_the_rate_of_answers_about_another_sentence() -> None:
    settings = LLMSettings(unread=0.25)
    for text in TEXTS[:3]:
        about = [known(answer(f"Paraphrase: {text}", index, settings)) for index in range(200)]
        others = [each.event for each in about if each.event != known(text).event]
        assert len(others) / len(about) == pytest.approx(0.25, abs=0.1)
        assert len(set(others)) > len(others) * 0.8
        assert {each.register for each in about} == {known(text).register}
        contradictions = {answer(f"Contradict: {text}", index, LLMSettings(unread=1)) for index in range(50)}
        assert fmean(similarity(known(each).event, known(text).event) for each in contradictions) < 0.2


def test_malformed_answers_contain_the_correct_answer_in_another_form() -> None:
    settings = LLMSettings(malformed=1.0)
    seen = set()
    for text in TEXTS[:40]:
        found = answer(f"Paraphrase: {text}", 0, settings)
        seen.add(found.split()[0].strip('"'))
        assert read_sentence(found) is None or "\n" in found
        inside = [read_sentence(piece.strip('"')) for piece in re.split(r":\s+|\n\n", found)]
        assert [piece.event for piece in inside if piece] == [known(text).event]
    assert len(seen) > 5


def test_malformed_lists_have_a_preamble_another_numbering_or_another_count() -> None:
    settings = LLMSettings(malformed=1.0, habits=0.0)
    found = [answer("Write 6 headlines on crime.", index, settings) for index in range(60)]
    expected = r"(?:\d\. [^\n]+(?:\n|$)){6}"
    assert not any(re.fullmatch(expected, text) for text in found)
    assert any(text.startswith(("Sure", "Certainly")) for text in found)
    assert any(text.startswith("- ") for text in found)
    counts = {len(text.split("\n")) for text in found}
    assert {5, 7} <= counts


BODIES: list[Mapping[str, Any]] = [
    {"user": "me"},
    {"n": 3},
    {"max_tokens": 2},
    {"metadata": {}},
    {"stop": "x"},
]


@pytest.mark.parametrize("transport", BODIES)
def test_content_does_not_depend_on_sender_request_number_or_truncation(
    transport: Mapping[str, Any],
) -> None:
    plain = [answer(f"Contradict: {TEXTS[0]}", index, temperature=1.0) for index in range(4)]
    other = [answer(f"Contradict: {TEXTS[0]}", index, temperature=1.0, **transport) for index in range(4)]
    assert plain == other


def test_content_depends_on_the_seeds_the_sampling_and_the_index() -> None:
    def found(settings: LLMSettings | None = None, **body: Any) -> list[str]:
        return [answer(f"Contradict: {TEXTS[0]}", index, settings, **body) for index in range(8)]

    versions = [found(), found(LLMSettings(seed=1)), found(seed=7), found(temperature=0.7), found(top_p=0.5)]
    assert len({tuple(version) for version in versions}) == len(versions)
    assert all(len(set(version)) > 3 for version in versions)


def test_at_temperature_zero_all_choices_are_equal_whatever_the_requests_seed() -> None:
    found = {
        answer(f"Contradict: {TEXTS[0]}", i, temperature=0, seed=seed) for i in range(5) for seed in (1, 2)
    }
    assert len(found) == 1


def test_service_faults_do_not_change_the_content() -> None:
    shaky = LLMSettings(rate_limited=0.3, server_errors=0.3, drops=0.3, latency=5, faults_by="arrival")
    assert answer(f"Paraphrase: {TEXTS[0]}", settings=shaky) == answer(f"Paraphrase: {TEXTS[0]}")


@pytest.mark.parametrize(
    "given",
    [
        {"noise": 1.5},
        {"habits": 1.01},
        {"habits": -0.1},
        {"refusals": 0.6, "empty": 0.6},
        {"drops": 1.0, "server_errors": 0.1},
        {"seed": -1},
    ],
)
def test_impossible_settings_are_refused(given: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        LLMSettings(**given)


def test_the_documented_answer_is_the_actual_one() -> None:
    page = (Path(__file__).parents[3] / "docs" / "sandbox_llm.md").read_text(encoding="utf-8")
    request, shown = re.findall(r"-d '(\{.*?\})'\n(\{.*?\})\n```", page, re.DOTALL)[0]
    body, response = json.loads(request), json.loads(shown)
    answers = Answers(LLMSettings(), body)
    assert [choice["message"]["content"] for choice in response["choices"]] == [
        answers.choice(index) for index in range(body["n"])
    ]


def test_answers_are_counted_by_kind() -> None:
    body = {"messages": [{"role": "user", "content": f"Paraphrase: {TEXTS[0]}"}]}
    assert Answers(LLMSettings(), body).summary(3) == "paraphrase"
    for fault in ("refusals", "empty", "malformed"):
        always = LLMSettings.model_validate({fault: 1.0})
        assert Answers(always, body).summary(2) == fault.replace("refusals", "refusal")
    sometimes = Answers(LLMSettings(empty=0.5), body)
    num_empty = [sometimes.choice(index) for index in range(20)].count("")
    assert 0 < num_empty < 20
    assert set(sometimes.summary(20).split(", ")) == {f"{num_empty} empty", f"{20 - num_empty} paraphrase"}
