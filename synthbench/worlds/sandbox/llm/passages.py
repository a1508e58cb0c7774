"""Passages beside a query: they contradict one that answers it, and so do not answer."""

from collections.abc import Callable
from dataclasses import replace
from random import Random

from synthbench.worlds.sandbox.llm.understanding import Ask, AskedTask
from synthbench.worlds.sandbox.parsing import sentences_told
from synthbench.worlds.sandbox.realisation import tell
from synthbench.worlds.sandbox.relevance import events_asked_for, relevance_of

_TRIES = 40


def passage_beside(ask: Ask, random: Random, related: Callable[[Ask], str]) -> str:
    """Return a passage whose sentences contradict those of the given one, and that does not answer at all.

    It answers nevertheless if the habit is to change just what the query asks for. If the task is a
    paraphrase, the passage tells the same. `related` returns one sentence's contradiction or paraphrase.
    Without a passage, a sentence on what the query asks about is contradicted.
    """
    told = [known.text for known in sentences_told(ask.sentence)]
    if ask.sentence == ask.query:
        asked = next(events_asked_for(ask.query, random), None)
        told = [] if asked is None else [tell(asked[1], "captions", random)]
    parts = [replace(ask, sentence=text, query="") for text in told or [ask.sentence]]
    text = ""
    for _ in range(_TRIES):
        text = " ".join(f"{related(part).removesuffix('.')}." for part in parts)
        if ask.task is AskedTask.PARAPHRASE or not relevance_of(text, ask.query):
            break
    return text
