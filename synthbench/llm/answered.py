"""Extract sentences from an LLM's answer, without the text that chat models put around them."""

import json
import re
from collections.abc import Iterable

from synthbench.base.patterns import linear_pattern
from synthbench.data.refusals import looks_like_a_refusal
from synthbench.llm.json_answers import REFUSAL, has_content
from synthbench.tables.characters import is_invisible

_QUOTES = {'"': '"', "“": "”", "„": '“”"', "«": "»", "「": "」", "‘": "’", "'": "'", "`": "`"}
"""Opening quotation mark -> the marks that may close it."""
_FENCE = linear_pattern(r"^\s*(?:```|~~~)\w*\s*$")
_KIND = (
    r"(?:(?:paraphras|rephras|reword|contradict|entail)\w*+\s++|(?:new|neutral|bonus)\s++)?"
    r"(?:sentence|caption|headline|example|item|title|question|hypothes[ei]|paraphrase|contradiction|version|option|"
    r"statement|variation|alternative|satz|句子)s?"
)
_NUMBER = linear_pattern(
    rf"^\s*+(?:[-*•–]\s++)?(?:\*\*|__)?(?:{_KIND}\s*+:?\s*+)?(?:no\.?\s*+|#\s*+)?"
    r"(?:[(\[（](?P<enclosed>\d{1,4})[)\]）][.:]?|(?P<number>\d{1,4})\s*(?:[.):、．）：]|\s[-–—]))"
    r"(?P<bold>\*\*|__)?(?=\s|$|[\"“„«「'*\w])",
    re.IGNORECASE,
)
_BARE_NUMBER = linear_pattern(r"^\s*(?P<number>\d{1,3})\s*$")
_ITEM_LABEL = linear_pattern(
    rf"^(?:\*\*|__)?[\"“'‘]?(?:{_KIND}(?:\s*#?\d{{1,3}})?|[HP]\d{{1,2}})\s*+(?:\*\*|__)?\s*+[:：]\s*+(?:\*\*|__)?\s*+(?=\S)"
    # A heading in bold, whatever its text.
    r"|^\*\*[^*:]{1,40}(?::\*\*|\*\*\s*:)\s+(?=\S)",
    re.IGNORECASE,
)
_REMARK = linear_pattern(
    r"^(?P<sentence>.*(?<![.\s(][A-Za-z])[.!?][\"”'’*_]*+)\s*+[(\[](?P<remark>[^()\[\]]+)[)\]][.*_]*$"
)
"""A sentence followed by a remark in brackets; brackets inside the sentence belong to it."""
_EMPHASIS = linear_pattern(r"(?<![\w*])(?P<mark>\*\*?)(?=\S)(?P<words>[^*]+)(?<=\S)(?P=mark)(?![\w*])")
_BULLET = linear_pattern(r"^\s*[-*•–‣▪]\s+")
_INLINE_NUMBER = linear_pattern(r"(?:^|(?<=\s))(?P<number>\d{1,3})[.)]\s+")
_OPENING = linear_pattern(
    r"^(?:sure|certainly|of course|absolutely|okay|ok|alright|great|no problem|here (?:is|are)|here's|"
    r"below (?:is|are)|these are|the following|as requested|i've|i have|hier (?:ist|sind))\b"
    r"|^(?:natürlich|gerne?|selbstverständlich)(?:[!,.]|$)|^(?:好的|当然|没问题)[！。]?$",
    re.IGNORECASE,
)
_ABOUT = linear_pattern(
    r"\b(?:(?:sentences?|captions?|paraphrased?|rewording|version|another way|examples?|answer|list|"
    r"satz|sätze|umformulierung|variante)\b|contradict|rephras)",
    re.IGNORECASE,
)
_CLOSING = linear_pattern(
    r"^[(\[*_]*(?:let me know if|(?:i )?hope (?:this|these|that|it) (?:\w+ )?(?:help|work|meet|fit|is what)|"
    r"feel free|please let me know|please note|note:|note that|note —|explanation:|"
    r"if you (?:need|want|would like|'d like)|would you like|is there anything|(?:i )?(?:changed|replaced) |"
    r"th(?:is|ese) sentences? (?:keep|have|has|mean|convey|contradict|cover|are|is))",
    re.IGNORECASE,
)
_MADE = (
    "(?:new|possible|rewritten|modified|revised|paraphrased|rephrased|generated|completed?|filled(?:[ -]in)?)"
)
_ANSWER_LABEL = linear_pattern(
    r"^(?:\*\*|__)?"
    rf"(?:assistant|(?:(?:the|a|my) )?{_MADE} (?:paraphrase|contradiction|version|sentence|phrase) is|"
    rf"(?>(?:(?:the|my|a|short|shorter|{_MADE})\s++)*)"
    r"(?:output|answer|response|result|paraphrase|contradiction|rewording|rephrasing|version|positive|"
    r"(?:hard )?negative|sentence|phrase|text|entailment|rephrased)(?:\s+(?:sentence|phrase|example|\d))?)"
    r"\s*+(?:\*\*|__)?\s*+:\s*+(?>(?:\*\*|__)?)\s*",
    re.IGNORECASE,
)
_OTHER_LABEL = linear_pattern(
    r"^(?:\*\*|__)?"
    r"(?:(?:(?:der|ein|mein) )?(?:neuer?|umformulierter?|umgeschriebener?) (?:satz|ausdruck)(?: lautet)?|"
    r"ausgabe|antwort|umformulierung|umschreibung|widerspruch|"
    r"(?:(?:好的|当然|没问题)[！，。])?(?:(?:以下|下面)是[^:：。！？]{0,20})?(?:新的?|改写后?的?|相反的?)?"
    r"(?:句子|短语|输出|回答|答案|改写后?)|(?:新|改写后)的句子是)"
    r"\s*+(?:\*\*|__)?\s*+[:：]\s*+(?>(?:\*\*|__)?)\s*",
    re.IGNORECASE,
)
"""Labels in German and Chinese."""
_PASSAGE_LABEL = linear_pattern(
    r"^(?:\*\*|__)?(?>(?:(?:the|a|new|other|hard|negative)\s++)*)(?:passage|document)(?:\*\*|__)?\s*+:(?:\*\*|__)?\s*",
    re.IGNORECASE,
)
_QUERY_LABEL = linear_pattern(r"^(?:\*\*|__)?query(?:\*\*|__)?\s*+:", re.IGNORECASE)
_ABOUT_PASSAGE = linear_pattern(r"\b(?:passage|document|paragraph)\b|^here (?:you go|it is)\b", re.IGNORECASE)
_INPUT_LABEL = linear_pattern(
    r"^(?:\*\*|__)?(?:(?:input|original|given|premise)(?:\s+(?:sentence|phrase|text))?|eingabe|originalsatz|"
    r"输入|原句)\s*[:：]",
    re.IGNORECASE,
)
_ANNOUNCED = linear_pattern(r"^(?P<opening>[^:\"“]{2,80}?):\s+(?=\S)")
_LARGEST_GAP = 10
_MOST_LAYERS = 20
"""Maximum number of layers of quotation marks and emphasis that are removed from a sentence."""
_LEAST_INLINE = 2
_LEAST_SAID = 3
_ENDS = " .!?\"'“”"


