"""The prompts, all our own: an instruction and, for InPars, exemplars of passages with queries."""

from typing import Literal

PromptName = Literal["instruction", "few-shot"]
Message = dict[str, str]

INSTRUCTION = (
    "Write one search query, as a question, that the passage answers. Ask for something that the passage"
    " says. Use words of your own. Answer with the query alone."
)
EXEMPLARS = (
    (
        "Honey does not spoil because it holds very little water and is acidic. Sealed jars from ancient"
        " tombs were still edible when they were opened.",
        "why can honey be kept for so long?",
    ),
    (
        "The Danube rises in the Black Forest and flows through ten countries before it reaches the Black"
        " Sea.",
        "how many countries does the Danube cross?",
    ),
    (
        "To reset the router, hold the small button on its back for ten seconds until the light blinks"
        " twice.",
        "what do I press to reset my router?",
    ),
)
"""The number in InPars's prompt (Bonifacio et al. 2022, section 3)."""


def messages(name: PromptName, passage: str) -> tuple[Message, ...]:
    """Return the messages that request one query; exemplars are turns."""
    turns = EXEMPLARS if name == "few-shot" else ()
    shown = [
        message
        for text, query in turns
        for message in (_message("user", _passage(text)), _message("assistant", query))
    ]
    return (_message("system", INSTRUCTION), *shown, _message("user", _passage(passage)))


def _passage(text: str) -> str:
    """Return a passage on one line, since a line break would look like its end."""
    return f"Passage: {' '.join(text.split())}"


def _message(role: str, content: str) -> Message:
    return {"role": role, "content": content}
