"""Judgements on sentences, or on a question and a passage: yes or no, or a grade."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from synthbench.worlds.sandbox.events import similarity, slot_similarities
from synthbench.worlds.sandbox.llm.inputs import leaning
from synthbench.worlds.sandbox.parsing import read_sentence
from synthbench.worlds.sandbox.relevance import relevance_of

SAME = 0.9
"""The least similarity of two sentences with the same meaning; equal to the oracle's."""
RELATED = 0.5
"""Sentences with a similarity from RELATED to below SAME count as contradicting each other."""
HABITUAL_SAME = 0.7
"""Threshold on the mean of similarity and word overlap from which a judge with habits answers "the same"."""
REFUSALS = (
    "I cannot judge these sentences.",
    "I'm sorry, but I can't compare these for you.",
    "As an AI language model, I cannot answer this without more context.",
)
UNDECIDED = (
    "It depends on how one reads them: in some ways yes, in others no.",
    "That is hard to say; both views can be argued for.",
)
_YES_OR_NO = re.compile(r"\byes\b\W{1,3}(?:or\W{1,3})?no\b", re.IGNORECASE)
_SCALE = re.compile(
    r"\b(?:from|between|scale of|range of)\s+(\d+)(?:\s*\([^()\n]*\))?\s*(?:to|and|through|-|–)\s*(\d+)",
    re.IGNORECASE,
)
_GRADING = re.compile(r"\b(?:grade|score|rate|rating|number|answer|scale|judge)\b", re.IGNORECASE)
_EXPLAINING = re.compile(r"\bexplain\b.*\bthen\b", re.IGNORECASE | re.DOTALL)
_SENTENCE_ENDS = re.compile(r"[.!?]\s")
_LABEL = (
    r"(?:the )?(?:(?:first|second|third|1st|2nd|original|input|other|new|next)\s+)?"
    r"(?:sentence|text|statement|anchor|positive|negative|premise|hypothesis|paraphrase|contradiction|"
    r"caption|[abcxy])\s*#?[123abc]?"
)
_LABELLED = re.compile(rf"^\W*{_LABEL}\W*:\W*[ \t]*(?P<text>\w.*?)\W*$", re.IGNORECASE | re.MULTILINE)
_IN_LINE = re.compile(
    rf"(?:^|(?<=\s)){_LABEL}\s*:\s+(?P<text>\S.*?)(?=\s+{_LABEL}\s*:|\s*$)", re.IGNORECASE | re.MULTILINE
)
_QUOTED = re.compile(r'"([^"\n]+)"|“([^”\n]+)”')
_CONTRADICTS = re.compile(r"\b(?:contradict\w*|opposite|negat\w+|den(?:y|ies)|hard negative)\b")
_MOST_TEXTS = 3
_SEARCHED = re.compile(
    r"^\W*(?:question|query)\W*:[ \t]*(?P<question>\S.*?)[ \t]*\n+"
    r"\W*(?:passage|document)\W*:[ \t]*(?P<passage>\S.*?)[ \t]*$",
    re.IGNORECASE | re.MULTILINE,
)
UNSURE = 0.12
"""A judge's uncertainty, in units of similarity: the sigmoid's scale, and the spread of grades."""
WRONG = 0.6
"""The weight of a wrong answer (`noise`) in a judge's probabilities."""


@dataclass(frozen=True, slots=True)
class ComparisonTask:
    """A judgement to make: one to three sentences, the criterion, and the scale (None: yes or no)."""

    texts: tuple[str, ...]
    instruction: str
    scale: tuple[int, int] | None
    is_search: bool = False
    """Whether the texts are a question and a passage: does the passage answer the question?"""

    @property
    def wants_sameness(self) -> bool:
        """True if "yes" means "same meaning" or "the passage answers"; False if "yes" means a difference."""
        return self.is_search or leaning(self.instruction) >= 0 or len(self.texts) == _MOST_TEXTS


def comparison_in(text: str, others: Sequence[str]) -> ComparisonTask | None:
    """Return the judgement that a user's message asks for; None if it asks for none.

    `others` are the system messages.
    """
    asked = _SEARCHED.search(text)
    texts, rest = _taken_apart(text)
    if asked is not None:
        texts, rest = (asked["question"], asked["passage"]), _SEARCHED.sub(" ", text)
    instruction = "\n".join((*others, rest))
    scale = _scale(instruction)
    if not 0 < len(texts) <= _MOST_TEXTS or (scale is None and not _YES_OR_NO.search(instruction)):
        return None
    return ComparisonTask(texts, instruction, scale, is_search=asked is not None)


def judgement(asked: ComparisonTask, random: Random, *, noise: float, habits: float) -> str:
    """Return the true answer, or with probability `noise` a wrong one.

    With probability `habits`, the share of common words influences it, too. Sentences outside the grammar
    are compared by their words alone. The answer follows an explanation if the instruction wants one.
    """
    is_habitual, is_wrong = random.random() < habits, random.random() < noise
    answer = _verdict(asked, random, is_habitual=is_habitual, is_wrong=is_wrong)
    if not _EXPLAINING.search(asked.instruction):
        return answer
    return f"{_explanation(asked.texts)}\n{'Answer' if asked.scale is None else 'Score'}: {answer}"


