"""Passages that do not answer a query, since they contradict a passage that does."""

from collections.abc import Callable
from dataclasses import replace
from random import Random

from synthbench.worlds.sandbox.llm.understanding import Ask, AskedTask
from synthbench.worlds.sandbox.parsing import sentences_told
from synthbench.worlds.sandbox.realisation import tell
from synthbench.worlds.sandbox.relevance import events_asked_for, relevance_of

_TRIES = 40


def passage_beside(ask: Ask, random: Random, related: Callable[[Ask], str]) -> str:
    """Return a passage that does not answer the query: it contradicts each sentence of `ask.sentence`.

    If 40 draws fail, the passage may still answer. For example, the query asks for the object, and a prompt's
    habit changes only objects: a passage with another object is an answer, too. If the task is a paraphrase,
    the passage says the same as `ask.sentence`. `related` returns one sentence's contradiction or paraphrase.
    If `ask.sentence` is the query itself, a sentence that answers it is drawn and contradicted.
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
