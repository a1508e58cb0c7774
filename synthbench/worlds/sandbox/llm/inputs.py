"""Split a message into instruction and sentence, and tell whether it asks for the same meaning."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from synthbench.worlds.sandbox.parsing import read_sentence

_MEANING = r"(?:meaning|sense|idea|message|content|gist|information|fact|thought|proposition|claim)s?\b"
_FREE = r"(?:(?!but\b|not\b|with\b|while\b|whose\b|same\b)[\w'-]+,?\s+)"
_VERBS = r"(?:[\w']+\s+){0,3}"
_KEPT = r"(?:preserv|kept|retain|remain|surviv|maintain)\w*"
_ALTERED = (
    r"(?:different|differing|another|other|alter(?:ed|ing|nate|native)|alternat\w+|changed|new|modified|"
    r"divergent|distinct|reversed?|inverted|unlike)"
)
_ALTERING = (
    r"(?:chang|alter|modif|adjust|revers|invert|flip|distort|shift|falsif|twist|turn|affect|los|drop)\w*"
)

# Cues on meaning weigh more than verbs: "paraphrase it so that the meaning is reversed".
_CUES: tuple[tuple[float, str], ...] = (
    (
        2,
        rf"\b(?:same|identical|equal)\s+(?:\w+\s+){{0,2}}(?:{_MEANING}|thing|statement|event|news|story|point)",
    ),
    (2, r"\b(?:mean|say|express|convey|tell|state|report|describe)(?:s|ing)?\s+(?:\w+ly )?the same\b"),
    (2, r"\b(?:same|alike|identical|equivalent) in meaning\b"),
    (2, rf"\b{_MEANING}\s+{_VERBS}(?:unchanged|intact|untouched|unaltered|the same|as it|alone|{_KEPT})"),
    (2, rf"\b(?:preserv|keep|kept|retain|maintain|conserv|leav)\w*\s+{_FREE}{{0,4}}{_MEANING}"),
    (2, r"\b(?:synonym|entail|equivalen|implied|implies|imply|implication)\w*"),
    (2, r"\bfollow(?:s|ing)?\s+(?:\w+ )?from\b|\b(?:infer|inferred|deduced?|concluded?)\b"),
    (2, r"\b(?:also|still|both|necessarily|must|be|is|remains?|hold|holds|stays?)\s+(?:\w+ )?true\b"),
    (2, r"\b(?:agree|agrees|consistent|compatible)\s+with\b"),
    (2, r"\bpositive(?:s\b|\s+(?:\w+ )?(?:example|pair|sample|sentence|match|counterpart|instance))"),
    (1, r"\b(?:paraphras|rephras|reword|restat|reformulat)\w*"),
    (
        1,
        r"\b(?:in|with|using|use|by)\s+(?:\w+ )?(?:other|different|new|your own)\s+word(?:s|ing)?\b",
    ),
    (1, r"\b(?:differently|another wording|other words|another way)\b"),
    (0.5, r"\b(?:rewrit\w*|rewrote|simplif\w*)"),
    (-2, r"\bcontra(?:dict\w*|ry)\b|\b(?:opposite|opposing|opposed|oppose)s?\b|\bcontrast(?:s|ing|ed)?\b"),
    (-2, rf"\b{_ALTERED}\s+(?:(?:or|and)\s+\w+\s+)?(?:(?!same\b)\w+\s+)?{_MEANING}"),
    (-2, rf"\b{_ALTERING}\s+{_FREE}{{0,4}}(?:{_MEANING}|truth)"),
    (-2, rf"\b{_MEANING}\s+{_VERBS}(?:differ|chang|revers|alter|shift|turn|los|another|opposite)\w*"),
    (-2, rf"\bnot (?:of |in )?(?:the |its |their )?{_MEANING}"),
    (-2, r"\bdiffer\w*\s+(?:\w+ )?in\s+(?:\w+ )?(?:meaning|content)\b|\bsomething\s+(?:else|different)\b"),
    (
        -2,
        r"\bnegat(?:e|es|ed|ing|ion)\b|\bhard negatives?\b|"
        r"\bnegative(?:s\b|\s+(?:\w+ )?(?:example|pair|sample|sentence))",
    ),
    (-2, r"\b(?:refut|disprov|disagree|conflict|clash|den(?:y|ies|ied|ying)\b|rul(?:e|es|ed|ing) out)\w*"),
    (-2, r"\b(?:incompatible|inconsistent|irreconcilable|untrue|false|wrong|impossible)\b"),
    (-1, r"\b(?:chang|swap|alter|replac|exchang)\w*\s+(?:\w+\s+){0,4}(?:details?|elements?|facts?|parts?)\b"),
)
_PATTERNS = tuple((weight, re.compile(pattern)) for weight, pattern in _CUES)
_CONDITION = re.compile(
    r"\b(?:if|when|whenever|assuming|provided|given|suppose|supposing|while)\b(?: that)?\s+"
    r"(?:[\w']+\s+){1,7}?(?:is|are|was|were|be|holds?)\s+(?:\w+ )?(?:true|correct|right)\b"
)
_CLAUSE_END = re.compile(r"[.;:!?\n]|,?\s+\b(?:but|yet|however|while|whilst|although|though)\b")
_NEGATOR = re.compile(
    r"\b(?:not|never|no|no longer|without|avoid|avoids|avoiding|cannot|neither|nor|nothing|rather than|"
    r"instead of|far from|fails? to|failing to|refrain from|nobody|hardly)\b|n't\b"
)
_MERELY = re.compile(r"(?:\bnot|n't)\s+(?:only|just|merely|simply)\b|\bmore than (?:just |merely )?")
_SCOPE_WORDS = 7


@dataclass(frozen=True, slots=True)
class _Cue:
    start: int
    end: int
    weight: float


def leaning(instruction: str) -> float:
    """Return a number above 0 if an instruction asks for the same meaning, below 0 for another; 0: unclear.

    A negated cue counts for the other side ("does not mean the same").
    """
    text = _CONDITION.sub(" ", _plain(instruction))
    return sum(_weight(cue, text) for cue in _cues(text))


def _plain(text: str) -> str:
    return re.sub(r"[ \t]+", " ", text.lower().replace("’", "'").replace("*", " ").replace("_", " "))


def _cues(text: str) -> Iterator[_Cue]:
    """Yield all cues except those within a longer or heavier cue, so that none counts twice."""
    found = [
        _Cue(match.start(), match.end(), weight)
        for weight, pattern in _PATTERNS
        for match in pattern.finditer(text)
    ]
    for cue in found:
        if not any(
            other is not cue
            and other.start <= cue.start
            and cue.end <= other.end
            and (other.end - other.start, abs(other.weight)) > (cue.end - cue.start, abs(cue.weight))
            for other in found
        ):
            yield cue


def _weight(cue: _Cue, text: str) -> float:
    before = _scope(text[: cue.start])
    if _MERELY.search(before):
        return 0
    num_negations = len(_NEGATOR.findall(before)) + len(_NEGATOR.findall(text[cue.start : cue.end]))
    return -cue.weight if num_negations % 2 else cue.weight


def _scope(before: str) -> str:
    """Return the words before a cue that may negate it: the nearest few of its clause.

    A comma ends the clause, unless it separates members of a list ("without adding, dropping or ...").
    """
    ends = [0, *(match.end() for match in _CLAUSE_END.finditer(before))]
    clause = before[ends[-1] :]
    if "," in clause and not re.search(r"\b(?:or|nor)\b", clause.rpartition(",")[2]):
        clause = clause.rpartition(",")[2]
    words = clause.split()
    return " ".join(words[-_SCOPE_WORDS:])


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
PASSAGE = re.compile(r"^(?:passage|document)\s*:\s*(?P<text>.+?)(?=\n\s*\n|\Z)", re.I | re.M | re.S)
"""A passage after its label, up to an empty line."""


@dataclass(frozen=True, slots=True)
class MessageParts:
    """A message's text, its instruction and its sentence; "" for a missing part."""

    text: str
    instruction: str
    sentence: str


