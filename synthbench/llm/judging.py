"""Ask an LLM for yes or no, or for a grade; an unclear answer is never guessed."""

import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from synthbench.base.errors import did_you_mean
from synthbench.base.frozen import Constant, WithConstants, added_field
from synthbench.base.patterns import linear_pattern
from synthbench.llm.asking import estimated_amount
from synthbench.llm.client import Answering
from synthbench.llm.endpoint import ChatAmount
from synthbench.llm.logprobs import MOST_ALTERNATIVES, TokenLogprob
from synthbench.llm.replies import without_thoughts
from synthbench.llm.requests import ChatAnswer, ChatRequest

READING = 2
"""Version of the rules that read answers; raise it when some answer gets another verdict."""
UNCLEAR = "unclear answer"
"""Reason for a missing value when the LLM's answer fits none of the permitted ones."""
_PLACEHOLDER = linear_pattern(r"\{(\w+)\}")
_TOKENS_PER_ANSWER = 3
_TOKENS_PER_EXPLANATION = 40
_SENTENCE_LENGTH = 60
_SHOWN = 200


def _none_of(given: object) -> object:
    """Return None for "yes-no", and any other value unchanged.

    A file can't say null instead of "yes-no": null would give a judge's default grades.
    """
    return None if given == YES_OR_NO else given


YES_OR_NO = "yes-no"
Grades = Annotated[
    # A validator in Python gets a list of JSON, which `strict` would refuse.
    Annotated[tuple[int, int], Field(strict=False)] | None,
    BeforeValidator(_none_of, json_schema_input_type=tuple[int, int] | Literal["yes-no"] | None),
]
"""Lowest and highest permitted grade; None: the answer is yes or no. A file writes None as yes-no."""


