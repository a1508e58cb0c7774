"""A message taken apart: what is asked, and the sentence that it is asked of."""

import re
from dataclasses import dataclass
from itertools import pairwise

from synthbench.sandbox.llm.cues import leaning
from synthbench.sandbox.llm.wording import heard

_INPUT_LABEL = re.compile(
    r"(?:^|(?<=[\s(\"*>-]))"
    r"(?:(?:the|this|your|following|given|provided|source|original|input|next|new)\s+)*"
    r"(?:input|sentence|text|phrase|premise|statement|original|headline|caption|anchor|source|query|x|s)"
    r"(?:\s*#?1|\s+(?:or|and)\s+\w+|\s*\([^()\n]*\)|\s+\w+)?\s*\**:\**(?!//)",
    re.IGNORECASE,
)
_OUTPUT_LABEL = re.compile(
    r"(?:\s|^)\**(?:[\w-]+ )?(?:output|answer|paraphrase|contradiction|response|result|rewrite|rewriting|"
    r"rewording|positive|negative|hypothesis|restatement|version|sentence ?2|y)(?: \w+)?\s*\**:\**\s*$",
    re.IGNORECASE,
)
_QUOTES = {'"': '"', "“": "”", "'": "'", "‘": "’", "«": "»", "„": "“", "`": "`"}
_QUOTED = re.compile(r'"([^"\n]+)"|“([^”\n]+)”|«([^»\n]+)»|„([^“\n]+)“|(?<!\w)[\'‘]([^\n]+?)[\'’](?!\w)')
_LABELLED_LINE = re.compile(r"^\W*([\w #]{1,30}?)\**:\**[ \t]+(\S.*)$", re.MULTILINE)
_SEGMENT_END = re.compile(r"(?<=[.!?])\s+(?=[\"“A-Z0-9])")
_TEXT = r"(?:\s+\w+)?\s+(?:sentence|text|phrase|statement|headline|caption|premise|paraphrase|line|input)s?\b"
_THIS_TEXT = re.compile(
    rf"\b(?:this|that|following|input|given|provided|above|below|original|each){_TEXT}|"
    r"\b(?:sentences|meaning|wording|paraphrases?|contradictions?)\b",
    re.IGNORECASE,
)
_SOME_TEXT = re.compile(
    rf"\b(?:the|a|every|one|my|its){_TEXT}|\b(?:caption|headline|description|statement|phrase|line|example)s\b",
    re.IGNORECASE,
)
_OPENING = re.compile(
    r"^(?:\W*(?:please|kindly|now|then|again|next|ok|okay|and|can you|could you|would you|will you|"
    r"i want you to|i need you to|i'd like you to|your task is to|task|instructions?|"
    r"do not|don't|never|always|just|only|simply|merely)\b[\s:,]*)*"
    r"(?:write|generate|give|make|create|change|transform|revise|produce|provide|compose|say|tell|express|"
    r"convey|put|turn|find|suggest|craft|formulate|come up|paraphrase|rephrase|reword|restate|rewrite|"
    r"reformulate|invent|devise|draft|construct|prepare|propose|supply|contradict|negate|deny|keep|avoid|use|return|answer|reply|respond|output|state|alter|modify|swap|offer|"
    r"replace|think|imagine|read|take|look|show|preserve|retain|describe|list|reverse|invert|what|how|which|"
    r"you|your|i|we|given|for|here|only|be|let)\b",
    re.IGNORECASE,
)
_MIN_QUOTED_WORDS = 2


@dataclass(frozen=True, slots=True)
class Parts:
    """A message's text, and in it an instruction and a sentence; "" for what it lacks."""

    text: str
    instruction: str
    sentence: str


def parts(message: str) -> Parts:
    """Take a message apart.

    The sentence stands after a label ("Sentence:"), in quotation marks before everything else, after an
    instruction with a colon, in quotation marks, on a line of its own, beside an instruction, or alone.
    """
    text = message.strip()
    sentence = (
        _after_label(text) or _quoted_first(text) or _after_colon(text) or _in_quotes(text) or _beside(text)
    )
    sentence = _bare(sentence)
    instruction = text.replace(sentence, " ") if sentence else text
    return Parts(text, instruction.strip(), sentence)


def pairs_inside(text: str) -> list[tuple[str, str]]:
    """Return the sentences with answers that one message shows, each on a labelled line of its own."""
    lines = _LABELLED_LINE.findall(text)
    return [
        (given, answer)
        for (label, given), (next_label, answer) in pairwise(lines)
        if _INPUT_LABEL.fullmatch(f"{label}:") and label != next_label
    ]


