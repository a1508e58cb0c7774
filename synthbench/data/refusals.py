"""Recognises a chat model that declines its task."""

import re

_CANNOT = r"(?:cannot|can't|can not|could not|couldn't|won't|(?:am|'m|was) (?:unable|not able) to)"
_TASK = "(?:rewrite|contradict|write|generate|provide|produce|create|complete|fulfil+|carry out)"
_REFUSALS = re.compile(
    "|".join(
        (
            r"\bas an? (?:ai|artificial intelligence|(?:large )?language model)\b",
            r"\bi(?:'m| am) (?:just |only )?an? (?:ai|artificial intelligence|(?:large )?language model)\b",
            rf"\b{_CANNOT} (?:\w+ )?(?:paraphrase|rephrase|reword)\b",
            rf"\bi ?{_CANNOT} (?:assist|help)(?: you)? with (?:this|that|the|your)\b",
            rf"\bi ?{_CANNOT} {_TASK}\b"
            r".*\b(?:sentences?|text|input|content|paraphrase|contradiction|premise|hypothes[ei]s|request|list)\b",
            rf"\bi ?{_CANNOT} (?:provide|give|share|generate) (?:\w+ )?(?:information|guidance)\b"
            r".*\b(?:that|this|explicit|illegal|harmful|promotes?)\b",
        )
    )
)


def looks_like_a_refusal(text: str) -> bool:
    """Tell whether a chat model seems to decline its task: "I cannot paraphrase ...", "As an AI ..."."""
    return _REFUSALS.search(" ".join(text.lower().replace("\u2019", "'").split())) is not None
