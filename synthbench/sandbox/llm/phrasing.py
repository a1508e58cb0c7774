"""What chat models say around an answer, or in its place."""

import re
from collections.abc import Sequence
from random import Random

from synthbench.sandbox.llm.understanding import Ask, Task

_REFUSALS = {
    Task.PARAPHRASE: (
        "I cannot paraphrase this sentence.",
        "I'm sorry, but I can't paraphrase that for you.",
        "Sorry, I am unable to rephrase the given sentence without more context.",
        "As an AI language model, I cannot provide a paraphrase of this input.",
    ),
    Task.CONTRADICTION: (
        "I cannot contradict this sentence.",
        "I'm sorry, but I can't write a sentence that contradicts this one.",
        "Sorry, I am unable to produce a contradicting sentence without more context.",
        "As an AI language model, I cannot provide a contradiction of this input.",
    ),
    Task.SENTENCES: (
        "I'm sorry, but I can't write these sentences.",
        "As an AI language model, I cannot generate this content.",
        "Sorry, I am unable to help with this list.",
    ),
    Task.UNCLEAR: ("I'm sorry, but I can't help with that.",),
}
_QUESTIONS = (
    "Happy to help! Which sentence should I work on, and what would you like me to do with it?",
    "Sure, I can paraphrase or contradict a sentence, or write new ones. What do you have in mind?",
    "Could you tell me a little more about what you need? A sentence and an instruction would be enough.",
    "I'm here to help with sentences. Please give me one and say what it should become.",
)
_PREAMBLES = {
    Task.PARAPHRASE: (
        "Sure! Here is a paraphrase:\n\n",
        "Of course. Here's another way to say it: ",
        "Paraphrase: ",
    ),
    Task.CONTRADICTION: (
        "Sure! Here is a sentence with a different meaning:\n\n",
        "Certainly. Here's a contradiction: ",
        "Contradiction: ",
    ),
    Task.SENTENCES: (
        "Sure! Here are the sentences you asked for:\n\n",
        "Certainly! Below is a list of diverse sentences.\n\n",
    ),
}
_NOTES = ("\n\nLet me know if you need anything else!", "\n\n(Note: the wording was changed on purpose.)")
_NUMBERINGS = ("{number}) {text}", "- {text}", "{text}", "Sentence {number}: {text}", "**{number}.** {text}")
_NUMBERED = re.compile(r"^\d+\. ")


def refusal(ask: Ask, random: Random) -> str:
    """Return a polite refusal."""
    return random.choice(_REFUSALS[ask.task])


def question(random: Random) -> str:
    """Return what a chat model says that did not understand what is wanted."""
    return random.choice(_QUESTIONS)


def numbered(sentences: Sequence[str]) -> str:
    """Return "1. ...", one sentence on a line."""
    return "\n".join(f"{number}. {text}" for number, text in enumerate(sentences, 1))


def malformed(answer: str, ask: Ask, random: Random) -> str:
    """Return an answer in a form that nobody asked for: never the given text, never without its words.

    A list may come in another numbering, with a sentence less or with one twice.
    """
    if ask.task is Task.UNCLEAR:
        return answer + random.choice(_NOTES)
    lines = answer.split("\n")
    if len(lines) > 1:
        return _malformed_list([_NUMBERED.sub("", line) for line in lines], ask, random)
    how = random.randrange(3)
    if how == 0:
        return f'"{answer}"'
    return random.choice(_PREAMBLES[ask.task]) + answer if how == 1 else answer + random.choice(_NOTES)


def _malformed_list(sentences: list[str], ask: Ask, random: Random) -> str:
    how = random.randrange(4)
    if how == 0:
        return random.choice(_PREAMBLES[ask.task]) + numbered(sentences)
    if how == 1:
        numbering = random.choice(_NUMBERINGS)
        return "\n".join(numbering.format(number=n, text=text) for n, text in enumerate(sentences, 1))
    if how == 2:
        return numbered(sentences[: random.randrange(1, len(sentences))])
    return numbered([*sentences, random.choice(sentences)])
