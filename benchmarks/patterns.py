"""Search for texts on which a pattern that reads text from outside takes more than linear time.

For each listed pattern the texts are made from its own parts: each repetition many times after what precedes
it, the whole pattern many times, each of its characters many times; with endings that match and that do not.
The readers of answers and the masks of secrets get such texts, too. Twice the text may take twice the time. A
factor above 2.8 twice in a row counts as more than linear, and gives exit code 1.

    .venv/bin/python benchmarks/patterns.py
"""

import importlib
import re
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from itertools import pairwise
from pathlib import Path
from re import _constants as c  # type: ignore[attr-defined]
from re import _parser  # type: ignore[attr-defined]
from typing import Any

from synthbench.base.patterns import LINEAR

ROOT = Path(__file__).parents[1]
SIZES = tuple(2**power for power in range(11, 17))
MOST_GROWTH = 2.8
NOTHING = 0.002
"""Seconds that are too short to measure."""
MANY = ("", "\0", "!", "\n", " x", "1")
REPEATS = (c.MAX_REPEAT, c.MIN_REPEAT, c.POSSESSIVE_REPEAT)
ANSWERS = (
    "score ",
    "score of a ",
    "answer: ",
    "1. ",
    "1.\n",
    "2)\n",
    "a:\n",
    "'",
    '"',
    "`",
    "**",
    "*a ",
    "sentence: ",
    "[",
    "{",
    '["[", ',
    '{"a": ',
    '["',
    "i cannot write ",
    "i cannot provide information ",
    "I'm unable to ",
    "<think>",
    "</think>",
    "\n<think>\n",
    "yes or ",
    "- a\n",
    "(a. ",
    "a. (b) ",
    " ",
    "\n",
    "a",
    "9",
    "1,",
    "note: ",
)
LEAKS = (
    *("://", "a://", "http://a:", "http://a@", "?key", "?a=", "&key=a", "--a ", "--api-key ", "--a '", "a="),
    *(
        'a="',
        "'a': '",
        "'--a', ",
        "authorization: ",
        "bearer ",
        "cookie: a",
        "sk-",
        "a.",
        "a_",
        "A",
        "=",
        ": ",
    ),
    *("@", "'"),
)


def main() -> None:
    """Test every pattern and reader; exit with code 1 if one is more than linear."""
    named = _named()
    slow, num_texts = [], 0
    for name, pattern in named.items():
        texts = list(dict.fromkeys(_adverse(pattern)))
        num_texts += len(texts)
        slow += _tried(name, partial(_exhaust, pattern), texts)
    readers = _readers()
    for name, (reader, units) in readers.items():
        texts = [(before, unit, end) for unit in units for before in ("", "1. ") for end in ("", "\0")]
        num_texts += len(texts)
        slow += _tried(name, reader, texts)
    print(f"{len(named)} patterns, {len(readers)} readers, {num_texts:,} texts of {SIZES[-1]:,} characters")
    for each in slow:
        print(f"MORE THAN LINEAR {each}")
    print("goal: none is more than linear", "MISSED" if slow else "reached")
    sys.exit(bool(slow))


def _named() -> dict[str, re.Pattern[str]]:
    """Return every listed pattern by module and line."""
    found: dict[str, re.Pattern[str]] = {}
    for file in sorted(
        file for folder in ("synthbench", "methods", "evaluators") for file in (ROOT / folder).rglob("*.py")
    ):
        source = file.read_text(encoding="utf-8")
        if "linear_pattern(" in source and file.name != "patterns.py":
            parts = file.relative_to(ROOT).with_suffix("").parts
            module = ".".join(parts if parts[0] == "synthbench" else parts[1:]).removesuffix(".__init__")
            before = len(LINEAR)
            importlib.import_module(module)
            held = [(key, value) for key, value in vars(sys.modules[module]).items() if value in LINEAR]
            found |= {f"{module}.{key}": value for key, value in held}
            found |= {f"{module}[{i}]": one for i, one in enumerate(LINEAR[before:])}
    rest = {f"#{number}": pattern for number, pattern in enumerate(LINEAR)}
    return {name: one for one, name in {one: name for name, one in (rest | found).items()}.items()}


def _exhaust(pattern: re.Pattern[str], text: str) -> None:
    for _ in pattern.finditer(text):
        pass
    pattern.match(text)
    pattern.fullmatch(text)


def _tried(name: str, call: Callable[[str], object], texts: Sequence[tuple[str, str, str]]) -> list[str]:
    """Print a call's largest growth factor; return the texts on which it is more than linear."""
    worst, worst_text = 0.0, ""
    found = []
    for before, unit, end in texts:
        growth = _growth(call, partial(_text, before, unit, end))
        if growth > worst:
            worst, worst_text = growth, f"{before!r} + {unit!r} many times + {end!r}"
    if worst > MOST_GROWTH:
        found.append(f"{name}: x{worst:.1f} for twice the text: {worst_text}"[:300])
    print(f"{name}: at most x{worst:.1f} for twice the text")
    return found


