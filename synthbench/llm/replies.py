"""Read an endpoint's replies: bodies of limited size, the API's JSON, answers without the model's thoughts.

Most services send thoughts in a separate field, which is never read. Others leave them in the text: between
tags, after an opening tag without a closing one (the answer was cut off), or before a closing tag without an
opening one (the prompt opened it).
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

from synthbench.llm.cache import Answer, Details
from synthbench.llm.requests import ChatAnswer, ChatRequest
from synthbench.patterns import linear_pattern

if TYPE_CHECKING:
    from httpx2 import Response

MAX_REPLY_BYTES = 4 * 2**20
"""Most bytes of a decompressed reply: several times a model's longest answer."""
ENCODINGS = "gzip, deflate"
_GZIP_OR_ZLIB = 47


class UnreadableReplyError(Exception):
    """A reply with status 200 that is not the API's."""


@dataclass(frozen=True)
class Reply:
    """A reply; `is_whole` unless its body exceeds MAX_REPLY_BYTES."""

    status: int
    headers: Mapping[str, str]
    content: bytes
    is_whole: bool = True

    @property
    def content_type(self) -> str:
        """The media type, "" if there is none."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()

    @property
    def is_page(self) -> bool:
        """Whether it is a web page, which the API never sends."""
        return "html" in self.content_type

    @cached_property
    def value(self) -> Any:  # noqa: ANN401 - whatever came
        """The body's JSON; raises UnreadableReplyError if it is not JSON."""
        try:
            return json.loads(self.content)
        except RecursionError:
            raise UnreadableReplyError("JSON that is nested too deeply") from None
        except ValueError:
            kind = self.content_type or "no content type"
            is_json = kind == "application/json"
            raise UnreadableReplyError(
                "incomplete JSON instead of an answer"
                if is_json
                else f"{as_printable_line(kind)} instead of JSON"
            ) from None


async def read_whole(response: "Response") -> Reply:
    """Return the reply; stop reading once the decompressed body exceeds MAX_REPLY_BYTES."""
    encoding = response.headers.get("content-encoding", "").strip().lower()
    unpacking = zlib.decompressobj(_GZIP_OR_ZLIB) if encoding not in ("", "identity") else None
    content = bytearray()
    async with aclosing(response.aiter_raw()) as parts:
        async for part in parts:
            try:
                content += (
                    part
                    if unpacking is None
                    else unpacking.decompress(part, MAX_REPLY_BYTES + 1 - len(content))
                )
            except zlib.error:
                # Neither gzip nor deflate, the only encodings we accept: ignore the body.
                content.clear()
                break
            if len(content) > MAX_REPLY_BYTES:
                return Reply(response.status_code, response.headers, b"", is_whole=False)
    return Reply(response.status_code, response.headers, bytes(content))


def as_printable_line(text: str) -> str:
    """Make an outside text fit for a log: one line without control characters or invalid letters."""
    return " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())


