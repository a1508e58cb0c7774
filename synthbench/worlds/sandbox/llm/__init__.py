"""A chat model of the sandbox: it recognises the request in the messages and answers by the grammar.

It is served over HTTP on loopback with OpenAI's chat-completions API and the faults of real services. So
software that uses a commercial LLM can be tested without that LLM, also on faults.
"""

from collections.abc import Mapping
from typing import Any, Literal, Self

from pydantic import ConfigDict, Field, model_validator

from synthbench.worlds.contract import WorldLLMSettings
from synthbench.worlds.sandbox import VERSION as WORLD_VERSION

MODEL = "sandbox/llm"
VERSION = 1
"""Raise it whenever the same request may get a different answer."""


SETTINGS_OF_CONTENT = ("seed", "noise", "unread", "habits", "refusals", "empty", "malformed")


class LLMSettings(WorldLLMSettings):
    """Settings of the answers and of the service's faults; equal requests get equal answers."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)

    seed: int = Field(0, ge=0, description="seed of answers and faults")
    noise: float = Field(
        0.0, ge=0, le=1, description="share of answers with the wrong relation, topic or judgement"
    )
    unread: float = Field(
        0.0,
        ge=0,
        le=1,
        description="share of paraphrases, contradictions and questions made from another text than the given"
        " one",
    )
    habits: float = Field(
        0.6,
        ge=0,
        le=1,
        description="share of answers with the prompt's habits: few topics, sentence forms and kinds of"
        " change; share of judgements that word overlap influences",
    )
    refusals: float = Field(0.0, ge=0, le=1, description='share of answers like "I cannot paraphrase ..."')
    empty: float = Field(0.0, ge=0, le=1, description="share of answers without any text")
    malformed: float = Field(
        0.0,
        ge=0,
        le=1,
        description="share of answers in a wrong form: with a preamble or quotes, a wrong numbering or count,"
        " or invalid JSON",
    )
    latency: float = Field(0.0, ge=0, le=600, description="seconds before every answer")
    rate_limited: float = Field(0.0, ge=0, le=1, description="share of requests refused with 429")
    retry_after: int = Field(
        1, ge=0, description="seconds in the header Retry-After of the 429s of `rate_limited`"
    )
    server_errors: float = Field(0.0, ge=0, le=1, description="share of requests answered with 500")
    drops: float = Field(0.0, ge=0, le=1, description="share of connections closed without an answer")
    max_faults_in_a_row: int = Field(
        4,
        ge=1,
        description="maximum number of consecutive faults for a request, without 429s of"
        " `requests_per_minute`",
    )
    faults_by: Literal["attempt", "arrival"] = Field(
        "attempt",
        description="what faults depend on. attempt: the request and the number of its attempt; arrival: the"
        " order in which requests arrive",
    )
    requests_per_minute: int | None = Field(
        None,
        ge=1,
        description="maximum number of answers within 60 s, further requests get 429; null: no limit",
    )

    @model_validator(mode="after")
    def _shares_fit(self) -> Self:
        for keys in (("refusals", "empty", "malformed"), ("rate_limited", "server_errors", "drops")):
            if sum(getattr(self, key) for key in keys) > 1 + 1e-9:
                raise ValueError(f"{', '.join(keys)}: together they must not be more than 1")
        return self

    def content(self) -> Mapping[str, Any]:
        """Return the settings that the answers depend on."""
        own = {key: getattr(self, key) for key in SETTINGS_OF_CONTENT}
        return {**own, "version": f"{WORLD_VERSION}.{VERSION}"}