def _text(before: str, unit: str, end: str, size: int) -> str:
    return before + unit * (size // max(len(unit), 1)) + end


def _growth(call: Callable[[str], object], make: Callable[[int], str]) -> float:
    """Return the smaller of the last two growth factors, each for doubled text; 0 if too fast to measure."""
    seconds: list[float] = []
    for size in SIZES:
        text = make(size)
        seconds.append(min(_seconds(call, text) for _ in range(2 if size < SIZES[-1] else 3)))
        if len(seconds) > 2 and seconds[-3] > NOTHING:
            growth = min(seconds[-1] / seconds[-2], seconds[-2] / seconds[-3])
            if growth > MOST_GROWTH:
                return growth
    pairs = pairwise(seconds)
    measured = [after / before for before, after in pairs if before > NOTHING]
    return min(measured[-2:], default=0.0)


def _seconds(call: Callable[[str], object], text: str) -> float:
    start = time.process_time()
    call(text)
    return time.process_time() - start


def _adverse(pattern: re.Pattern[str]) -> Iterator[tuple[str, str, str]]:
    """Yield (beginning, repeated part, end) of texts that may be slow for a pattern."""
    tree = list(_parser.parse(pattern.pattern, pattern.flags))
    whole = _example(tree)
    units = {*_pumped(tree, ""), ("", whole), ("", whole[: len(whole) // 2] or " ")}
    units |= {("", letter) for letter in whole}
    for before, unit in units:
        for end in MANY:
            yield before, unit or " ", end
        yield "", (before + unit) or " ", ""
        yield "", f"{before}{unit * 8}\n", ""


def _pumped(nodes: Sequence[Any], before: str) -> Iterator[tuple[str, str]]:
    """Yield (preceding text, repeated text) for each repetition in a pattern."""
    for kind, value in nodes:
        if kind in REPEATS:
            yield before, _example(list(value[2]))
            yield from _pumped(list(value[2]), before)
        for inner in _inner(kind, value):
            yield from _pumped(list(inner), before)
        before += _example([(kind, value)])


def _inner(kind: Any, value: Any) -> list[Any]:  # noqa: ANN401 - of the parser
    if kind is c.SUBPATTERN:
        return [value[3]]
    if kind is c.ATOMIC_GROUP:
        return [value]
    return list(value[1]) if kind is c.BRANCH else []


def _example(nodes: Sequence[Any]) -> str:
    """Return a text that the nodes probably match."""
    return "".join(_of_node(kind, value) for kind, value in nodes)


def _of_node(kind: Any, value: Any) -> str:  # noqa: ANN401 - of the parser
    if kind is c.LITERAL:
        return chr(value)
    if kind in (c.ANY, c.NOT_LITERAL, c.IN):
        return _letter(kind, value)
    if kind in REPEATS:
        return _example(list(value[2])) * max(1, min(int(value[0]), 3))
    inner = _inner(kind, value)
    return _example(list(inner[0])) if inner else ""


def _letter(kind: Any, value: Any) -> str:  # noqa: ANN401 - of the parser
    if kind is not c.IN:
        return "a" if kind is c.ANY or value != ord("a") else "b"
    first, given = value[0]
    if first is c.LITERAL:
        return chr(given)
    if first is c.RANGE:
        return chr(given[0])
    if first is c.CATEGORY:
        return {c.CATEGORY_DIGIT: "1", c.CATEGORY_SPACE: " ", c.CATEGORY_NOT_WORD: "-"}.get(given, "a")
    taken = {chr(each) for kind, each in value if kind is c.LITERAL}
    return next(letter for letter in "a1 -" if letter not in taken)


def _readers() -> dict[str, tuple[Callable[[str], object], Sequence[str]]]:
    from synthbench.api import Question, looks_like_a_refusal, sentence_in, sentences_in
    from synthbench.base.redaction import masked
    from synthbench.llm.replies import without_thoughts
    from synthbench_brainstorm.answers import tasks_in
    from synthbench_gpl.answers import query_in

    graded, polar = Question(prompt="{a}", grades=(0, 5)), Question(prompt="{a}")
    explained = Question(prompt="{a}", grades=(0, 5), explanation=True)
    calls: dict[str, Callable[[str], object]] = {
        "judge's grade": graded.read,
        "judge's yes or no": polar.read,
        "judge's explained grade": explained.read,
        "sentences of an answer": sentences_in,
        "sentence of an answer": sentence_in,
        "refusals": looks_like_a_refusal,
        "thoughts": without_thoughts,
        "GPL's query": query_in,
        "brainstorm's tasks": lambda text: _quiet(tasks_in, text),
    }
    readers = {name: (call, ANSWERS) for name, call in calls.items()}
    return {**readers, "secrets": (masked, LEAKS)}


def _quiet(call: Callable[[str], object], text: str) -> None:
    with suppress(ValueError):
        call(text)


if __name__ == "__main__":
    main()
