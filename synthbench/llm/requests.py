"""Chat requests and their answers, as callers use them."""

from collections.abc import Mapping
from dataclasses import dataclass

from synthbench.data.answer_kinds import AnswerKind
from synthbench.llm.logprobs import TokenLogprob


@dataclass(frozen=True)
class ChatRequest:
    """One request to a chat model.

    `key` is the caller's name for the request, neither sent nor cached. `messages` have a role and a content
    each; `sampling` holds the sampling parameters by the API's names (temperature, top_p, max_tokens, ...).
    `sample`, such as a hash of seed and index, tells equal requests apart, so that each gets its own answer.
    It is sent as the API's `seed`, unless the endpoint takes none.
    `logprobs` asks for the log-probabilities of the answer's tokens; it is the number of alternatives at each
    position (0 to 20; None: no log-probabilities).
    """

    key: str
    messages: tuple[Mapping[str, str], ...]
    sampling: Mapping[str, float | int]
    sample: int = 0
    logprobs: int | None = None


@dataclass(frozen=True)
class ChatAnswer:
    """A request's answer: `text`, or None with the reason in `failure`.

    Only complete answers have a text; with `cut_off: take`, truncated answers have one, too. If an answer
    came, the reason begins with `kind` ("cut off: limit on tokens"); without an answer, `kind` is WHOLE.
    `logprobs` are those of the tokens that the model wrote, thoughts in the text included; () unless the
    request asks for them.
    """

    request: ChatRequest
    text: str | None
    failure: str = ""
    kind: AnswerKind = AnswerKind.WHOLE
    logprobs: tuple[TokenLogprob, ...] = ()
