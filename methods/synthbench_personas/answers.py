"""Read the JSON answers of both steps; a missing or unknown value raises AnswerError with the reason."""

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from synthbench.api import AnswerError, json_object, linear_pattern, same_text, text_under

PERSONA, TYPE, DIFFICULTY, QUERY = "persona", "type", "difficulty", "query"
IS_PASSAGE = f"{QUERY}: equal to the passage"
_NUMBER = linear_pattern(
    r"^\W*(?:(?:persona?|number|no|candidate)\b\W*)?(\d{1,4})(?:\.0)?(?![.,]?\d|\w)", re.IGNORECASE
)
_JOINTS = linear_pattern(r"[\W_]+")


def configuration_in(
    answer: str, personas: Sequence[str], types: Collection[str], difficulties: Collection[str]
) -> Mapping[str, str]:
    """Return the persona's text, and the names of type and difficulty.

    A persona is chosen by its number, counted from 1, or its text. Raises AnswerError if a choice is missing
    or was not offered.
    """
    found = json_object(answer, (PERSONA, TYPE, DIFFICULTY))
    return {
        PERSONA: _persona(found, personas),
        TYPE: _option(found, TYPE, types),
        DIFFICULTY: _option(found, DIFFICULTY, difficulties),
    }


def query_in(answer: str, passage: str) -> str:
    """Return the query of an answer; raises AnswerError if there is none, or if it is the passage itself."""
    query = text_under(json_object(answer, (QUERY,)), QUERY)
    if same_text(query) == same_text(passage):
        raise AnswerError(IS_PASSAGE)
    return query


def _persona(found: Mapping[str, Any], personas: Sequence[str]) -> str:
    given = found.get(PERSONA)
    if isinstance(given, int | float) and not isinstance(given, bool) and given % 1 == 0:
        number = int(given)
    else:
        text = text_under(found, PERSONA)
        named = [persona for persona in personas if same_text(persona) == same_text(text)]
        if named:
            return named[0]
        match = _NUMBER.match(text)
        number = int(match[1]) if match else 0
    if not 1 <= number <= len(personas):
        raise AnswerError(f"{PERSONA}: none of the candidates")
    return personas[number - 1]


def _option(found: Mapping[str, Any], key: str, options: Collection[str]) -> str:
    """Return the option that the answer names; case and punctuation don't matter ("Yes or no": "yes_or_no").

    The option's description may follow its name, but no other option may.
    """
    chosen = _bare(text_under(found, key))
    named = [option for option in options if _bare(option) == chosen]
    named = named or [option for option in options if f" {_bare(option)} " in f" {chosen} "]
    if len(named) != 1 or not f"{chosen} ".startswith(f"{_bare(named[0])} "):
        raise AnswerError(f"{key}: not among the options")
    return named[0]


def _bare(name: str) -> str:
    return _JOINTS.sub(" ", name.casefold().replace("/", " or ")).strip()