def beliefs(asked: ComparisonTask, random: Random, *, noise: float, habits: float) -> dict[str, float]:
    """Return the probability of each permitted answer; `judgement` gives the likeliest one.

    A judge is less sure the nearer a case is to the next answer. With probability `noise`, a wrong answer
    gets at least the probability `WRONG`. How sure real LLMs are is not known; this is an assumption.
    """
    is_habitual, is_wrong = random.random() < habits, random.random() < noise
    if asked.scale is None:
        value, limit = _yes_value(asked, is_habitual=is_habitual)
        yes = 1 / (1 + math.exp((limit - value) / UNSURE))
        is_yes = _is_so(asked, is_habitual=is_habitual)
        sure = max(yes, 1 - yes)
        shares = {"yes": sure if is_yes else 1 - sure, "no": 1 - sure if is_yes else sure}
    else:
        lowest, highest = asked.scale
        at = lowest + _value(asked, is_habitual=is_habitual) * (highest - lowest)
        width = UNSURE * (highest - lowest)
        weights = {
            str(each): math.exp(-(((each - at) / width) ** 2) / 2) for each in range(lowest, highest + 1)
        }
        shares = {each: weight / sum(weights.values()) for each, weight in weights.items()}
    if is_wrong:
        wrong = _verdict(asked, random, is_habitual=is_habitual, is_wrong=True)
        shares = {each: (1 - WRONG) * share + WRONG * (each == wrong) for each, share in shares.items()}
    return shares


def _explanation(texts: Sequence[str]) -> str:
    """Say what the events of two sentences have in common, and where they differ."""
    events = [known.event for known in map(read_sentence, texts[:2]) if known is not None]
    if len(events) != 2:
        return "The sentences were compared word by word."
    slots = slot_similarities(*events)
    same = [slot for slot, value in slots.items() if value == 1]
    other = [slot for slot, value in slots.items() if value < 1]
    if events[0].is_negative != events[1].is_negative:
        other.append("truth")
    return f"They share {', '.join(same) or 'nothing'} and differ in {', '.join(other) or 'nothing'}."


def _verdict(asked: ComparisonTask, random: Random, *, is_habitual: bool, is_wrong: bool) -> str:
    if asked.scale is None:
        return "yes" if _is_so(asked, is_habitual=is_habitual) != is_wrong else "no"
    lowest, highest = asked.scale
    grade = round(lowest + _value(asked, is_habitual=is_habitual) * (highest - lowest))
    if is_wrong:
        grade = random.choice([other for other in range(lowest, highest + 1) if other != grade])
    return str(grade)


def in_other_words(answer: str, asked: ComparisonTask, random: Random) -> str:
    """Return an answer with more words than requested, or one that decides nothing."""
    most = "" if asked.scale is None else f"/{asked.scale[1]}"
    forms = (
        f"Answer: {answer}{most}",
        f"**{answer.capitalize()}**",
        f"{answer.capitalize()}{most}. The sentences were compared word by word.",
        f"<think>Let me see. They are alike at first sight.</think>\n{answer}",
        random.choice(UNDECIDED),
    )
    return random.choice(forms)


def _is_so(asked: ComparisonTask, *, is_habitual: bool) -> bool:
    first, *others = asked.texts
    if not others:
        return read_sentence(first) is not None
    value, limit = _yes_value(asked, is_habitual=is_habitual)
    if asked.wants_sameness:
        is_other = len(others) < _MOST_TEXTS - 1 or _similarity((first, others[1]), is_habitual=False) < SAME
        return value >= limit and is_other
    if _CONTRADICTS.search(asked.instruction.lower()):
        return RELATED <= value < limit
    return value < limit


def _yes_value(asked: ComparisonTask, *, is_habitual: bool) -> tuple[float, float]:
    """Return the similarity or relevance (`_value`), and the threshold from which it means "the same"."""
    return _value(asked, is_habitual=is_habitual), HABITUAL_SAME if is_habitual else SAME


def _value(asked: ComparisonTask, *, is_habitual: bool) -> float:
    """Return the similarity of the first two sentences, or the relevance of a passage, in [0, 1]."""
    if not asked.is_search:
        return _similarity(asked.texts[:2], is_habitual=is_habitual)
    question, passage = asked.texts
    shared, truth = _shared_words(question, passage), relevance_of(passage, question)
    if truth is None:
        return shared
    return (truth + shared) / 2 if is_habitual else truth


def _similarity(texts: Sequence[str], *, is_habitual: bool) -> float:
    """Return the similarity of two sentences; for a single sentence, 1 if it is in the grammar, else 0."""
    known = [read_sentence(text) for text in texts]
    if len(texts) == 1:
        return float(known[0] is not None)
    shared = _shared_words(texts[0], texts[1])
    if known[0] is None or known[1] is None:
        return shared
    truth = similarity(known[0].event, known[1].event)
    return (truth + shared) / 2 if is_habitual else truth


def _shared_words(first: str, second: str) -> float:
    words, others = (set(re.findall(r"\w+", text.lower())) for text in (first, second))
    return len(words & others) / max(len(words | others), 1)


def _taken_apart(text: str) -> tuple[tuple[str, ...], str]:
    """Return the sentences in a message, and the message without them.

    Sentences are found by labels at line starts, else by quotes, else by labels within lines.
    """
    for form in (_LABELLED, _QUOTED, _IN_LINE):
        found = ["".join(filter(None, match.groups())) for match in form.finditer(text)]
        if form is _QUOTED:
            found = [each for each in found if len(each.split()) > 1]
        if found:
            return tuple(found), form.sub(" ", text)
    return (), text


def _scale(instruction: str) -> tuple[int, int] | None:
    """Return the lowest and highest grade, None without a scale; ranges of lengths are no scale."""
    for sentence in _SENTENCE_ENDS.split(instruction):
        found = _SCALE.search(sentence)
        if found and _GRADING.search(sentence) and int(found[1]) < int(found[2]):
            return int(found[1]), int(found[2])
    return None
