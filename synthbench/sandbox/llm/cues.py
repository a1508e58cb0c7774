"""What an instruction asks for: the same meaning, or another one."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

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

# Statements about the meaning weigh more than verbs: "paraphrase it so that the meaning is reversed".
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
    """Return what an instruction asks for: above 0 the same meaning, below 0 another one, 0 not clear.

    Words that point one way count for the other where they are negated ("does not mean the same").
    """
    text = _CONDITION.sub(" ", _plain(instruction))
    return sum(_weight(cue, text) for cue in _cues(text))


def _plain(text: str) -> str:
    return re.sub(r"[ \t]+", " ", text.lower().replace("’", "'").replace("*", " ").replace("_", " "))


def _cues(text: str) -> Iterator[_Cue]:
    """Yield the cues that no heavier one covers, so that nothing is counted twice."""
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
    """Return the words before a cue that a negation may stand in: of its clause, the nearest few.

    A comma ends the clause, unless it separates the members of a list ("without adding, dropping or ...").
    """
    ends = [0, *(match.end() for match in _CLAUSE_END.finditer(before))]
    clause = before[ends[-1] :]
    if "," in clause and not re.search(r"\b(?:or|nor)\b", clause.rpartition(",")[2]):
        clause = clause.rpartition(",")[2]
    words = clause.split()
    return " ".join(words[-_SCOPE_WORDS:])
