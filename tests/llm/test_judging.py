"""Questions with a fixed set of answers: requests, parsing, unclear answers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from synthbench.llm.judging import UNCLEAR, Question

SAME = Question(prompt="Do they mean the same?\nSentence 1: {sentence1}\nSentence 2: {sentence2}")
GRADED = Question(prompt="How alike are {sentence1} and {sentence2}?", grades=(0, 5))


def test_a_request_holds_each_text_on_a_line_and_the_answer_format() -> None:
    question = SAME.model_copy(update={"system": "You compare sentences."})
    request = question.request("7", {"sentence1": "A man\nruns. {sentence2}", "sentence2": "A man walks."})
    assert request.key == "7"
    assert request.messages[0] == {"role": "system", "content": "You compare sentences."}
    assert request.messages[1]["content"] == (
        "Do they mean the same?\nSentence 1: A man runs. {sentence2}\nSentence 2: A man walks.\n\n"
        "Answer with yes or no only."
    )
    assert request.sampling == {"temperature": 0.0}
    assert (
        GRADED.request("7", {"sentence1": "a", "sentence2": "b"})
        .messages[0]["content"]
        .endswith("Answer with one number from 0 to 5 only.")
    )
    unset = Question(prompt="{sentence1}?", temperature="unset", max_tokens=5)
    assert unset.request("7", {"sentence1": "a"}).sampling == {"max_tokens": 5}


@pytest.mark.parametrize(
    "text",
    [
        *(
            "yes",
            "Yes.",
            "YES!",
            "**Yes**",
            '"Yes."',
            "Yes, they do.",
            "yes - the same event",
            "Yes\n\nBoth say so.",
        ),
        *(
            "Answer: yes",
            "The answer is yes.",
            "**Final answer:** Yes",
            "My verdict: yes",
            "I would say yes.",
        ),
        *(
            "They tell the same event.\nYes",
            "<think>No, wait. Yes or no?</think>\nYes",
            "True",
            "\\boxed{yes}",
        ),
        *("Yes。", "Answer：yes", "Yes (they tell the same)", "**Yes** (the same event)", "Yes they do."),
        *("Yes, there is no difference in meaning.", "Both are about a man.\n\nAnswer: **Yes**."),
    ],
)
def test_yes_is_recognised_in_many_forms(text: str) -> None:
    assert SAME.read(text).value == 1.0


@pytest.mark.parametrize(
    "text",
    [
        *("no", "No.", "**no**", "No, the first is about a dog.", "Answer: no", "I'd say no.", "False."),
        *("No they do not.", "No it is not the same", "no。", "No (they don't)."),
        *("The answer is no, since yes would need the same subject.", "They differ.\nno."),
    ],
)
def test_no_is_recognised_in_many_forms(text: str) -> None:
    assert SAME.read(text).value == 0.0


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            "maybe",
            "Yes and no.",
            "yes/no",
            "No idea.",
            "No difference.",
            "No they say.",
            "Nothis is.",
            "Yes (and no)",
            "No it depends",
            "It depends.",
            "Not really",
            "5",
        ),
        *("Answer: no idea", "Neither yes nor no.", "Yes, at first sight.\nBut in the end: \nno"),
        *("I cannot judge these sentences.", "Answer: yes\nAnswer: no", "nothing", "Yesterday they did."),
    ],
)
def test_an_answer_that_is_neither_yes_nor_no_is_unclear_and_preserved(text: str) -> None:
    verdict = SAME.read(text)
    assert verdict.value is None
    assert verdict.reason == UNCLEAR
    assert verdict.answered == " ".join(text.split())


@pytest.mark.parametrize(
    "text",
    [
        *("4", "4.", "4.0", "4,0", "4/5", "4 / 5", "4 out of 5", "(4)", "**4**", "four", "Four."),
        *(
            "Score: 4",
            "Score: 4/5",
            "**Score**: 4",
            "Rating = 4 out of 5.",
            "The similarity is 4.",
            "Grade 4",
        ),
        *("I would say 4.", "4 - they differ in a detail", "4: nearly the same", "They share 2 words.\n4"),
        *(
            "<think>maybe 3, or 5</think>4",
            "4. The sentences differ in a detail.",
            "The answer is a score of 4",
        ),
        *("There are 2 men in one and 3 in the other.\nScore: 4",),
        *(
            "4\n\nBoth are about grade 5 students.",
            "4\n\nA score of 5 would require the same meaning.",
            "4\nExplanation: the answer is 2 in both.",
            "4\nBoth are kind.\nScore: 4/5",
            "4 (they share some details)",
            "**4** (they share some details).",
            "Score: 4 (nearly the same)",
            "4 (out of 5)",
            "I would rate it 4.",
            "I'd give this pair a 4 out of 5",
            "I would rate them as 4",
            "I’d rate the similarity at 4.",
            "4（几乎一样）",
            "4 = they differ in a detail",
            "+4",
            "Score：4",
            "4。",
            "4，它们几乎一样",
            "1. They share the topic.\n2. They differ in a detail.\nScore: 4",
        ),
    ],
)
def test_a_grade_is_recognised_in_many_forms(text: str) -> None:
    assert GRADED.read(text).value == 0.8


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            "3-4",
            "3 or 4",
            "between 3 and 4",
            "Score: 3 to 4",
            "6",
            "-1",
            "4/10",
            "80%",
            "Score: 80%",
            "high",
        ),
        *("yes", "The men are 2 and the dogs are 3.", "1. a man runs\n2. a dog runs", "Score: 4\nScore: 2"),
        *(
            "44",
            "Score: 45",
            "2\nOn reflection they are closer.\nScore: 4",
            "2\n4",
            "3 (or 4)",
            "3 (of 10)",
            "4 (2 men run)",
            "I would rate it 3 to 4.",
            "I would rate it above 3 others",
            "2 = 2",
            "2, 3",
            "2 + 2",
            "85%",
            "2 - a score of 5 would need the same meaning",
            "1.\nA man runs.\n2.\nA dog runs.",
        ),
    ],
)
def test_an_answer_without_exactly_one_grade_is_unclear(text: str) -> None:
    assert GRADED.read(text).value is None


def test_a_grade_is_mapped_linearly_to_0_to_1() -> None:
    question = Question(prompt="{anchor}", grades=(1, 7))
    assert [question.read(text).value for text in ("1", "4", "7", "5.5", "0")] == [0.0, 0.5, 1.0, 0.75, None]


def test_signs_and_percent_fit_some_scales() -> None:
    signed = Question(prompt="{anchor}", grades=(-2, 2))
    assert [signed.read(text).value for text in ("+1", "Score: +1", "−1", "-1", "+3")] == [
        *(0.75, 0.75, 0.25, 0.25),
        None,
    ]
    percent = Question(prompt="{anchor}", grades=(0, 100))
    texts = ("85%", "85 %.", "Score: 85%", "85", "80%-90%", "Score: 80% or 90%", "85% of the words", "185%")
    assert [percent.read(text).value for text in texts] == [*(0.85,) * 4, *(None,) * 4]

    explained = percent.model_copy(update={"explanation": True})
    assert explained.read("Both run.\nScore: 85%\n\n(The similarity would be 90% in May.)").value == 0.85


@given(st.text(max_size=60))
def test_any_answer_is_parsed_without_error_and_every_value_is_in_range(text: str) -> None:
    for question in (SAME, GRADED):
        value = question.read(text).value
        assert value is None or 0.0 <= value <= 1.0


def test_columns_in_the_prompt_must_exist() -> None:
    assert SAME.obstacle(("sentence1", "sentence2", "score")) == ""
    assert "{sentence1} in the prompt is no column" in SAME.obstacle(("anchor", "positive"))
    misspelt = Question(prompt="{sentense1}").obstacle(("sentence1", "sentence2"))
    assert misspelt.endswith("is no column; did you mean 'sentence1'?")
    assert "names no column; write {anchor}" in Question(prompt="Is it good?").obstacle(
        ("anchor", "positive")
    )


def test_grades_have_an_order() -> None:
    with pytest.raises(ValidationError, match="the lowest comes first"):
        Question(prompt="{anchor}", grades=(5, 0))


def test_estimates_grow_with_the_records_and_the_prompt() -> None:
    small, large = SAME.asks(10), SAME.asks(1000)
    assert (small.num_requests, large.num_requests) == (10, 1000)
    assert large.prompt_tokens == pytest.approx(100 * small.prompt_tokens, rel=0.01)
    assert 40 < small.prompt_tokens / 10 < 80


EXPLAINED = GRADED.model_copy(update={"explanation": True})


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("Both are about 2 men, one of whom runs.\nScore: 3", 0.6),
        ("**Explanation:** they share the rating 5 on a scale.\n\n**Score: 4/5**", 0.8),
        ("Score: 1 at first sight.\nOn reflection they are closer.\nScore: 4", 0.8),
        ("They share everything.\n5", 1.0),
        ("Both run.\nScore: 3\n\nNote: a score of 5 would need the same meaning.", 0.6),
        ("Score: 2\n\n(The similarity would be 4 if both ran.)", 0.4),
        ("**Final score:** 2\n\nA rating of 4 would need more.", 0.4),
        ("Both are about grade 5 students.\n2", 0.4),
        ("They differ, so I would say 4.\nThat is all.", 0.8),
        ("They share 3 words.", None),
        ("Score: 7", None),
        ("", None),
    ],
)
def test_only_the_conclusion_of_an_explained_answer_counts(text: str, value: float | None) -> None:
    assert EXPLAINED.read(text).value == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("The passage's answer: no fee is due.\nYes", 1.0),
        ("Answer: yes\n\nNote: the answer is no if fees are meant.", 1.0),
        ("Final answer: no, they differ.\nThe answer would be yes in June.", 0.0),
        ("It rates 5 stars.\nThe answer is no.\nIts rating: 5", 0.0),
        ("Answer: no fee is due.", 0.0),
        ("No fee is due.", None),
        ("Answer: yes they do.\nNote: the answer is no if fees are meant.", 1.0),
        ("Both run.\nAnswer: and yes", 1.0),
        ("Both run.\n**Answer:** and no.", 0.0),
        ("Answer: and yes or no", None),
        ("Answer: and nobody runs", None),
        ("They ask for the answer and no more.", None),
    ],
)
def test_the_last_line_that_begins_as_an_answer_concludes_an_explained_yes_or_no(
    text: str, value: float | None
) -> None:
    assert SAME.model_copy(update={"explanation": True}).read(text).value == value


def test_an_explanation_changes_the_answer_format_and_the_token_estimate() -> None:
    request = EXPLAINED.request("7", {"sentence1": "a", "sentence2": "b"})
    assert request.messages[0]["content"].endswith("reads Score: N, where N is one number from 0 to 5.")
    polar = SAME.model_copy(update={"explanation": True})
    assert (
        polar.how_to_answer == "Explain in one sentence, then write Answer: and yes or no on the last line."
    )
    assert polar.read("The first runs, the other walks.\nAnswer: no").value == 0.0
    assert EXPLAINED.asks(10).completion_tokens > 10 * GRADED.asks(1).completion_tokens


def test_a_question_without_explanation_keeps_its_former_identity() -> None:
    assert "explanation" not in GRADED.model_dump(mode="json")
    assert EXPLAINED.model_dump(mode="json")["explanation"] is True
