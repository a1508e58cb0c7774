"""Read an endpoint's replies: bodies of limited size, the API's JSON, answers without the model's thoughts.

Most services send thoughts in a separate field, which is no part of the answer. Others leave them in the
text: between tags, after an opening tag without a closing one (a truncated answer), or before a closing tag
without an opening one (the prompt opened it).
"""

import json
import re
import zlib
from collections.abc import Iterable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from synthbench.base.patterns import linear_pattern
from synthbench.data.answer_kinds import AnswerKind
from synthbench.data.records import is_unicode
from synthbench.llm.answers import (
    BEFORE_ANY_ANSWER,
    BY_THE_MODEL,
    CONTENT_FILTER,
    LIMIT_ON_TOKENS,
    ONLY_THOUGHTS,
    Answer,
    Details,
    Origin,
    as_printable_line,
    is_server_fault,
    kind_of_finish,
)
from synthbench.llm.logprobs import read_logprobs
from synthbench.llm.requests import ChatAnswer, ChatRequest
from synthbench.tables.characters import is_invisible

if TYPE_CHECKING:
    from httpx2 import Response

MAX_REPLY_BYTES = 4 * 2**20
"""Maximum bytes of a decompressed reply: several times a model's longest answer."""
ENCODINGS = "gzip, deflate"
_GZIP_OR_ZLIB = 47


class UnreadableReplyError(Exception):
    """A reply that does not follow the API."""


class ServerFaultError(Exception):
    """A reply with status 200 that reports the service's failure; `fault` is its error, if it has one."""

    def __init__(self, fault: Any = None) -> None:  # noqa: ANN401 - whatever came
        super().__init__(fault)
        self.fault = fault


@dataclass(frozen=True)
class Reply:
    """An HTTP reply; if its body exceeds MAX_REPLY_BYTES, `is_whole` is False and `content` empty."""

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
        """The body's JSON; raises UnreadableReplyError if it is not JSON, or nested too deeply."""
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
    """Return the reply; stop reading once the decompressed body exceeds MAX_REPLY_BYTES.

    A body that is neither plain, gzip nor deflate is ignored.
    """
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
                # Neither gzip nor deflate, the only encodings accepted: ignore the body.
                content.clear()
                break
            if len(content) > MAX_REPLY_BYTES:
                return Reply(response.status_code, response.headers, b"", is_whole=False)
    return Reply(response.status_code, response.headers, bytes(content))


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
    """Remove a model's thoughts, then the tags around the answer; a text without thoughts stays unchanged.

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


def _kind(tag: re.Match[str]) -> tuple[str, bool]:
    """Return the kind of a tag (opening and closing tags share it), and whether the tag is an opening one."""
    if tag["name"]:
        return tag["name"].lower(), tag["end"] is None
    return next(kind for group, kind in _CHANNEL_KINDS.items() if tag[group] is not None)


def _begins_a_line(text: str, start: int, position: int) -> bool:
    """Return whether only white space precedes `position` in its line; text before `start` is ignored."""
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
NO_TEXT = "its content is not text"
_KINDS_OF_FAILURES = {CONTENT_FILTER: AnswerKind.REFUSED, ONLY_THOUGHTS: AnswerKind.EMPTY}
"""Failure text that earlier versions stored -> kind of answer; every other text means a faulty answer."""


def to_chat_answer(request: ChatRequest, found: Answer, *, takes_cut_off: bool = False) -> ChatAnswer:
    """Return the answer for the caller: its text without thoughts, or the reason why it is unusable.

    The cache stores the full text, so that later versions can recognise other forms of thoughts.
    """
    answer = classified(found)
    is_taken = answer.kind is AnswerKind.WHOLE or (takes_cut_off and answer.kind is AnswerKind.CUT_OFF)
    text = without_thoughts(answer.text or "") if is_taken else ""
    if is_invisible(text):
        return ChatAnswer(request, None, answer.reason, answer.kind)
    return ChatAnswer(request, text, kind=answer.kind, logprobs=answer.logprobs or ())


def classified(found: Answer) -> Answer:
    """Return the answer with its kind, which caches of earlier versions lack."""
    is_cut_off = found.kind is AnswerKind.CUT_OFF
    if found.kind is not AnswerKind.WHOLE and (found.failure or not is_cut_off):
        return found
    if found.text is None and not is_cut_off:
        return replace(found, kind=_KINDS_OF_FAILURES.get(found.failure, AnswerKind.FAULTY))
    kind, failure = _kind_of_text(found.text or "", is_cut_off=is_cut_off)
    return found if kind is AnswerKind.WHOLE else replace(found, kind=kind, failure=failure)


def _kind_of_text(text: str, *, is_cut_off: bool, has_thoughts: bool = False) -> tuple[AnswerKind, str]:
    """Return a text's kind and why it is not whole; `has_thoughts`: the reply has a field of thoughts."""
    is_empty = is_invisible(without_thoughts(text))
    if is_cut_off:
        return AnswerKind.CUT_OFF, BEFORE_ANY_ANSWER if is_empty else LIMIT_ON_TOKENS
    if is_empty:
        return AnswerKind.EMPTY, ONLY_THOUGHTS if has_thoughts or not is_invisible(text) else ""
    return AnswerKind.WHOLE, ""


