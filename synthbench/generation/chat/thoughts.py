"""What a model thought before it answered, as far as its text holds that.

Services mostly send thoughts in a field of their own, which is never read. Others leave them in the text:
between tags, after an opening tag that never closes (the answer was cut off), or before a closing tag that
was never opened (the prompt opened it).
"""

import re
from collections import deque
from collections.abc import Iterable

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
