"""Recognition of chat models' refusals."""

from synthbench.base.patterns import linear_pattern

_CANNOT = r"(?:cannot|can't|can not|could not|couldn't|won't|(?:am|'m|was) (?:unable|not able) to)"
_TASK = "(?:rewrite|contradict|write|generate|provide|produce|create|complete|fulfil+|carry out)"
_DECLINED = linear_pattern(
    "|".join(
        (
            r"\bas an? (?:ai|artificial intelligence|(?:large )?language model)\b",
            r"\bi(?:'m| am) (?:just |only )?an? (?:ai|artificial intelligence|(?:large )?language model)\b",
            rf"\b{_CANNOT} (?:\w+ )?(?:paraphrase|rephrase|reword)\b",
            rf"\bi ?{_CANNOT} (?:assist|help)(?: you)? with (?:this|that|the|your)\b",
        )
    )
)
_OPEN = (
    (
        linear_pattern(rf"\bi ?{_CANNOT} {_TASK}\b"),
        linear_pattern(
            r"\b(?:sentences?|text|input|content|paraphrase|contradiction|premise|hypothes[ei]s|request|list)\b"
        ),
    ),
    (
        linear_pattern(
            rf"\bi ?{_CANNOT} (?:provide|give|share|generate) (?:\w+ )?(?:information|guidance)\b"
        ),
        linear_pattern(r"\b(?:that|this|explicit|illegal|harmful|promotes?)\b"),
    ),
)
"""Beginnings of refusals, and a word that must follow each."""


def looks_like_a_refusal(text: str) -> bool:
    """Return whether a chat model seems to decline its task: "I cannot paraphrase ...", "As an AI ..."."""
    line = " ".join(text.lower().replace("\u2019", "'").split())
    return _DECLINED.search(line) is not None or any(
        (begun := beginning.search(line)) is not None and word.search(line, begun.end()) is not None
        for beginning, word in _OPEN
    )
