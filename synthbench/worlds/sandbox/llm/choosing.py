"""Answers in JSON about a passage: one of the given options under each key."""

import json
import re
from random import Random

from synthbench.worlds.sandbox.llm.json_asks import ChoiceAsk
from synthbench.worlds.sandbox.llm.understanding import domains_of_topic
from synthbench.worlds.sandbox.parsing import sentences_told

_NUMBERED = re.compile(r"^(\d+)\.\s")
_MEANING = re.compile(r"\s*\(.*\)$")


def choices(ask: ChoiceAsk, random: Random) -> str:
    """Return JSON, key -> chosen option: its number, else its text without a final explanation in brackets.

    Among numbered options, such as personas, those that suit the domains of the passage are preferred.
    """
    domains = {known.event.domain for known in sentences_told(ask.passage)}
    chosen: dict[str, int | str] = {}
    for key, options in ask.options.items():
        suited = [option for option in options if domains & _domains_of(option)]
        numbered = all(map(_NUMBERED.match, options))
        option = random.choice((suited if numbered else ()) or options)
        number = _NUMBERED.match(option)
        chosen[key] = int(number[1]) if numbered and number else _MEANING.sub("", option)
    return json.dumps(chosen)


def _domains_of(option: str) -> set[str]:
    words = re.findall(r"[a-z-]+", option.lower())
    return {name for word in words for name in domains_of_topic(word)}
