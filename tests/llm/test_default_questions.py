"""The default question about two sentences: its words and the scale of its answer agree."""

import re

import pytest
from pydantic import ValidationError
from wording import refused

from synthbench.llm.judging import Question
from synthbench.plugins.labellers import MEANINGS, Judge
from synthbench.plugins.loading import component


def _named(prompt: str) -> dict[int, str]:
    """Return what grades mean by the question."""
    return {int(grade): meaning for grade, meaning in re.findall(r"(\d+): ([a-z, ]+)\.", prompt)}


@pytest.mark.parametrize("grades", [(0, 1), (1, 3), (1, 5), (0, 5), (0, 7), (0, 10), (0, 100)])
def test_the_default_question_names_grades_of_its_scale_from_end_to_end(grades: tuple[int, int]) -> None:
    judge = Judge(grades=grades)
    named = _named(judge.prompt)
    assert list(named) == sorted(named, reverse=True)
    assert (min(named), max(named)) == grades
    assert (named[max(named)], named[min(named)]) == (MEANINGS[0], MEANINGS[-1])
    assert f"from {grades[0]} to {grades[1]}" in judge.how_to_answer


def test_six_grades_of_a_longer_scale_are_evenly_spaced() -> None:
    assert list(_named(Judge(grades=(0, 10)).prompt)) == [10, 8, 6, 4, 2, 0]


def test_without_grades_the_default_question_is_one_of_yes_or_no() -> None:
    judge = Judge.model_validate({"grades": "yes-no"})
    assert not _named(judge.prompt)
    assert "yes or no" in judge.how_to_answer


def test_a_question_of_your_own_stays_as_it_is() -> None:
    assert Judge(prompt="{sentence1}\n{sentence2}", grades=(0, 10)).prompt == "{sentence1}\n{sentence2}"


@pytest.mark.parametrize("prompt", ["Is it good? {sentence1}", "{sentence2}: {sentence2}"])
def test_a_judge_is_asked_about_both_sentences(prompt: str) -> None:
    with refused("{sentence1} and {sentence2}", kind=ValidationError):
        Judge(prompt=prompt)


def test_claifs_grades_stay_when_another_key_of_its_question_is_set() -> None:
    claif = component("methods", "claif").model_validate({"judge": {"explanation": False}})
    judge = claif.model_dump()["judge"]
    assert judge["grades"] == (0, 10)
    assert _named(judge["prompt"])[10] == MEANINGS[0]


def test_what_a_pair_shares_is_asked_of_pairs_alone() -> None:
    """The judge's words are the key of its cached answers."""
    assert Judge(explanation=True).how_to_answer == (
        "Explain in one sentence what they share and where they differ, then end with a line that reads"
        " Score: N, where N is one number from 0 to 5."
    )
    assert Question(prompt="How polite is {sentence}?", grades=(1, 5), explanation=True).how_to_answer == (
        "Explain in one sentence, then end with a line that reads Score: N,"
        " where N is one number from 1 to 5."
    )
