"""A chat model of the sandbox: it works out from the messages what is asked, and answers by the grammar.

Behind a real HTTP server on loopback that speaks OpenAI's chat-completions API, with the faults that such
services have, so that whatever talks to a commercial LLM can be run, and broken, without one.
"""

from collections.abc import Mapping
from typing import Any, Literal, Self

from pydantic import ConfigDict, Field, model_validator

from synthbench.worlds.contract import WorldLLMSettings
from synthbench.worlds.sandbox import VERSION as WORLD_VERSION

MODEL = "sandbox/llm"
VERSION = 1
"""Raise it whenever the same request may get another answer."""


SETTINGS_OF_CONTENT = ("seed", "noise", "unread", "habits", "refusals", "empty", "malformed")


class LLMSettings(WorldLLMSettings):
    """How well the model answers, which never depends on when; and how badly the service behaves."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)

    seed: int = Field(0, ge=0, description="another seed, other answers and faults")
    noise: float = Field(
        0.0, ge=0, le=1, description="share of answers of the wrong relation, topic or judgement"
    )
    unread: float = Field(
        0.0, ge=0, le=1, description="share of paraphrases and contradictions of another sentence than asked"
    )
    habits: float = Field(
        0.6,
        ge=0,
        le=1,
        description="share of answers with the prompt's habits: few topics, forms and kinds of change; of"
        " judgements, share of those that go by shared words",
    )
    refusals: float = Field(0.0, ge=0, le=1, description='share of answers like "I cannot paraphrase ..."')
    empty: float = Field(0.0, ge=0, le=1, description="share of answers without any text")
    malformed: float = Field(
        0.0, ge=0, le=1, description="share of answers with a preamble, quotes, another numbering or count"
    )
    latency: float = Field(0.0, ge=0, le=600, description="seconds before every answer")
    rate_limited: float = Field(0.0, ge=0, le=1, description="share of requests refused with 429")
    retry_after: int = Field(1, ge=0, description="seconds that such a 429 asks to wait (Retry-After)")
    server_errors: float = Field(0.0, ge=0, le=1, description="share of requests answered with 500")
    drops: float = Field(0.0, ge=0, le=1, description="share of connections closed without an answer")
    max_faults_in_a_row: int = Field(4, ge=1, description="after so many faults a request is answered")
    faults_by: Literal["attempt", "arrival"] = Field(
        "attempt", description="what a fault depends on: the request and its attempt, or its place in line"
    )
    requests_per_minute: int | None = Field(
        None, ge=1, description="more than so many within 60 s get 429; null: no limit"
    )

    @model_validator(mode="after")
    def _shares_fit(self) -> Self:
        for keys in (("refusals", "empty", "malformed"), ("rate_limited", "server_errors", "drops")):
            if sum(getattr(self, key) for key in keys) > 1 + 1e-9:
                raise ValueError(f"{', '.join(keys)}: together they must not be more than 1")
        return self

    def content(self) -> Mapping[str, Any]:
        """Return all that the answers depend on, beside the requests."""
        own = {key: getattr(self, key) for key in SETTINGS_OF_CONTENT}
        return {**own, "version": f"{WORLD_VERSION}.{VERSION}"}