def parts(message: str) -> MessageParts:
    """Split a message.

    The sentence is found, in this order: after a label ("Sentence:"), quoted at the beginning, after an
    instruction with a colon, quoted anywhere, on a line of its own, beside an instruction, alone.
    """
    text = message.strip()
    sentence = (
        _after_label(text) or _quoted_first(text) or _after_colon(text) or _in_quotes(text) or _beside(text)
    )
    sentence = _bare(sentence)
    instruction = text.replace(sentence, " ") if sentence else text
    return MessageParts(text, instruction.strip(), sentence)


def pairs_inside(text: str) -> list[tuple[str, str]]:
    """Return the exemplars in a message: sentences with answers, each on a labelled line."""
    lines = _LABELLED_LINE.findall(text)
    return [
        (given, answer)
        for (label, given), (next_label, answer) in pairwise(lines)
        if _INPUT_LABEL.fullmatch(f"{label}:") and label != next_label
    ]


def without_answer_label(instruction: str) -> str:
    """Return an instruction without a final label for the answer ("Paraphrase:")."""
    return _OUTPUT_LABEL.sub("", instruction)


def refers_to_a_sentence(instruction: str) -> bool:
    """Return whether an instruction refers to one given sentence."""
    strong = r"\b(?:following|given|provided|input|this|below|above|original|that)\s+(?:\w+\s+)?"
    found = re.search(strong + r"(?:sentence|text|phrase|statement|headline|caption)\b", instruction.lower())
    return bool(found or _INPUT_LABEL.search(instruction))


