"""Linear patterns read ordinary text exactly as the patterns before them, which could take hours."""

import re
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synthbench.base.escaping import harmless
from synthbench.data.refusals import looks_like_a_refusal
from synthbench.llm import answered, judging

# ruff: noqa: E501 - patterns as they were
from synthbench_augsbert.substitution import WORD
from synthbench_gpl import answers as gpl

SAID = (
    r"\b(?:answer|verdict|judge?ment|conclusion|score|grade|rating|similarity|result|response|"
    r"i(?: would|'d) say)"
    r"(?:\s+(?:is|would be|should be|of|a|the|final|score|grade|rating|therefore|thus))*\s*[:=]*\s*"
)
GRADE = re.compile(
    SAID + r"([-−]?\d+(?:[.,]\d+)?)(?:\s*(?:/|out of|of)\s*(\d+))?(?!\s*(?:-|–|to|or|and|/)\s*\d|\d|\s*%)"
)
POLAR = re.compile(SAID + r"(yes|no|true|false)\b(?! (?:idea|clue|doubt|opinion|difference)\b)")
LIST = re.compile(r"^\s*1[.)].*^\s*2[.)]", re.DOTALL | re.MULTILINE)
WORDS = re.compile(r"\b[^\W\d_]+(?:['’-][^\W\d_]+)*\b")
CANNOT = r"(?:cannot|can't|can not|could not|couldn't|won't|(?:am|'m|was) (?:unable|not able to))"
REFUSAL = re.compile(
    rf"\b{CANNOT} (?:\w+ )?(?:paraphrase|rephrase|reword)\b"
    rf"|\bi ?{CANNOT} (?:write|generate)\b.*\b(?:sentences?|request|list)\b"
    rf"|\bi ?{CANNOT} (?:provide|give) (?:\w+ )?(?:information|guidance)\b.*\b(?:that|this|harmful)\b"
)
GPL_LABEL = re.compile(
    r"^\W*(?:(?:search|the|my|possible|user)\s+)?(?:question|query)\s*\d*\W*:\s*", re.IGNORECASE
)
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?%?")
KIND = (
    r"(?:(?:paraphras|rephras|reword|contradict|entail)\w*\s+|(?:new|neutral|bonus)\s+)?"
    r"(?:sentence|caption|headline|example|item|title|question|hypothes[ei]|paraphrase|contradiction|version|option|"
    r"statement|variation|alternative)s?"
)
ITEM_NUMBER = re.compile(
    rf"^\s*(?:[-*•–]\s+)?(?:\*\*|__)?(?:{KIND}\s*:?\s*)?(?:no\.?\s*|#\s*)?"
    r"(?:[(\[](?P<enclosed>\d{1,4})[)\]][.:]?|(?P<number>\d{1,4})\s*(?:[.):]|\s[-–—]))"
    r"(?P<bold>\*\*|__)?(?=\s|$|[\"“„«'*\w])",
    re.IGNORECASE,
)
REMARK = re.compile(
    r"(?P<sentence>.*(?<![.\s(][A-Za-z])[.!?][\"”'’*_]*)\s*[(\[](?P<remark>[^()\[\]]+)[)\]][.*_]*"
)
ANSWER_LABEL = re.compile(
    r"^(?:\*\*|__)?(?:(?:the|my|a|new|possible|rewritten|modified|revised|short|shorter|paraphrased|generated)\s+)*"
    r"(?:output|answer|response|result|paraphrase|contradiction|rewording|rephrasing|version|positive|"
    r"(?:hard )?negative|sentence|phrase|text)(?:\s+(?:sentence|phrase|example|\d))?"
    r"\s*(?:\*\*|__)?\s*:\s*(?:\*\*|__)?\s*",
    re.IGNORECASE,
)

