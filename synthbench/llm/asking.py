"""Helpers for plug-ins that ask an LLM: sampling parameters, seeded draws, estimates."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Final, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from synthbench.llm.endpoint import ChatAmount

Item = TypeVar("Item")

UNSET: Final = "unset"
Temperature = Annotated[float, Field(ge=0, le=2)] | Literal["unset"]
TopP = Annotated[float, Field(gt=0, le=1)] | Literal["unset"]
Penalty = Annotated[float, Field(ge=-2, le=2)] | Literal["unset"]
AS_SENT = "as defined by the API; unset: not sent"


class ChatSampling(BaseModel):
    """Sampling parameters of a request, by the API's names."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)

    temperature: Temperature = Field(UNSET, description=AS_SENT)
    top_p: TopP = Field(UNSET, description=AS_SENT)
    presence_penalty: Penalty = Field(UNSET, description=AS_SENT)
    frequency_penalty: Penalty = Field(UNSET, description=AS_SENT)
    max_tokens: Annotated[int, Field(ge=1)] | Literal["unset"] = Field(
        UNSET, description="maximum length of an answer in tokens; unset: not sent"
    )

    def parameters(self) -> Mapping[str, float | int]:
        """Return the parameters to send: those that are set."""
        return {name: value for name, value in self.model_dump().items() if value != UNSET}


class OpenSampling(ChatSampling):
    """Sampling at temperature 1 and top-p 1, for diversity."""

    temperature: Temperature = Field(1.0, description=AS_SENT)
    top_p: TopP = Field(1.0, description=AS_SENT)


def drawn(items: Sequence[Item], num_drawn: int, *of: object) -> tuple[Item, ...]:
    """Draw `num_drawn` items, none twice, in a random order fixed by `of`; all items if there are fewer."""
    begun = _hash((*of, ""))

    def digest(index: int) -> bytes:
        hashed = begun.copy()
        hashed.update(str(index).encode())
        return hashed.digest()

    return tuple(items[index] for index in sorted(range(len(items)), key=digest)[:num_drawn])


def hashed_number(*of: object) -> int:
    """Return a 31-bit number that depends only on `of`."""
    return int.from_bytes(_hash(of).digest()[:4]) >> 1


def hashed_share(*of: object, num_bytes: int = 8) -> float:
    """Return a number in [0, 1) that depends only on `of`: a hash's first `num_bytes` bytes as a fraction."""
    return float(int.from_bytes(_hash(of).digest()[:num_bytes]) / 256**num_bytes)


def _hash(of: Sequence[object]) -> "hashlib._Hash":
    return hashlib.sha256("\x1f".join(map(str, of)).encode(errors="surrogatepass"))


_CHARACTERS_PER_TOKEN = 4.5
_TOKENS_PER_TURN = 4


def estimated_amount(
    num_requests: int, chats: Iterable[Sequence[Mapping[str, str]]], tokens_per_answer: int
) -> ChatAmount:
    """Estimate the tokens of `num_requests` requests from the messages of a few of them, `chats`."""
    lengths = [
        sum(len(message["content"]) / _CHARACTERS_PER_TOKEN + _TOKENS_PER_TURN for message in messages)
        for messages in chats
    ]
    mean_length = sum(lengths) / max(len(lengths), 1)
    return ChatAmount(num_requests, round(num_requests * mean_length), num_requests * tokens_per_answer)