_NAMES = (
    r"think|thinking|thoughts?|reasoning|reflection|scratchpad|analysis|inner_monologue|internal_monologue|"
    r"chain_of_thought|cot|seed:think"
)
_TAG = linear_pattern(
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
"""Tags that some models put around the answer after their thoughts."""
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
    """Remove a model's thoughts from a text; a text without any stays as it is.

    An opening tag counts only at the start of a line; elsewhere a sentence may mention it.
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
    """Return the tag at a prompt's end that opens the answer's thoughts, "" if there is none."""
    last = deque(_TAG.finditer(prompt), 1)
    is_open = bool(last) and last[0].end() == len(prompt.rstrip()) and _kind(last[0])[1]
    return last[0][0] if is_open else ""


def _kind(tag: re.Match[str]) -> tuple[str, bool]:
    """Return a tag's kind, which the closing tag shares, and whether it opens."""
    if tag["name"]:
        return tag["name"].lower(), tag["end"] is None
    return next(kind for group, kind in _CHANNEL_KINDS.items() if tag[group] is not None)


def _begins_a_line(text: str, start: int, position: int) -> bool:
    """Tell whether only white space precedes `position` in its line or since the last thoughts."""
    while position > start and text[position - 1] != "\n":
        position -= 1
        if not text[position].isspace():
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
"""Assumed if an endpoint reports no token counts."""
MAX_TOKEN_COUNT = 10**7
"""Larger counts are ignored as impossible."""
NOT_UNICODE = "its text is not valid Unicode"
ONLY_THOUGHTS = "thoughts without an answer"


def to_chat_answer(request: ChatRequest, found: Answer) -> ChatAnswer:
    """Return the answer for the caller, without thoughts.

    The cache keeps the whole text, so that later versions can recognise thoughts of other forms.
    """
    if found.text is None:
        return ChatAnswer(request, None, found.failure)
    text = without_thoughts(found.text)
    is_lost = bool(found.text.strip()) and not text.strip()
    return ChatAnswer(request, None, ONLY_THOUGHTS) if is_lost else ChatAnswer(request, text)


def read_reply(request: ChatRequest, reply: Reply) -> Answer:
    """Return the first choice of a chat completion; raises UnreadableReplyError if there is none.

    An answer has no text if the service filtered it or it is not valid Unicode.
    """
    read = sum(len(message["content"]) for message in request.messages)
    return read_completion(reply.value, read // BYTES_PER_TOKEN + 1)


def read_completion(reply: Any, prompt_tokens: int) -> Answer:  # noqa: ANN401 - whatever came
    """Read a chat completion's JSON; `prompt_tokens` is used if the endpoint reports no count.

    Raises UnreadableReplyError if it is no chat completion.
    """
    try:
        choice, usage = reply["choices"][0], reply.get("usage")
        message, finish = choice["message"], choice.get("finish_reason")
        is_message = isinstance(message, dict)
    except (KeyError, IndexError, TypeError, AttributeError):
        is_message = False
    if not is_message:
        raise UnreadableReplyError("JSON without an answer")
    text, failure = (None, "content filter") if finish == "content_filter" else _text_of(message)
    counts = usage if isinstance(usage, dict) else {}
    return Answer(
        text,
        failure,
        _count(counts.get("prompt_tokens"), prompt_tokens),
        _count(counts.get("completion_tokens"), len(text or "") // BYTES_PER_TOKEN + 1),
        _details(counts, is_cut_off=finish == "length"),
    )


def _details(usage: Mapping[str, Any], *, is_cut_off: bool) -> Details:
    """Return cached and reasoning tokens, which services report in one of two forms."""
    prompt, completion = (usage.get(f"{each}_tokens_details") for each in ("prompt", "completion"))
    cached = prompt.get("cached_tokens") if isinstance(prompt, dict) else usage.get("prompt_cache_hit_tokens")
    reasoning = completion.get("reasoning_tokens") if isinstance(completion, dict) else None
    most = [_count(usage.get(f"{each}_tokens"), 0) for each in ("prompt", "completion")]
    return Details(min(_count(cached, 0), most[0]), min(_count(reasoning, 0), most[1]), is_cut_off)


def _text_of(message: dict[str, Any]) -> tuple[str | None, str]:
    """Return a message's text, or None and why it has none."""
    content, refusal = message.get("content"), message.get("refusal")
    has_thoughts = bool(message.get("reasoning_content") or message.get("reasoning"))
    if isinstance(content, list):
        has_thoughts = has_thoughts or bool(content)
        refusal = refusal or _of_parts(content, "refusal")
        content = _of_parts(content, "text")
    said = content or refusal or ""
    if not isinstance(said, str):
        return None, "its content is not text"
    if not said and has_thoughts:
        return None, ONLY_THOUGHTS
    try:
        said.encode()
    except UnicodeEncodeError:
        return None, NOT_UNICODE
    return said, ""


def _of_parts(content: list[Any], kind: str) -> str:
    """Join the parts of one kind; parts of other kinds (such as thinking) are no answer."""
    parts = [part for part in content if isinstance(part, dict) and part.get("type") == kind]
    texts = [part.get(kind) for part in parts]
    return "".join(text for text in texts if isinstance(text, str))


def _count(given: object, otherwise: int) -> int:
    """Return a reported token count if it is valid."""
    return given if type(given) is int and 0 <= given <= MAX_TOKEN_COUNT else otherwise
