"""Read what an endpoint sends: bodies of limited size, the API's JSON, an answer without its thoughts.

Most services send a model's thoughts in a field of their own, which is never read. Others leave them in the
text: between tags, after an opening tag that never closes (the answer was cut off), or before a closing tag
that was never opened (the prompt opened it).
"""

import json
import re
import zlib
from collections import deque
from collections.abc import Iterable, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from synthbench.llm.cache import Answer
from synthbench.llm.requests import ChatAnswer, ChatRequest

if TYPE_CHECKING:
    from httpx2 import Response

LARGEST = 4 * 2**20
"""Bytes of a reply when it is unpacked: several times the longest answer that a model writes."""
ENCODINGS = "gzip, deflate"
_GZIP_OR_ZLIB = 47


class UnreadableReplyError(Exception):
    """What came with status 200 is not an answer of the API."""


@dataclass(frozen=True)
class Reply:
    """A status and what came with it; `is_whole` unless the body has more than LARGEST bytes."""

    status: int
    headers: Mapping[str, str]
    content: bytes
    is_whole: bool = True

    @property
    def content_type(self) -> str:
        """What it says it is, "" if it does not."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()

    @property
    def is_page(self) -> bool:
        """Whether it is a web page, which no API sends."""
        return "html" in self.content_type

    @cached_property
    def value(self) -> Any:  # noqa: ANN401 - whatever came
        """Its JSON; raises UnreadableReplyError if it is none."""
        try:
            return json.loads(self.content)
        except RecursionError:
            raise UnreadableReplyError("JSON that is nested too deep") from None
        except ValueError:
            kind = self.content_type or "no content type"
            is_json = kind == "application/json"
            raise UnreadableReplyError(
                "incomplete JSON instead of an answer"
                if is_json
                else f"{as_printable_line(kind)} instead of JSON"
            ) from None


async def read_whole(response: "Response") -> Reply:
    """Return the reply; reading stops where it has more than LARGEST bytes, packed or not."""
    encoding = response.headers.get("content-encoding", "").strip().lower()
    unpacking = zlib.decompressobj(_GZIP_OR_ZLIB) if encoding not in ("", "identity") else None
    content = bytearray()
    async with aclosing(response.aiter_raw()) as parts:
        async for part in parts:
            try:
                content += (
                    part if unpacking is None else unpacking.decompress(part, LARGEST + 1 - len(content))
                )
            except zlib.error:
                # Neither gzip nor deflate, which alone were asked for: what it says then is not read.
                content.clear()
                break
            if len(content) > LARGEST:
                return Reply(response.status_code, response.headers, b"", is_whole=False)
    return Reply(response.status_code, response.headers, bytes(content))


def as_printable_line(text: str) -> str:
    """Return somebody else's words fit for a log: one line, without control characters and broken letters."""
    return " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())


_NAMES = (
    r"think|thinking|thoughts?|reasoning|reflection|scratchpad|analysis|inner_monologue|internal_monologue|"
    r"chain_of_thought|cot|seed:think"
)
_TAG = re.compile(
    # <think>, <think effort="high">, [THINK], ◁think▷, <|thinking|>, <|begin_of_thought|>, <|START_THINKING|>
    rf"(?:[<◁]\|?|\[(?=/?think\]))(?P<end>/|end_(?:of_)?)?(?:(?:begin_of_|start_)?(?P<name>{_NAMES}))(?:\s[^<>\[\]]{{0,80}})?\|?[>\]▷]"
    # The channels of gpt-oss, with and without its special tokens.
    r"|(?P<channel>(?:<\|start\|>assistant)?<\|channel\|>(?:analysis|commentary)[^<]{0,80}<\|message\|>)"
    r"|(?P<final>(?:<\|start\|>assistant)?<\|channel\|>final[^<]{0,80}<\|message\|>)"
    r"|(?P<bare_channel>\Aanalysis(?=[A-Z]))|(?P<bare_final>assistantfinal(?=\S))"
    # Granite.
    r"|(?P<process>^here is my thought process:)|(?P<response>^here is my response:)",
    re.IGNORECASE | re.MULTILINE,
)
_WRAPPERS = {
    "<answer>": "</answer>",
    "<response>": "</response>",
    "<output>": "</output>",
    "<final_answer>": "</final_answer>",
    "<|begin_of_solution|>": "<|end_of_solution|>",
    "<|begin_of_box|>": "<|end_of_box|>",
}
"""What some models put around the answer that follows their thoughts."""
_END_TOKENS = ("<|return|>", "<|end|>", "<|im_end|>", "<|eot_id|>", "</s>")
_CHANNEL_KINDS = {
    "channel": ("channel", True),
    "final": ("channel", False),
    "bare_channel": ("bare channel", True),
    "bare_final": ("bare channel", False),
    "process": ("process", True),
    "response": ("process", False),
}


def without_thoughts(text: str) -> str:
    """Return a text without its thoughts, as it is if it holds none, "" if it holds nothing else.

    An opening tag counts at the start of a line only: elsewhere a sentence may speak of it.
    """
    said: list[str] = []
    within, start = "", 0
    for tag in _TAG.finditer(text):
        kind, opens = _kind(tag)
        if opens and not within and _begins_a_line(text, start, tag.start()):
            said.append(text[start : tag.start()])
            within = kind
        elif not opens and within in ("", kind):
            if not within:
                said.clear()
            within, start = "", tag.end()
    if not start and not within:
        return text
    return _unwrapped("".join(said) + ("" if within else text[start:]))


def opening_tag(prompt: str) -> str:
    """Return the tag at a prompt's end with which the thoughts of an answer begin, "" if there is none."""
    last = deque(_TAG.finditer(prompt), 1)
    is_open = bool(last) and last[0].end() == len(prompt.rstrip()) and _kind(last[0])[1]
    return last[0][0] if is_open else ""


def _kind(tag: re.Match[str]) -> tuple[str, bool]:
    """Return what closes with what, and whether this opens it."""
    if tag["name"]:
        return tag["name"].lower(), tag["end"] is None
    return next(kind for group, kind in _CHANNEL_KINDS.items() if tag[group] is not None)


def _begins_a_line(text: str, start: int, place: int) -> bool:
    """Tell whether only white space stands before a place in its line, or since other thoughts ended."""
    while place > start and text[place - 1] != "\n":
        place -= 1
        if not text[place].isspace():
            return False
    return True


def _unwrapped(text: str) -> str:
    text = _without_one(text.strip(), _END_TOKENS)
    for opening, closing in _WRAPPERS.items():
        if text[: len(opening)].lower() == opening:
            return _without_one(text[len(opening) :].strip(), (closing,))
    return text


def _without_one(text: str, endings: Iterable[str]) -> str:
    ending = next((each for each in endings if text.lower().endswith(each)), "")
    return text.removesuffix(text[len(text) - len(ending) :]).strip()


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