def _after_label(text: str) -> str:
    """Return the first line after the last input label that has text after it; "" without one."""
    for match in reversed(list(_INPUT_LABEL.finditer(text))):
        content = _first_line(text[match.end() :])
        if content and not _is_label(content):
            return content
    return ""


def _after_colon(text: str) -> str:
    """Return the text after an instruction's colon, on the same line or the next."""
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
    """Return the quoted sentence at the beginning of a text, if an instruction follows it."""
    return _in_quotes(text) if _QUOTED.match(text) and len(_QUOTED.findall(text)) == 1 else ""


def _in_quotes(text: str) -> str:
    found = ["".join(groups) for groups in _QUOTED.findall(text)]
    sentences = [quoted for quoted in found if len(quoted.split()) >= _MIN_QUOTED_WORDS]
    return sentences[-1] if sentences and _is_instruction(_QUOTED.sub(" ", text)) else ""


def _beside(text: str) -> str:
    """Return the text beside the instruction: the last line or part of a line that is no instruction."""
    lines = [line.strip() for line in text.splitlines() if line.strip() and not _is_label(line)]
    for pieces in (lines, [piece for line in lines for piece in _SEGMENT_END.split(line)]):
        others = [piece for piece in pieces if not _has_instruction(piece)]
        known = [piece for piece in others if read_sentence(_bare(piece))]
        if known or others:
            return (known or [piece for piece in others if not _OPENING.match(piece)] or others)[-1]
    starts = (match.start() for match in re.finditer(r"(?<=\s)[A-Z0-9]", text))
    return next((text[start:] for start in starts if read_sentence(text[start:])), "")


def _first_line(text: str) -> str:
    line = next((line for line in text.splitlines() if line.strip()), "")
    without = _OUTPUT_LABEL.sub("", line).strip()
    return "" if without in _QUOTES else without


def _is_label(line: str) -> bool:
    return line.rstrip("*_ \"'“").endswith(":")


def _has_instruction(line: str) -> bool:
    return any(_is_instruction(piece) for piece in _SEGMENT_END.split(line))


def _is_instruction(words: str) -> bool:
    """Return whether words address the model, rather than being a text to work on.

    True if the words refer to a given text, or meet two of three conditions: they begin like a request,
    mention a text, hold a cue.
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
    """Return a sentence without surrounding quotation marks."""
    sentence = sentence.strip().strip("*_").strip()
    while len(sentence) > 1 and _QUOTES.get(sentence[0]) == sentence[-1]:
        sentence = sentence[1:-1].strip()
    return sentence
