"""Chat requests and their answers, as callers see them."""

from collections.abc import Mapping
from dataclasses import dataclass

from synthbench.data.answer_kinds import AnswerKind


@dataclass(frozen=True)
class ChatRequest:
    """One request.

    `key` names it for the caller; it enters neither the request nor the cache. `messages` have a role and a
    content each; `sampling` holds the sampling parameters by the API's names (temperature, top_p, max_tokens,
    ...). `sample` distinguishes several answers to equal requests; a generation seed enters here, hashed with
    the index.
    """

    key: str
    messages: tuple[Mapping[str, str], ...]
    sampling: Mapping[str, float | int]
    sample: int = 0


@dataclass(frozen=True)
class ChatAnswer:
    """A request's answer: `text`, or None with the reason in `failure`.

    Only a whole answer has a text, and one that was cut off if the LLM's settings say `cut_off: take`. The
    reason begins with the answer's kind if an answer came ("cut off: limit on tokens").
    """

    request: ChatRequest
    text: str | None
    failure: str = ""
    kind: AnswerKind = AnswerKind.WHOLE
