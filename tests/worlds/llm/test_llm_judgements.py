"""The sandbox LLM's judgements of sentences: right by the grammar, wrong at the configured rate."""

import json
from itertools import islice
from statistics import correlation
from typing import Any

import pytest

from synthbench.llm.judging import Question
from synthbench.llm.logprobs import read_logprobs
from synthbench.llm.requests import ChatAnswer
from synthbench.plugins.labellers import Judge
from synthbench.worlds.sandbox.events import similarity
from synthbench.worlds.sandbox.llm import LLMSettings
from synthbench.worlds.sandbox.llm.answering import Answers
from synthbench.worlds.sandbox.llm.requests import MODEL, RequestError, completion, read_request
from synthbench.worlds.sandbox.llm.understanding import AskedTask, understand
from synthbench.worlds.sandbox.parsing import read_sentence
from synthbench.worlds.sandbox.questions import answers
from synthbench.worlds.sandbox.realisation import REGISTERS
from synthbench.worlds.sandbox.sampling import Scope
from synthbench.worlds.sandbox.sets import pairs
from synthbench.worlds.sandbox.vocabulary import domain_names

EVERYTHING = Scope("test", 0, REGISTERS, domain_names())
PAIRS = [drawn for drawn, _ in islice(pairs(EVERYTHING), 150)]
HONEST = LLMSettings(habits=0.0)
SAME = Question(prompt="Do these mean the same?\nSentence 1: {sentence1}\nSentence 2: {sentence2}")
DIFFERENT = Question(prompt='Does "{sentence1}" differ in meaning from "{sentence2}"?')
CONTRADICTS = Question(
    prompt="Premise: {sentence1}\nHypothesis: {sentence2}\nDoes it contradict the premise?"
)
GRADED = Question(
    prompt="Rate how similar in meaning the sentences are.\nA: {sentence1}\nB: {sentence2}", grades=(0, 5)
)


def asked(question: Question, settings: LLMSettings, *texts: str, index: int = 0) -> str:
    names = ("sentence1", "sentence2") if len(texts) == 2 else ("anchor", "positive", "negative")
    request = question.request("", dict(zip(names, texts, strict=False)))
    body: dict[str, Any] = {"messages": list(request.messages), **request.sampling}
    return Answers(settings, body).choice(index)


def truth(first: str, second: str) -> float:
    known = read_sentence(first), read_sentence(second)
    assert known[0] and known[1]
    return similarity(known[0].event, known[1].event)


def share(question: Question, settings: LLMSettings, limit: float = 0.9) -> float:
    """Return how often the answer agrees with the truth."""
    right = 0
    for pair in PAIRS:
        value = question.read(asked(question, settings, pair.sentence1, pair.sentence2)).value
        right += value == float(truth(pair.sentence1, pair.sentence2) >= limit)
    return right / len(PAIRS)


def test_an_honest_judge_agrees_with_the_grammar() -> None:
    assert share(SAME, HONEST) == 1.0
    for pair in PAIRS:
        value = truth(pair.sentence1, pair.sentence2)
        said = [
            asked(question, HONEST, pair.sentence1, pair.sentence2)
            for question in (DIFFERENT, CONTRADICTS, GRADED)
        ]
        assert said == [
            "yes" if value < 0.9 else "no",
            "yes" if 0.5 <= value < 0.9 else "no",
            str(round(5 * value)),
        ]


def test_the_labellers_default_question_is_understood() -> None:
    for pair in PAIRS[:50]:
        assert asked(Judge(), HONEST, pair.sentence1, pair.sentence2) == str(
            round(5 * truth(pair.sentence1, pair.sentence2))
        )


def test_noise_is_the_share_of_wrong_answers() -> None:
    assert share(SAME, LLMSettings(habits=0.0, noise=1.0)) == 0.0
    assert 0.7 < share(SAME, LLMSettings(habits=0.0, noise=0.2)) < 0.9
    wrong = LLMSettings(habits=0.0, noise=1.0)
    for pair in PAIRS[:30]:
        grade = asked(GRADED, wrong, pair.sentence1, pair.sentence2)
        assert grade != str(round(5 * truth(pair.sentence1, pair.sentence2)))
        assert grade in "012345"


def test_a_judge_with_habits_errs_where_common_words_mislead() -> None:
    habitual = LLMSettings(habits=1.0)
    assert 0.5 < share(SAME, habitual) < 1.0
    grades = [asked(GRADED, habitual, pair.sentence1, pair.sentence2) for pair in PAIRS]
    truths = [str(round(5 * truth(pair.sentence1, pair.sentence2))) for pair in PAIRS]
    assert 0.1 < sum(map(str.__eq__, grades, truths)) / len(PAIRS) < 0.9


def test_labels_may_be_inside_a_line() -> None:
    inline = Question(prompt="Do both say the same? A: {sentence1} B: {sentence2}")
    for pair in PAIRS[:20]:
        expected = asked(SAME, HONEST, pair.sentence1, pair.sentence2)
        assert asked(inline, HONEST, pair.sentence1, pair.sentence2) == expected


def test_three_sentences_are_judged_as_a_triplet() -> None:
    question = Question(
        prompt="Anchor: {anchor}\nPositive: {positive}\nNegative: {negative}\n"
        "Does the positive mean the same as the anchor, and the negative not?"
    )
    same = next(pair for pair in PAIRS if truth(pair.sentence1, pair.sentence2) == 1.0)
    other = next(pair for pair in PAIRS if truth(pair.sentence1, same.sentence1) < 0.9)
    texts = same.sentence1, same.sentence2, other.sentence1
    assert asked(question, HONEST, *texts) == "yes"
    assert asked(question, HONEST, texts[0], texts[2], texts[1]) == "no"
    assert asked(question, HONEST, texts[0], texts[1], texts[0]) == "no"