JUDGED = (
    "answer|verdict|score|scores|grade|rating|result|i would say|i'd say|is|would be|should be|of|a|the|final|"
    "thus|yes|no|true|false|idea|1|2|5|10|3.5|4,2|-1|/|out of|to|-|%|=|:|.|\n|1.|2)|é|isyes|score4|nor| |"
)
WRITTEN = (
    "1|2|1.|(1)|No.|#|:|-|*|**|__|\"|“|”|'|sentence|caption|new|paraphrased|paraphrase|answer|Output:|short|the|a|B.|"
    "!|?|(a remark here)|[note]|(|)|Input:|text|hard negative|example|7|H1|cat|\n| |  "
)
DECLINED = (
    "i|i |cannot|can not|am unable|'m not able to|write|generate|sentence|list|request|paraphrase|reword|provide|"
    "give|some|more|information|guidance|that|this|harmful|.|,| |  "
)
QUERIES = 'search|the|my|query|Question|:|: |1|12|*|-|(|"|  | |x'
CELLS = "'|+|-|=|1|12|.|e|E5|%|\t|a| "
TEXTS = "a|b|é|'|’|-|1|_|ab|中|don't| |."


def spans(pattern: re.Pattern[str], text: str) -> object:
    found = pattern.match(text)
    return found and (found.span(), found.groupdict())


def is_list(text: str) -> object:
    return judging._is_list("\n".join(" ".join(line.split()) for line in text.splitlines() if line.strip()))


def old_list(text: str) -> object:
    lines = "\n".join(" ".join(line.split()) for line in text.splitlines() if line.strip())
    return LIST.search(lines) is not None


def on_lines(text: str) -> str:
    return judging._plain(text)


READINGS: dict[str, tuple[str, Callable[[str], object], Callable[[str], object]]] = {
    "grades": (
        JUDGED,
        lambda text: judging._values(on_lines(text), judging._LABELLED_GRADE),
        lambda text: GRADE.findall(on_lines(text)),
    ),
    "yes or no": (
        JUDGED,
        lambda text: [word for word, *_ in judging._values(on_lines(text), judging._LABELLED_POLAR)],
        lambda text: POLAR.findall(on_lines(text)),
    ),
    "lists": (JUDGED, is_list, old_list),
    "numbers of items": (
        WRITTEN,
        lambda text: spans(answered._NUMBER, text),
        lambda text: spans(ITEM_NUMBER, text),
    ),
    "labels of answers": (
        WRITTEN,
        lambda text: spans(answered._ANSWER_LABEL, text),
        lambda text: spans(ANSWER_LABEL, text),
    ),
    "remarks": (
        WRITTEN,
        lambda text: (found := answered._REMARK.fullmatch(text)) and found.groupdict(),
        lambda text: (found := REMARK.fullmatch(text)) and found.groupdict(),
    ),
    "refusals": (
        DECLINED,
        looks_like_a_refusal,
        lambda text: REFUSAL.search(" ".join(text.split())) is not None,
    ),
    "labels of queries": (QUERIES, lambda text: spans(gpl._LABEL, text), lambda text: spans(GPL_LABEL, text)),
    "numbers in cells": (
        CELLS,
        lambda text: harmless(f"+{text}") == f"+{text}",
        lambda text: NUMBER.fullmatch(f"+{text}") is not None,
    ),
    "words": (
        TEXTS,
        lambda text: [found.span() for found in WORD.finditer(text)],
        lambda text: [found.span() for found in WORDS.finditer(text)],
    ),
}


def texts(parts: Sequence[str]) -> st.SearchStrategy[str]:
    words = st.lists(st.sampled_from(parts), max_size=10)
    return st.builds(lambda separator, found: separator.join(found), st.sampled_from([" ", ""]), words)


@pytest.mark.parametrize("what", READINGS)
@given(data=st.data())
def test_ordinary_text_is_parsed_as_before(what: str, data: st.DataObject) -> None:
    parts, reading, before = READINGS[what]
    text = data.draw(texts(parts.split("|")))
    assert reading(text) == before(text)


@pytest.mark.parametrize("digits", [5_000, 100_000])
def test_a_grade_of_thousands_of_digits_is_unclear(digits: int) -> None:
    question = judging.Question(prompt="{a}", grades=(0, 5))
    for text in ("score " + "9" * digits, "score 3 of " + "9" * digits, "9" * digits, "3/" + "9" * digits):
        assert question.read(text).value is None
