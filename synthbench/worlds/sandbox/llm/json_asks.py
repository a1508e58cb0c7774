"""Recognise requests for JSON: tasks, three texts, choices, a query for a passage, or graded documents."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from synthbench.worlds.sandbox.llm.inputs import PASSAGE
from synthbench.worlds.sandbox.realisation import Register

_JSON = re.compile(r"\b(?:JSON|python list)\b", re.IGNORECASE)
_NUMBER_OF_TASKS = re.compile(r"\b(\d{1,3})\s+(?:\w+\s+){0,2}?(?:tasks|elements)\b", re.IGNORECASE)
_ILLUSTRATION = re.compile(r"\b(?:illustration|example)s?\b.*", re.IGNORECASE)
_KEY = re.compile(r'^\W*"(?P<key>\w+)"\s*:\s*(?P<about>.+)$', re.MULTILINE)
_LENGTH = re.compile(
    r"\b(?P<long>long|\d+ words)\b|\b(?P<short>short|search(?:es|ed)?|query)\b", re.IGNORECASE
)
_LABEL = re.compile(r"\blabels?\b|\bfew words that are\b", re.IGNORECASE)
_CLASSIFYING = re.compile(r"\bclassif\w+|\bcategori[sz]\w+", re.IGNORECASE)
_WITH_TASK = re.compile(r"\btask\b[^:\n]*:\s*(?P<task>\S.*)$", re.IGNORECASE | re.MULTILINE)
_GRADE = re.compile(
    r"\b(?P<grade>[0-5](?:\.\d)?)\s+(?:of|out of|/)\s*5\b|\bshould be (?P<alone>[0-5](?:\.\d)?)\b"
)
_UNIT = re.compile(r"\b(?:phrase|sentence|passage)\b", re.IGNORECASE)
_LENGTHS_OF_TASKS = re.compile(r"\b(?:short|long)\b", re.IGNORECASE)
_OPTIONS = re.compile(r"\bone of:\s*(?P<options>\S.*)$", re.IGNORECASE)
_QUERY = re.compile(r"\bquer(?:y|ies)\b|\bquestions?\b", re.IGNORECASE)
_KEYWORDS = re.compile(r"\b(?:key|search) ?words\b", re.IGNORECASE)
_NUM_WORDS = re.compile(r"\b(\d+) to (\d+) words\b", re.IGNORECASE)
_LEVEL = re.compile(r'"(?P<key>\w+)" \(')
_WITH_QUERY = re.compile(
    r"^\W*(?:search )?quer(?:y|ies)\W*:\s*(?P<query>\S.*)$", re.IGNORECASE | re.MULTILINE
)
_SENTENCES = re.compile(r"\b(\d{1,2}) sentences?\b", re.IGNORECASE)
MOST_TASKS = 200


@dataclass(frozen=True, slots=True)
class TasksAsk:
    """A request for `count` tasks: are their queries and documents long, and are the documents labels?"""

    count: int
    is_query_long: bool
    is_document_long: bool
    is_label: bool


@dataclass(frozen=True, slots=True)
class RecordAsk:
    """A request for three texts under `keys`: anchor, positive and hard negative, or anchor and two others.

    `grades`: the requested similarities of the others to the anchor, in [0, 1]; None if none are requested.
    """

    keys: tuple[str, str, str]
    task: str
    is_anchor_long: bool
    is_document_long: bool
    is_label: bool
    grades: tuple[float, float] | None
    register: Register


@dataclass(frozen=True, slots=True)
class ChoiceAsk:
    """A request about a passage: choose one of `options[key]` for each key, by number if numbered."""

    options: Mapping[str, Sequence[str]]
    passage: str


@dataclass(frozen=True, slots=True)
class QueryAsk:
    """A request for a query for a passage, under `key`, with at least `num_words` words (0: any length)."""

    key: str
    passage: str
    is_keywords: bool
    num_words: int


@dataclass(frozen=True, slots=True)
class GradedAsk:
    """A request for one document per level of relevance to a query; `keys` name the levels, highest first."""

    keys: tuple[str, ...]
    query: str
    num_sentences: int


JSONAsk = TasksAsk | RecordAsk | ChoiceAsk | QueryAsk | GradedAsk


def json_ask_in(text: str) -> JSONAsk | None:
    """Return the request for JSON in a message; None if there is none, or its form is unknown."""
    if not _JSON.search(text):
        return None
    query, levels = _WITH_QUERY.search(text), tuple(dict.fromkeys(_LEVEL.findall(text)))
    if query is not None and len(levels) > 1:
        length = _SENTENCES.search(text)
        return GradedAsk(levels, query["query"].strip(), int(length[1]) if length else 1)
    keys = list({found["key"]: found["about"] for found in _KEY.finditer(text)}.items())
    passage = PASSAGE.search(text)
    if keys and passage is not None:
        asked = _about_passage(text, keys, passage["text"].strip())
        if asked is not None:
            return asked
    if len(keys) == 3:
        return _record(text, keys)
    number = _NUMBER_OF_TASKS.search(text)
    return _tasks(text, min(int(number[1]), MOST_TASKS)) if number else None


def passage_of(ask: JSONAsk) -> str:
    """Return the passage or query that a request is about, "" without one."""
    if isinstance(ask, GradedAsk):
        return ask.query
    return ask.passage if isinstance(ask, ChoiceAsk | QueryAsk) else ""


def _about_passage(text: str, keys: Sequence[tuple[str, str]], passage: str) -> JSONAsk | None:
    options = {key: found["options"].split("; ") for key, about in keys if (found := _OPTIONS.search(about))}
    if len(options) == len(keys):
        return ChoiceAsk(options, passage)
    if len(keys) > 1 or not _QUERY.search(" ".join(keys[0])):
        return None
    around = PASSAGE.sub("", text)
    length = _NUM_WORDS.search(around)
    return QueryAsk(keys[0][0], passage, bool(_KEYWORDS.search(around)), int(length[1]) if length else 0)


def _tasks(text: str, count: int) -> TasksAsk:
    asked = _ILLUSTRATION.sub("", text)
    if _CLASSIFYING.search(asked):
        return TasksAsk(count, is_query_long=True, is_document_long=False, is_label=True)
    lengths = [word.lower() == "long" for word in _LENGTHS_OF_TASKS.findall(asked)]
    query, document = (lengths * 2)[:2] or (False, True)
    return TasksAsk(count, is_query_long=query, is_document_long=document, is_label=False)


def _record(text: str, keys: Sequence[tuple[str, str]]) -> RecordAsk:
    names = (keys[0][0], keys[1][0], keys[2][0])
    found = [float(match["grade"] or match["alone"]) / 5 for match in _GRADE.finditer(text)]
    grades = (found[0], found[1]) if len(found) > 1 else None
    task = _WITH_TASK.search(text)
    found_unit = _UNIT.search(text) if grades else None
    unit = found_unit[0].lower() if found_unit else ""
    is_label = bool(_LABEL.search(f"{names[1]} {keys[1][1]}".replace("_", " ")))
    return RecordAsk(
        keys=names,
        task=task["task"].strip() if task else "",
        is_anchor_long=unit == "passage" or _is_long(keys[0][1]),
        is_document_long=unit == "passage" or (not is_label and _is_long(keys[1][1])),
        is_label=is_label,
        grades=grades,
        register="headlines" if unit == "phrase" else "captions",
    )


def _is_long(about: str) -> bool:
    length = _LENGTH.search(about)
    return length is not None and length["long"] is not None