def test_sentences_outside_the_grammar_are_compared_by_their_words() -> None:
    assert asked(GRADED, HONEST, "What a lovely day!", "What a lovely day!") == "5"
    assert asked(GRADED, HONEST, "What a lovely day!", "Prices rose in May.") == "0"


def test_a_sentence_of_the_grammar_is_judged_fluent() -> None:
    question = Question(prompt='Is this fluent English?\nSentence: "{anchor}"')
    assert asked(question, HONEST, PAIRS[0].sentence1, "", "") == "yes"
    assert asked(question, HONEST, "day lovely a what", "", "") == "no"


def test_malformed_and_refused_answers_give_the_correct_verdict_or_none() -> None:
    for settings in (LLMSettings(habits=0.0, malformed=1.0), LLMSettings(habits=0.0, refusals=1.0)):
        for question, exact in ((SAME, lambda value: float(value >= 0.9)), (GRADED, None)):
            for index, pair in enumerate(PAIRS[:60]):
                said = question.read(asked(question, settings, pair.sentence1, pair.sentence2, index=index))
                value = truth(pair.sentence1, pair.sentence2)
                right = exact(value) if exact else round(5 * value) / 5
                assert said.value in (None, right)


@pytest.mark.parametrize(
    "text",
    [
        "Paraphrase the sentence below.\nSentence: A chef slices potatoes.",
        "Write 12 sentences on sports and cooking, of 5 to 10 words each.",
        'Say yes to this: paraphrase "A chef slices potatoes in the kitchen."',
    ],
)
def test_requests_for_sentences_are_not_taken_for_judgements(text: str) -> None:
    assert understand([("user", text)]).task is not AskedTask.JUDGEMENT


def test_an_explained_judgement_names_common_slots_and_has_the_same_verdict() -> None:
    for question, label in ((SAME, "Answer: "), (GRADED, "Score: ")):
        explained = question.model_copy(update={"explanation": True})
        for pair in PAIRS[:20]:
            texts = pair.sentence1, pair.sentence2
            explanation, answer = asked(explained, HONEST, *texts).splitlines()
            assert explanation.startswith("They share ")
            assert answer == label + asked(question, HONEST, *texts)
            assert explained.read(f"{explanation}\n{answer}") == question.read(
                asked(question, HONEST, *texts)
            )


def test_a_reworded_explained_answer_is_parsed_correctly_or_unclear() -> None:
    explained = GRADED.model_copy(update={"explanation": True})
    talkative = LLMSettings(habits=0.0, malformed=1.0)
    for pair in PAIRS[:20]:
        texts = pair.sentence1, pair.sentence2
        value = explained.read(asked(explained, talkative, *texts)).value
        assert value in (None, explained.read(asked(explained, HONEST, *texts)).value)


SEARCH = Question(prompt="Does the passage answer the query?\nQuery: {sentence1}\nPassage: {sentence2}")


def verdict(question: Question, settings: LLMSettings, *texts: str) -> tuple[str, float | None]:
    """Return the answer, and the verdict from the log-probabilities that the server reports."""
    request = question.request("", dict(zip(("sentence1", "sentence2"), texts, strict=True)))
    body = {"model": MODEL, "messages": list(request.messages), **request.sampling, "logprobs": True}
    read = read_request(json.dumps({**body, "top_logprobs": 20}).encode())
    made = Answers(settings, read.content)
    choice = completion(read, [made.choice(0)], "x" * 30, 0, [made.beliefs(0)])["choices"][0]
    text = choice["message"]["content"]
    found = read_logprobs(choice) or ()
    return text, question.verdict(ChatAnswer(request, text, logprobs=found)).value


def test_log_probabilities_keep_the_answer_and_their_mean_grade_is_nearer_the_truth() -> None:
    expected = GRADED.model_copy(update={"expected": True})
    told, means, truths = [], [], []
    for pair in PAIRS:
        text, mean = verdict(expected, HONEST, pair.sentence1, pair.sentence2)
        assert text == asked(GRADED, HONEST, pair.sentence1, pair.sentence2)
        assert mean is not None
        told.append(float(text))
        means.append(mean)
        truths.append(truth(pair.sentence1, pair.sentence2))
    assert correlation(means, truths) > correlation(told, truths)


@pytest.mark.parametrize("explained", [False, True])
def test_a_wrong_answer_is_the_likeliest_and_less_certain_than_a_right_one(explained: bool) -> None:
    question = SAME.model_copy(update={"expected": True, "explanation": explained})
    wrong = LLMSettings(habits=0.0, noise=1.0)
    for pair in PAIRS[:20]:
        is_same = truth(pair.sentence1, pair.sentence2) >= 0.9
        right, others = (verdict(question, each, pair.sentence1, pair.sentence2) for each in (HONEST, wrong))
        assert right[1] is not None
        assert others[1] is not None
        assert (right[1] > 0.5) == is_same != (others[1] > 0.5)


def test_passages_are_judged_by_the_relevance_that_the_data_have() -> None:
    for pair in islice(answers(EVERYTHING), 48):
        said = asked(SEARCH, HONEST, pair.sentence1, pair.sentence2)
        assert said == ("yes" if pair.score == 1 else "no")
        graded = SEARCH.model_copy(update={"grades": (0, 2)})
        assert float(asked(graded, HONEST, pair.sentence1, pair.sentence2)) == 2 * pair.score


def test_alternatives_need_log_probabilities() -> None:
    body = {"model": MODEL, "messages": [{"role": "user", "content": "Hi"}], "top_logprobs": 3}
    with pytest.raises(RequestError, match="'top_logprobs' needs 'logprobs'"):
        read_request(json.dumps(body).encode())