class Question(BaseModel, WithConstants):
    """One question about each record; the answer is yes or no, or with `grades` a number in their range."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)
    explain: ClassVar[str] = "Explain in one sentence"

    prompt: str = Field(
        min_length=1,
        description="the question; {sentence1} is replaced by the record's column of this name. "
        "Instructions for the answer are appended",
    )
    system: str = Field("", description="system message; empty: none")
    grades: Grades = Field(
        None, description="lowest and highest permitted grade, such as [0, 5]. Default: yes-no"
    )
    temperature: Annotated[float, Field(ge=0, le=2)] | Literal["unset"] = Field(
        0.0, description="sampling temperature; unset: not sent"
    )
    max_tokens: Annotated[int, Field(ge=1)] | Literal["unset"] = Field(
        "unset", description="maximum length of an answer in tokens, thoughts included; unset: not sent"
    )
    explanation: bool = added_field(
        False,
        description="ask the LLM to explain before it answers; answers are longer, and often judged better",
    )
    expected: bool = added_field(
        False,
        description="instead of the answer, use the expected grade or the probability of yes, from the"
        " log-probabilities of the answer's token; the LLM must give these",
    )

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.grades is not None and self.grades[0] >= self.grades[1]:
            raise ValueError(f"grades: the lowest comes first, as in [0, 5], is {list(self.grades)}")
        if self.expected and self.grades is not None and not 0 <= self.grades[0] < self.grades[1] <= 9:
            raise ValueError("expected: needs grades from 0 to 9, which are one token each")
        return self

    def constants(self) -> Mapping[str, Constant]:
        """Return the version of the rules by which answers are read."""
        return {"reading": Constant(READING, 1)}

    def obstacle(self, columns: Collection[str]) -> str:
        """Return why the question can't be asked about records with these columns, "" if it can."""
        names = _PLACEHOLDER.findall(self.prompt)
        if not names:
            return f"the prompt names no column; write {{{min(columns)}}} where its text belongs"
        unknown = next((name for name in names if name not in columns), "")
        return f"{{{unknown}}} in the prompt is no column{did_you_mean(unknown, columns)}" if unknown else ""

    def request(self, key: str, texts: Mapping[str, str]) -> ChatRequest:
        """Return the request for one record; `texts` maps column names to the record's texts."""
        # On one line each, since a line break would look like the end of the sentence.
        asked = _PLACEHOLDER.sub(lambda match: " ".join(texts[match[1]].split()), self.prompt)
        messages = [{"role": "system", "content": self.system}] if self.system else []
        messages.append({"role": "user", "content": f"{asked.rstrip()}\n\n{self.how_to_answer}"})
        sampling = {"temperature": self.temperature, "max_tokens": self.max_tokens}
        sent = {name: value for name, value in sampling.items() if not isinstance(value, str)}
        logprobs = MOST_ALTERNATIVES if self.expected else None
        return ChatRequest(key, tuple(messages), sent, logprobs=logprobs)

    @property
    def how_to_answer(self) -> str:
        """The instruction on the last line of every request."""
        if self.grades is None:
            if self.explanation:
                return "Explain in one sentence, then write Answer: and yes or no on the last line."
            return "Answer with yes or no only."
        lowest, highest = self.grades
        if self.explanation:
            return (
                f"{self.explain}, then end with a line that reads Score: N, where N is one number from"
                f" {lowest} to {highest}."
            )
        return f"Answer with one number from {lowest} to {highest} only."

    def read(self, text: str) -> "Verdict":
        """Return an answer's verdict: 1 for yes, 0 for no, or the grade mapped linearly to [0, 1].

        An unclear answer, or a grade out of range, gives a verdict without a value.
        """
        plain = _plain(without_thoughts(text))
        if self.grades is not None and self.grades[1] == 100:
            plain = plain.replace("%", "")
        if self.explanation:
            plain = _conclusion(plain, is_graded=self.grades is not None)
        if self.grades is None:
            said = _yes_or_no(plain)
            return _unclear(text) if said is None else Verdict(float(said))
        lowest, highest = self.grades
        grade = _grade(plain, highest)
        if grade is None or not lowest <= grade <= highest:
            return _unclear(text)
        return Verdict((grade - lowest) / (highest - lowest))

    def verdict(self, answer: ChatAnswer) -> "Verdict":
        """Return an answer's verdict; a failed request gives a verdict without a value."""
        if answer.text is None:
            return Verdict(None, answer.failure)
        return self._expected(answer) if self.expected else self.read(answer.text)

    def _expected(self, answer: ChatAnswer) -> "Verdict":
        """Return the mean value of the answer's token and its alternatives, weighted by probability.

        The verdict has no value if the answer is unclear, or if no single token holds the answer's value.
        """
        text = answer.text or ""
        read = self.read(text)
        if read.value is None:
            return read
        found = self._token(text, answer.logprobs, read.value)
        if found is None:
            return _unclear(text)
        shares: dict[float, float] = {}
        for token, logprob in found.top.items():
            value = self._value_of(token)
            if value is not None:
                shares[value] = shares.get(value, 0.0) + math.exp(logprob)
        whole = sum(shares.values())
        return Verdict(sum(value * share for value, share in shares.items()) / whole) if whole else read

    def _token(self, text: str, tokens: Sequence[TokenLogprob], value: float) -> TokenLogprob | None:
        """Return the first token with this value in the answer; None if there is none.

        With `explanation`, only the concluding line counts. Tokens of thoughts don't count. The end of a
        scale ("out of 5") counts only if no other token does.
        """
        if self.explanation:
            concluding = _conclusion(_plain(text), is_graded=self.grades is not None)
            text = next(line for line in reversed(text.splitlines()) if _plain(line) == concluding)
        whole = "".join(each.token for each in tokens)
        first, end = whole.rfind(text), 0
        found: list[tuple[bool, TokenLogprob]] = []
        for each in tokens:
            start, end = end, end + len(each.token)
            if 0 <= first < end and start < first + len(text) and self._value_of(each.token) == value:
                before = whole[max(0, start - 9) : start].rstrip().lower()
                found.append((before.endswith(("/", "of", "to")), each))
        return min(found, key=lambda each: each[0])[1] if found else None

    def _value_of(self, token: str) -> float | None:
        """Return a token's value, read as a whole answer; None if the token is no answer."""
        plain = _plain(token)
        if self.grades is None:
            return float(_WORDS[plain]) if plain in _WORDS else None
        lowest, highest = self.grades
        is_grade = len(plain) == 1 and plain in "0123456789" and lowest <= int(plain) <= highest
        return (int(plain) - lowest) / (highest - lowest) if is_grade else None

    def asks(self, num_records: int) -> ChatAmount:
        """Return the number of requests for `num_records` records, with an estimate of their tokens."""
        texts = "x" * len(_PLACEHOLDER.findall(self.prompt)) * _SENTENCE_LENGTH
        chat = [{"content": said} for said in (self.prompt + texts + self.how_to_answer, self.system)]
        answer = _TOKENS_PER_EXPLANATION if self.explanation else _TOKENS_PER_ANSWER
        return estimated_amount(num_records, [chat], answer)


