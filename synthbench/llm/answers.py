"""Answers of an endpoint, as the cache keeps them, and when one that is not whole is asked for again.

| kind | what came | asked again | kept |
| --- | --- | --- | --- |
| whole | the answer | no | yes |
| cut off | a limit on tokens ended it | no | yes |
| refused | a content filter or a refusal | no | yes |
| empty answer | no visible text | up to 3 tries in all | then |
| faulty answer | an unknown `finish_reason`, no text, invalid Unicode | up to 4 tries in all | then |
| faulty answer | the service says that it failed (`finish_reason: error`) | as after HTTP 500 | never |
"""

import json
from dataclasses import dataclass

from synthbench.data.answer_kinds import AnswerKind, reason_of

CONTENT_FILTER = "content filter"
BY_THE_MODEL = "by the model"
LIMIT_ON_TOKENS = "limit on tokens"
BEFORE_ANY_ANSWER = "limit on tokens, before any answer"
ONLY_THOUGHTS = "thoughts without an answer"
_CUT_OFF = {"length", "max_tokens", "max_output_tokens", "model_length", "context_length"}
_REFUSED = {
    *("content_filter", "content_filtered", "refusal", "safety", "recitation", "blocklist", "sensitive"),
    *("prohibited_content", "spii", "guardrail_intervened"),
}
_WHOLE = {"stop", "stop_sequence", "end_turn", "eos", "eos_token", "complete"}
_SERVER_FAULTS = {"error", "abort", "aborted", "network_error", "insufficient_system_resource", "failed"}


@dataclass(frozen=True)
class Details:
    """More of an answer's usage: `cached_tokens` of the prompt's tokens were in the service's cache.

    `reasoning_tokens` of the answer's were thoughts.
    """

    cached_tokens: int = 0
    reasoning_tokens: int = 0


@dataclass(frozen=True)
class Origin:
    """What the service says of itself: the model that answered, and its `system_fingerprint`."""

    model: str = ""
    fingerprint: str = ""


@dataclass(frozen=True)
class Answer:
    """An endpoint's answer: `text` is what came, None if nothing did.

    `kind` and `failure` say what it lacks, if it is not whole. `is_server_fault`: the service says that it
    failed, so that a later run may get an answer.
    """

    text: str | None
    failure: str
    prompt_tokens: int
    completion_tokens: int
    details: Details = Details()
    kind: AnswerKind = AnswerKind.WHOLE
    origin: Origin = Origin()
    is_server_fault: bool = False

    @property
    def reason(self) -> str:
        """Why it is no data."""
        return reason_of(self.kind, self.failure)


def kind_of_finish(reason: object) -> tuple[AnswerKind, str]:
    """Return what a `finish_reason` says of the answer, and what to tell of it.

    A reason that is unknown, null among them, leaves open whether the answer is whole.
    """
    said = reason.lower() if isinstance(reason, str) else ""
    if said in _WHOLE:
        return AnswerKind.WHOLE, ""
    if said in _CUT_OFF:
        return AnswerKind.CUT_OFF, LIMIT_ON_TOKENS
    if said in _REFUSED:
        return AnswerKind.REFUSED, CONTENT_FILTER
    said = f"'{reason}'" if isinstance(reason, str) else json.dumps(reason)
    return AnswerKind.FAULTY, as_printable_line(f"finish_reason {said}")


def is_server_fault(reason: object) -> bool:
    """Tell whether a `finish_reason` says that the service failed."""
    return isinstance(reason, str) and reason.lower() in _SERVER_FAULTS


def as_printable_line(text: str) -> str:
    """Make an outside text fit for a log: one line without control characters or invalid letters."""
    return " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())
