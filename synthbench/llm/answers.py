"""Answers of an endpoint as cached, and when an incomplete one is requested again.

| kind | reply | requested again | cached |
| --- | --- | --- | --- |
| whole | the answer | no | yes |
| cut off | a limit on tokens ended it | no | yes |
| refused | a content filter or a refusal | no | yes |
| empty answer | no visible text | up to 3 tries in all | the last |
| faulty answer | unknown `finish_reason`, no text, invalid Unicode | up to 4 tries in all | the last |
| faulty answer | the service reports a failure (`finish_reason: error`) | as after HTTP 500 | never |
"""

import json
from dataclasses import dataclass

from synthbench.data.answer_kinds import AnswerKind, reason_of
from synthbench.llm.logprobs import TokenLogprob

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
    """Token counts of an answer in detail.

    `cached_tokens`: prompt tokens that the service had in its cache. `reasoning_tokens`: answer tokens that
    were thoughts.
    """

    cached_tokens: int = 0
    reasoning_tokens: int = 0


@dataclass(frozen=True)
class Origin:
    """The service's own report: the model that answered, and its `system_fingerprint`; "" if not reported."""

    model: str = ""
    fingerprint: str = ""


@dataclass(frozen=True)
class Answer:
    """An endpoint's answer: `text` is the text received, or None.

    `kind` and `failure` say why an answer is incomplete. `is_server_fault`: the service reports a failure
    of its own, so a later run may get an answer. `logprobs`: None if the reply has none.
    """

    text: str | None
    failure: str
    prompt_tokens: int
    completion_tokens: int
    details: Details = Details()
    kind: AnswerKind = AnswerKind.WHOLE
    origin: Origin = Origin()
    is_server_fault: bool = False
    logprobs: tuple[TokenLogprob, ...] | None = None

    @property
    def reason(self) -> str:
        """Why the answer is not used as data."""
        return reason_of(self.kind, self.failure)


def kind_of_finish(reason: object) -> tuple[AnswerKind, str]:
    """Return the answer's kind by its `finish_reason`, and a detail to report.

    An unknown reason or null gives FAULTY, since the answer may be incomplete.
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
    """Return whether a `finish_reason` means that the service failed."""
    return isinstance(reason, str) and reason.lower() in _SERVER_FAULTS


def as_printable_line(text: str) -> str:
    """Return untrusted text as one log line, without control characters or invalid letters."""
    return " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())