def sentences_in(answer: str) -> list[str]:
    """Return the sentences of an LLM's answer that is a list, in order; each is one line and not empty.

    Reads numbered lists of any style, bulleted lists, lists on one line, and answers that are only JSON. An
    answer without a list gives its lines. Leaves out preambles, closing remarks, repetitions of the input,
    and quotation marks around sentences.
    """
    found = _from_json(answer)
    if found is None:
        lines = [_without_input(line) for line in answer.splitlines() if not _FENCE.match(line)]
        found = _numbered(lines) or _inline(lines) or _bulleted(lines) or _plain(lines)
    return [sentence for sentence in (_bare(_ITEM_LABEL.sub("", item)) for item in found) if sentence]


def sentence_in(answer: str) -> str:
    """Return the first line of an answer's content; "" if it has none.

    Skips preambles, closing remarks and repeated input, unless there is nothing else. Leaves out a label, a
    bullet or the number 1 before the sentence, and quotation marks around it.
    """
    lines = [line.strip() for line in answer.splitlines() if line.strip() and not _FENCE.match(line)]
    lines = [line for line in lines if not _INPUT_LABEL.match(line)] or lines
    said = [line for line in lines if not (_CLOSING.match(line) or _is_announcement(line))] or lines
    for line in said:
        sentence = _bare(_ITEM_LABEL.sub("", _without_preamble(_without_mark(line))))
        if sentence:
            return sentence
    return ""