@dataclass(frozen=True)
class Verdict:
    """The answer to one question: `value` in [0, 1], or None with the `reason`.

    `answered`: an unclear answer in one line, at most 200 characters.
    """

    value: float | None
    reason: str = ""
    answered: str = ""


def verdicts(
    question: Question, records: Iterable[tuple[str, Mapping[str, str]]], llm: Answering
) -> Iterator[tuple[str, Verdict]]:
    """Ask about records, given as key and texts by column; yield keys and verdicts in order of completion.

    A request that failed for good gives a verdict without a value. Raises what `llm.answers` raises.
    """
    requests = (question.request(key, texts) for key, texts in records)
    for answer in llm.answers(requests):
        yield answer.request.key, question.verdict(answer)


def _unclear(text: str) -> Verdict:
    return Verdict(None, UNCLEAR, " ".join(text.split())[:_SHOWN])


# Reading answers. All are lower-cased, without emphasis, quotes and brackets around words, with single spaces
# or line ends between words.
_MARKS = linear_pattern(r"[*_`\"“”„«»#\[\]{}()]|\\boxed|(?<!\w)['‘’]|['‘’](?!\w)")
_FORMS = str.maketrans(
    {"：": ":", "。": ". ", "，": ", ", "！": "!", "＝": "=", "（": "(", "）": ")", "’": "'"}
)
_AND = linear_pattern(r"^answer: and (?=(?:yes|no)\b)")
_ASIDE = linear_pattern(
    r"(?:(?<=\d)|(?<=\byes)|(?<=\bno))[*_]{0,3} ?\((?!(?:and|or|to|maybe)\b)(?=[^\W\d][^()\d]*\))"
)
"""The beginning of a remark in brackets, without numbers, after an answer."""
_NAME = (
    r"(?:answer|verdict|judge?ment|conclusion|score|grade|rating|similarity|result|response|"
    r"i(?: would|'d)(?: say| (?:rate|give|grade|score)"
    r" (?:(?:this|the|their) (?:pair|similarity|sentences)|it|them|this|these|both)(?: (?:as|at|an))?))"
)
_FILLERS = r"(?:is|would be|should be|of|a|the|final|score|grade|rating|therefore|thus)"
_WORDS = {"yes": True, "no": False, "true": True, "false": False}
_POLAR = r"(yes|no|true|false)"
_NUMBER = r"([-−+]?\d{1,40}+(?:[.,]\d++)?)"
_OUT_OF = r"(?:\s?(?:/|out of|of)\s?(\d{1,40}+))?"
_RANGE = r"(?!\s?(?:-|–|to|or|and|/)\s?\d|\d|\s?%|\s?(?:out )?of\s?\d{41})"


def _labelled(value: str, begins: str) -> re.Pattern[str]:
    """Return a pattern for a name ("score"), filler words, and an optional value.

    The value is optional so that a search continues after a name without a value. `begins` matches the
    beginning of a value.
    """
    between = rf"(?>(?:\s{_FILLERS}(?=[\s:=]|{begins}))*)\s?+[:=]*+\s?+"
    return linear_pattern(rf"\b{_NAME}{between}(?>(?:{value})?)")