def read_completion(reply: Any, prompt_tokens: int) -> Answer:  # noqa: ANN401 - whatever came
    """Read a chat completion's JSON; `prompt_tokens` is used if the endpoint reports no count.

    Raises ServerFaultError if a failure is reported without an answer, UnreadableReplyError if this is no
    chat completion. A failure reported beside an answer makes the answer faulty.
    """
    choice = _choice(reply)
    fault = _fault_in(reply) or _fault_in(choice, is_choice=True)
    message, usage = choice["message"], reply.get("usage")
    text, kind, failure = _read(message, choice.get("finish_reason", "stop"))
    if fault is not None:
        kind, failure = AnswerKind.FAULTY, described(fault)
    counts = usage if isinstance(usage, dict) else {}
    return Answer(
        text,
        failure,
        _count(counts.get("prompt_tokens"), prompt_tokens),
        _count(counts.get("completion_tokens"), len(text or "") // BYTES_PER_TOKEN + 1),
        _details(counts),
        kind,
        Origin(_name(reply.get("model")), _name(reply.get("system_fingerprint"))),
        is_server_fault=fault is not None or is_server_fault(choice.get("finish_reason")),
        logprobs=read_logprobs(choice),
    )


def _choice(reply: Any) -> dict[str, Any]:  # noqa: ANN401 - whatever came
    """Return the first choice, which has a message; raises as `read_completion` does."""
    choices = reply.get("choices") if isinstance(reply, dict) else None
    choice = choices[0] if isinstance(choices, list) and choices else None
    if isinstance(choice, dict) and isinstance(choice.get("message"), dict):
        return choice
    fault = _fault_in(reply) or _fault_in(choice, is_choice=True)
    if fault is not None:
        raise ServerFaultError(fault)
    if isinstance(reply, dict) and "choices" in reply and (not choices or _is_empty_choice(choices)):
        # Sent by vLLM and routers under load.
        raise ServerFaultError
    raise UnreadableReplyError("JSON without an answer")


def _is_empty_choice(choices: Any) -> bool:  # noqa: ANN401 - whatever came
    """Return whether the first choice is null, or null under every key that APIs use for an answer."""
    choice = choices[0] if isinstance(choices, list) else ...
    names = ("message", "text", "delta")
    return choice is None or (isinstance(choice, dict) and all(choice.get(name) is None for name in names))


def _fault_in(part: Any, *, is_choice: bool = False) -> Any:  # noqa: ANN401 - whatever came
    """Return the error in a reply or a choice, or None; FastAPI puts its errors under "detail"."""
    if not isinstance(part, dict):
        return None
    is_answer = isinstance(part.get("choices"), list) or isinstance(part.get("message"), dict)
    found = part.get("error") or (None if is_answer else part.get("errors") or part.get("detail"))
    if isinstance(found, list) and found:
        found = found[0]
    if isinstance(found, dict | str) and found:
        return found
    if found or part.get("object") == "error" or ("error" in part and not is_answer):
        return part
    # A choice's message is a text in some old APIs.
    tells = "choices" not in part and any(isinstance(part.get(name), str) for name in MESSAGE_KEYS)
    return part if tells and not is_choice else None


MESSAGE_KEYS = ("message", "msg")
"""Keys where services put an error's message."""


def described(fault: Any) -> str:  # noqa: ANN401 - whatever came
    """Return the service's message on a failure with status 200; it may be long, and contain the API key."""
    if fault is None:
        return "HTTP 200 without an answer"
    said = next(filter(None, map(fault.get, MESSAGE_KEYS)), fault) if isinstance(fault, dict) else fault
    return f"HTTP 200 with an error: {as_printable_line(said if isinstance(said, str) else json.dumps(said))}"


def _details(usage: Mapping[str, Any]) -> Details:
    """Return cached and reasoning tokens, which services report in one of two forms."""
    prompt, completion = (usage.get(f"{each}_tokens_details") for each in ("prompt", "completion"))
    cached = prompt.get("cached_tokens") if isinstance(prompt, dict) else usage.get("prompt_cache_hit_tokens")
    reasoning = completion.get("reasoning_tokens") if isinstance(completion, dict) else None
    most = [_count(usage.get(f"{each}_tokens"), 0) for each in ("prompt", "completion")]
    return Details(min(_count(cached, 0), most[0]), min(_count(reasoning, 0), most[1]))


def _read(message: dict[str, Any], finish: object) -> tuple[str | None, AnswerKind, str]:
    """Return a message's text or None, its kind, and the reason if it is not whole."""
    content, refusal = message.get("content"), message.get("refusal")
    has_thoughts = bool(message.get("reasoning_content") or message.get("reasoning"))
    if isinstance(content, list):
        has_thoughts = has_thoughts or bool(content)
        refusal = refusal or _of_parts(content, "refusal")
        content = _of_parts(content, "text")
    text = refusal or content or ""
    if not isinstance(text, str):
        return None, AnswerKind.FAULTY, NO_TEXT
    if not is_unicode(text):
        return None, AnswerKind.FAULTY, NOT_UNICODE
    kind, failure = kind_of_finish(finish)
    if refusal and kind is not AnswerKind.FAULTY:
        return text, AnswerKind.REFUSED, BY_THE_MODEL
    if kind in (AnswerKind.WHOLE, AnswerKind.CUT_OFF):
        kind, failure = _kind_of_text(text, is_cut_off=kind is AnswerKind.CUT_OFF, has_thoughts=has_thoughts)
    return text, kind, failure


def _of_parts(content: list[Any], kind: str) -> str:
    """Join the parts of one kind; parts of other kinds (such as thinking) are no answer."""
    parts = [part for part in content if isinstance(part, dict) and part.get("type") == kind]
    texts = [part.get(kind) for part in parts]
    return "".join(text for text in texts if isinstance(text, str))


def _name(given: object) -> str:
    """Return a name from the service in one line; "" without a name."""
    return as_printable_line(given) if isinstance(given, str) else ""


def _count(given: object, otherwise: int) -> int:
    """Return a reported token count if it is valid, else `otherwise`."""
    return given if type(given) is int and 0 <= given <= MAX_TOKEN_COUNT else otherwise