def passage_in(answer: str) -> str:
    """Return an answer's paragraphs on one line; "" if it has none.

    Leaves out preambles, closing remarks, a repeated query and passage, a label such as "Passage:", and
    quotation marks around the whole.
    """
    lines = [line.strip() for line in answer.splitlines() if line.strip() and not _FENCE.match(line)]
    lines = [line for line in lines if not _CLOSING.match(line)] or lines or [""]
    start = next((n for n, line in enumerate(lines) if not _announces_passage(line)), 0)
    labelled = [n for n, line in enumerate(lines) if _PASSAGE_LABEL.match(line)]
    if labelled and (_QUERY_LABEL.match(lines[start]) or _PASSAGE_LABEL.match(lines[start])):
        start = labelled[-1]
    first, *others = lines[start:]
    return _bare(" ".join((_without_preamble(_PASSAGE_LABEL.sub("", first)), *others)))


def why_unusable(written: str, known: Iterable[str]) -> str:
    """Return why an LLM's sentence is dropped (empty, refusal, identical to a known one), "" to keep it.

    Comparison ignores case, and at both ends spaces, quotation marks and . ! ?
    """
    if is_invisible(written) or not has_content(written):
        return "empty"
    if looks_like_a_refusal(written):
        return REFUSAL
    return "identical" if _bare_words(written) in map(_bare_words, known) else ""


def _bare_words(sentence: str) -> str:
    return sentence.casefold().strip(_ENDS)


def _without_input(line: str) -> str:
    """Return a line of a list; if it repeats the input ("1. Premise: ..."), only its number, "" without."""
    number = _NUMBER.match(line)
    start = number.end() if number else 0
    return line[:start] if _INPUT_LABEL.match(line[start:].strip()) else line


def _from_json(answer: str) -> list[str] | None:
    lines = [line for line in answer.strip().splitlines() if not _FENCE.match(line)]
    text = "\n".join(lines)
    if not text.startswith(("[", "{")):
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if isinstance(value, dict):
        value = next((part for part in value.values() if isinstance(part, list)), list(value.values()))
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        return None
    return value


def _numbered(lines: list[str]) -> list[str]:
    """Return the items of a numbered list, [] if there is none.

    A line without a number continues the item above it, up to a blank line. A bullet below an item is an item
    of its own. A number alone on its line needs no full stop or bracket if it is the next number.
    """
    items: list[list[str]] = []
    last, is_open = 0, False
    for line in lines:
        match = _NUMBER.match(line)
        alone = _BARE_NUMBER.match(line)
        if alone and int(alone["number"]) == last + 1:
            items.append([])
            last, is_open = last + 1, True
            continue
        number = int(match["number"] or match["enclosed"]) if match else -1
        if match and (number in (1, last) or last < number <= last + _LARGEST_GAP or not items):
            items.append(_parts(line[match.end() :]))
            last, is_open = number, True
        elif not line.strip():
            is_open = bool(items) and not items[-1]
        elif items and is_open and not _CLOSING.match(line.strip()):
            if items[-1] and _BULLET.match(line):
                items.append([])
            items[-1] += _parts(_BULLET.sub("", line))
        else:
            is_open = False
    is_list = len(items) > 1 or (len(items) == 1 and last == 1)
    found = [" ".join(parts) for parts in items]
    return found if is_list and not (len(found) == 1 and _counts_on(found[0])) else []


def _parts(text: str) -> list[str]:
    """Return the stripped text as the only item, [] if it is blank."""
    return [text.strip()] if text.strip() else []


def _counts_on(text: str) -> bool:
    return any(int(match["number"]) == _LEAST_INLINE for match in _INLINE_NUMBER.finditer(text))