_LABELLED_POLAR = _labelled(_POLAR + r"\b(?! (?:idea|clue|doubt|opinion|difference)\b)", "yes|no|true|false")
_LABELLED_GRADE = _labelled(_NUMBER + _OUT_OF + _RANGE, r"[-−+\d]")
_TITLE = rf"^(?:(?:my|the)\s)?(?:(?:final|overall)\s)?{_NAME}(?:\s(?:score|grade|rating))?\s?[:=]\s?"
_ENDS = r"(?:\s?(?:$|[.,;:!\n–—-])| (?=(?:they|it|these|this) (?:do|does|are|is|have|has|can)\b))"
_TITLED_POLAR = linear_pattern(f"{_TITLE}{_POLAR}{_ENDS}")
_TITLED_GRADE = linear_pattern(_TITLE + _NUMBER + _OUT_OF + _RANGE, re.MULTILINE)
_FIRST_POLAR = linear_pattern(rf"^{_POLAR}{_ENDS}")
_BOTH = linear_pattern(r"\byes\b\s?(?:and|or|/|,|nor)\s?no\b|\bno\b\s?(?:and|or|/|,|nor)\s?yes\b")
_WHOLE_GRADE = linear_pattern(rf"^{_NUMBER}{_OUT_OF}\s?[.!]?$")
_FIRST_GRADE = linear_pattern(rf"^{_NUMBER}{_OUT_OF}{_RANGE}\s?(?:[.,;:!=\n–—-])\s?+(?=\D)")
_FIRST_ITEM, _SECOND_ITEM = (linear_pattern(rf"^{number}[.)]", re.MULTILINE) for number in (1, 2))
_DIGITS = {
    word: str(value)
    for value, word in enumerate(
        ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
    )
}


def _plain(text: str) -> str:
    lines = (line.lower().translate(_FORMS) for line in text.splitlines())
    plain = (" ".join(_MARKS.sub(" ", _ASIDE.sub(", ", line)).split()) for line in lines)
    return "\n".join(_AND.sub("answer: ", line) for line in plain if line)


def _values(text: str, labelled: re.Pattern[str]) -> list[tuple[str, ...]]:
    """Return the pattern's groups for each value that follows a name, as in "score: 4"."""
    return [found.groups("") for found in labelled.finditer(text) if found[1]]


def _conclusion(text: str, *, is_graded: bool) -> str:
    """Return the line that holds the answer; the other lines explain it.

    In order of preference: the last line that begins with a name and an answer ("Score: 4"); the last line,
    if it is an answer; the last line with a name and an answer anywhere in it; the last line.
    """
    titled, alone, labelled = (
        (_TITLED_GRADE, _WHOLE_GRADE, _LABELLED_GRADE)
        if is_graded
        else (_TITLED_POLAR, _FIRST_POLAR, _LABELLED_POLAR)
    )
    lines = text.splitlines() or [""]
    found = [line for line in lines if titled.match(line)]
    if not found and not alone.match(lines[-1]):
        found = [line for line in lines if _values(line, labelled)]
    return (found or lines)[-1]


def _yes_or_no(text: str) -> bool | None:
    """Return the answer at the text's beginning or end, or after a label; None if unclear."""
    if _BOTH.search(text):
        return None
    labelled = {_WORDS[word] for word, *_ in _values(text, _LABELLED_POLAR)}
    first = _FIRST_POLAR.match(text)
    last = _FIRST_POLAR.fullmatch(text.rpartition("\n")[2].rstrip(".!"))
    said = labelled | {_WORDS[match[1]] for match in (first, last) if match}
    return said.pop() if len(said) == 1 else None


def _grade(text: str, highest: int) -> float | None:
    """Return an answer's number; None without one, or if several numbers or another scale are named.

    If the first line is a number alone, only two kinds of later lines count: a line that begins with a name
    ("Score: 4"), and a last line that is a number alone.
    """
    text = _DIGITS.get(text.rstrip("."), text)
    lines = text.split("\n")
    begins = None if _is_list(text) else _WHOLE_GRADE.match(lines[0])
    first = begins or (None if _is_list(text) else _FIRST_GRADE.match(text))
    found = _values(text, _TITLED_GRADE if begins else _LABELLED_GRADE)
    found += [match.groups("") for match in (first, _WHOLE_GRADE.match(lines[-1])) if match]
    if any(scale and int(scale) != highest for _, scale in found):
        return None
    grades = {float(number.replace(",", ".").replace("−", "-")) for number, _ in found}
    return grades.pop() if len(grades) == 1 else None


def _is_list(text: str) -> bool:
    first = _FIRST_ITEM.search(text)
    return first is not None and _SECOND_ITEM.search(text, first.end()) is not None