def without_answer_label(instruction: str) -> str:
    """Return an instruction without the label at its end that the answer is to follow ("Paraphrase:")."""
    return _OUTPUT_LABEL.sub("", instruction)


def refers_to_a_sentence(instruction: str) -> bool:
    """Say whether an instruction speaks of one sentence that is given."""
    strong = r"\b(?:following|given|provided|input|this|below|above|original|that)\s+(?:\w+\s+)?"
    found = re.search(strong + r"(?:sentence|text|phrase|statement|headline|caption)\b", instruction.lower())
    return bool(found or _INPUT_LABEL.search(instruction))


def _after_label(text: str) -> str:
    """Return what follows the last label of an input that anything follows."""
    for match in reversed(list(_INPUT_LABEL.finditer(text))):
        content = _first_line(text[match.end() :])
        if content and not _is_label(content):
            return content
    return ""


def _after_colon(text: str) -> str:
    """Return what stands behind an instruction's colon, on its line or the next."""
    quoted = [match.span() for match in _QUOTED.finditer(text)]
    for match in reversed(list(re.finditer(r":\s+", text))):
        if any(start < match.start() < end for start, end in quoted):
            continue
        content = _first_line(text[match.end() :])
        before = re.split(r"\n|:\s", text[: match.start()])[-1]
        before = _SEGMENT_END.split(before)[-1]
        if content and not _is_label(content) and not _is_command(content) and _speaks_of_text(before):
            return content
    return ""


def _quoted_first(text: str) -> str:
    """Return the quoted beginning of a text that goes on with an instruction, which may have a colon too."""
    return _in_quotes(text) if _QUOTED.match(text) and len(_QUOTED.findall(text)) == 1 else ""


def _in_quotes(text: str) -> str:
    found = ["".join(groups) for groups in _QUOTED.findall(text)]
    sentences = [quoted for quoted in found if len(quoted.split()) >= _MIN_QUOTED_WORDS]
    return sentences[-1] if sentences and _is_instruction(_QUOTED.sub(" ", text)) else ""


def _beside(text: str) -> str:
    """Return the line, or part of one, that is no instruction; a sentence of the grammar before others."""
    lines = [line.strip() for line in text.splitlines() if line.strip() and not _is_label(line)]
    for pieces in (lines, [piece for line in lines for piece in _SEGMENT_END.split(line)]):
        others = [piece for piece in pieces if not _has_instruction(piece)]
        known = [piece for piece in others if heard(_bare(piece))]
        if known or others:
            return (known or _not_commands(others) or others)[-1]
    starts = (match.start() for match in re.finditer(r"(?<=\s)[A-Z0-9]", text))
    return next((text[start:] for start in starts if heard(text[start:])), "")


def _not_commands(pieces: list[str]) -> list[str]:
    return [piece for piece in pieces if not _OPENING.match(piece)]


def _first_line(text: str) -> str:
    line = next((line for line in text.splitlines() if line.strip()), "")
    without = _OUTPUT_LABEL.sub("", line).strip()
    return "" if without in _QUOTES else without


def _is_label(line: str) -> bool:
    return line.rstrip("*_ \"'“").endswith(":")


def _has_instruction(line: str) -> bool:
    return any(_is_instruction(piece) for piece in _SEGMENT_END.split(line))


def _is_instruction(words: str) -> bool:
    """Say whether words are spoken to the model, and are not what it shall work on.

    They speak of a given text; or of some text or of meaning, and begin as requests do or lean to one side.
    """
    if _THIS_TEXT.search(words):
        return True
    speaks_of_text, leans = bool(_SOME_TEXT.search(words)), leaning(words) != 0
    begins = bool(_OPENING.match(words.strip()))
    return begins + speaks_of_text + leans > 1


def _is_command(words: str) -> bool:
    return bool(_OPENING.match(words.strip())) and _speaks_of_text(words)


def _speaks_of_text(words: str) -> bool:
    return bool(_THIS_TEXT.search(words) or _SOME_TEXT.search(words)) or leaning(words) != 0


def _bare(sentence: str) -> str:
    """Return a sentence without the quotation marks around it."""
    sentence = sentence.strip().strip("*_").strip()
    while len(sentence) > 1 and _QUOTES.get(sentence[0]) == sentence[-1]:
        sentence = sentence[1:-1].strip()
    return sentence