def _inline(lines: list[str]) -> list[str]:
    """Return the items of a numbered list on one line ("1. ... 2. ..."), [] if there is none."""
    text = " ".join(lines)
    starts: list[re.Match[str]] = []
    for match in _INLINE_NUMBER.finditer(text):
        if int(match["number"]) == len(starts) + 1:
            starts.append(match)
    if len(starts) < _LEAST_INLINE:
        return []
    ends = [*(match.start() for match in starts[1:]), len(text)]
    return [text[match.end() : end].strip() for match, end in zip(starts, ends, strict=True)]


def _bulleted(lines: list[str]) -> list[str]:
    items = [_BULLET.sub("", line) for line in lines if _BULLET.match(line)]
    return items if len(items) > 1 else []


def _plain(lines: list[str]) -> list[str]:
    said = [line.strip() for line in lines if line.strip()]
    first = next(
        (number for number, line in enumerate(said[:-1]) if not _is_announcement(line)), len(said) - 1
    )
    del said[: max(first, 0)]
    while len(said) > 1 and _CLOSING.match(said[-1]):
        del said[-1]
    return said


def _is_announcement(line: str) -> bool:
    is_single = len(line.split()) == 1
    return line.rstrip("*").endswith((":", "：")) or bool(
        _OPENING.match(line) and (is_single or _ABOUT.search(line))
    )


def _announces_passage(line: str) -> bool:
    is_about = _ABOUT_PASSAGE.search(line) and not _PASSAGE_LABEL.match(line)
    return _is_announcement(line) and bool(_OPENING.match(line) or is_about)


def _without_mark(line: str) -> str:
    """Return a line without a leading number 1 or bullet; other numbers may belong to the sentence."""
    match = _NUMBER.match(line)
    if match and int(match["number"] or match["enclosed"]) == 1:
        return line[match.end() :].strip()
    return _BULLET.sub("", line)


def _without_preamble(line: str) -> str:
    """Return a line without a label or announcement at its beginning ("Answer: ...")."""
    labelled = _ANSWER_LABEL.match(line) or _OTHER_LABEL.match(line)
    if labelled and line[labelled.end() :].strip():
        return line[labelled.end() :]
    announced = _ANNOUNCED.match(line)
    if announced and _OPENING.match(announced["opening"]) and _ABOUT.search(announced["opening"]):
        return line[announced.end() :]
    return line


def _bare(text: str) -> str:
    """Return a text on one line, without emphasis, quotation marks around it, or a remark after it.

    "" if nothing visible is left.
    """
    text = _EMPHASIS.sub(r"\g<words>", _without_remark(" ".join(text.split())))
    for _ in range(_MOST_LAYERS):
        inner = _enclosed(text) if len(text) > 1 else None
        if inner is None:
            break
        text = inner.strip()
    return "" if is_invisible(text.strip("\"“”„«»‘’'`*_ ")) else text


def _without_remark(text: str) -> str:
    """Return a sentence without an unpaired quotation mark at an end, and without a remark after it.

    A remark is a number, or three words and more, in brackets.
    """
    remark = _REMARK.fullmatch(text)
    if remark and (remark["remark"].isdigit() or len(remark["remark"].split()) >= _LEAST_SAID):
        text = remark["sentence"]
    for mark in ('"', "“", "”"):
        if text.count(mark) == 1 and not ({"“", "”"} <= {*text} or "„" in text):
            text = text.removeprefix(mark).removesuffix(mark).strip()
    return text


def _enclosed(text: str) -> str | None:
    for mark in ("**", "__", "*"):
        if len(text) > 2 * len(mark) and text.startswith(mark) and text.endswith(mark):
            inner = text[len(mark) : -len(mark)]
            if mark not in inner:
                return inner
    opening = text[0]
    for closing in _QUOTES.get(opening, ""):
        if text.endswith((closing, closing + ".", closing + ",")):
            cut = text[1:].rstrip(".,") if not text.endswith(closing) else text[1:]
            inner = cut[: -len(closing)]
            return None if closing != "'" and (closing in inner or opening in inner) else inner
    return None
