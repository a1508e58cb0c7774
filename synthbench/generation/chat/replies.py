"""Reading what an endpoint sent: the API's JSON, or whatever stands in for it."""

from typing import Any

from synthbench.generation.chat.bodies import Reply, UnreadableReplyError
from synthbench.generation.chat.cache import Answer
from synthbench.generation.chat.requests import ChatAnswer, ChatRequest
from synthbench.generation.chat.thoughts import without_thoughts

BYTES_PER_TOKEN = 4
"""Assumed where an endpoint does not say how many tokens it counted."""
MOST_TOKENS = 10**7
"""A larger count is not believed: no request has so many."""
NOT_UNICODE = "its text is not valid Unicode"
ONLY_THOUGHTS = "thoughts without an answer"


def answered(request: ChatRequest, found: Answer) -> ChatAnswer:
    """Return what the caller gets of an answer.

    The cache keeps the whole text, which was paid, so that other thoughts can be told apart later.
    """
    if found.text is None:
        return ChatAnswer(request, None, found.failure)
    text = without_thoughts(found.text)
    is_lost = bool(found.text.strip()) and not text.strip()
    return ChatAnswer(request, None, ONLY_THOUGHTS) if is_lost else ChatAnswer(request, text)


def read_reply(request: ChatRequest, reply: Reply) -> Answer:
    """Return the first choice of a chat completion; raises UnreadableReplyError if it is none.

    An answer that the service filtered has no text, nor has one whose text can't be kept.
    """
    read = sum(len(message["content"]) for message in request.messages)
    return read_completion(reply.value, read // BYTES_PER_TOKEN + 1)


def read_completion(reply: Any, prompt_tokens: int) -> Answer:  # noqa: ANN401 - whatever came
    """Do as `read_reply` with the JSON; `prompt_tokens` counts where the endpoint does not say how many.

    Raises UnreadableReplyError.
    """
    try:
        choice, usage = reply["choices"][0], reply.get("usage")
        message, finish = choice["message"], choice.get("finish_reason")
        is_message = isinstance(message, dict)
    except (KeyError, IndexError, TypeError, AttributeError):
        is_message = False
    if not is_message:
        raise UnreadableReplyError("JSON without an answer")
    text, failure = (None, "content filter") if finish == "content_filter" else _said(message)
    counts = usage if isinstance(usage, dict) else {}
    return Answer(
        text,
        failure,
        _count(counts.get("prompt_tokens"), prompt_tokens),
        _count(counts.get("completion_tokens"), len(text or "") // BYTES_PER_TOKEN + 1),
    )


def _said(message: dict[str, Any]) -> tuple[str | None, str]:
    """Return the text of a message, or None and why it has none."""
    content, refusal = message.get("content"), message.get("refusal")
    has_thoughts = bool(message.get("reasoning_content") or message.get("reasoning"))
    if isinstance(content, list):
        has_thoughts = has_thoughts or bool(content)
        refusal = refusal or _of_parts(content, "refusal")
        content = _of_parts(content, "text")
    said = content or refusal or ""
    if not isinstance(said, str):
        return None, "its content is no text"
    if not said and has_thoughts:
        return None, ONLY_THOUGHTS
    try:
        said.encode()
    except UnicodeEncodeError:
        return None, NOT_UNICODE
    return said, ""


def _of_parts(content: list[Any], kind: str) -> str:
    """Return the texts of the parts of a kind; parts of other kinds (thinking ...) are no answer."""
    parts = [part for part in content if isinstance(part, dict) and part.get("type") == kind]
    texts = [part.get(kind) for part in parts]
    return "".join(text for text in texts if isinstance(text, str))


def _count(told: object, otherwise: int) -> int:
    """Return a number of tokens as told, unless that is none."""
    return told if type(told) is int and 0 <= told <= MOST_TOKENS else otherwise
