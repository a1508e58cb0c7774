"""Finds patterns that may take more than linear time, from their parse trees.

What takes time are repeats without a limit. A position of the text may lie in one of them for many attempts:
many starts of a search, or many lengths of an earlier repeat that the engine gives back. This cannot be where

- the attempt has one way only: the pattern is anchored, and earlier repeats give nothing back; or
- the repeat is delimited: a character that must precede it, no other repeat between, is none of its own. Then
  the position of that character follows from the text; or
- nothing can fail after it, so that every attempt that reaches it consumes what it has read.

A repeated group must be atomic, `(?>(?:...)*)`, or have one way to read a text: no other character is like
its first. It must not be possessive, `(?:...)*+`: before 3.11.5 (gh-106052), Python goes on from where the
group's last, failed attempt ended.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from re import _constants as c  # type: ignore[attr-defined]
from re import _parser  # type: ignore[attr-defined]
from typing import Any

MOST = 100
"""Repeats of more have no limit for us."""
MOST_WAYS = 100_000
_UNIVERSE = (
    *range(0x250),
    *range(0x3B1, 0x3B9),
    *range(0x660, 0x66A),
    *range(0x2000, 0x2070),
    0x25C1,
    0x25B7,
)
_REPEATS = (c.MAX_REPEAT, c.MIN_REPEAT, c.POSSESSIVE_REPEAT)
_CHARACTERS = (c.LITERAL, c.NOT_LITERAL, c.ANY, c.IN)
_SINGLE = tuple([kind] for kind in _CHARACTERS)
_CATEGORIES = {
    c.CATEGORY_DIGIT: r"\d",
    c.CATEGORY_NOT_DIGIT: r"\D",
    c.CATEGORY_SPACE: r"\s",
    c.CATEGORY_NOT_SPACE: r"\S",
    c.CATEGORY_WORD: r"\w",
    c.CATEGORY_NOT_WORD: r"\W",
}
Letters = frozenset[str]


def faults(pattern: re.Pattern[str]) -> list[str]:
    """Return what may be slow in a pattern, [] if it is linear."""
    check = _Check(pattern.flags)
    tree = _parser.parse(pattern.pattern, pattern.flags)
    check.sequence(list(tree), _At())
    ways = check.ways(tree)
    if ways > MOST_WAYS:
        check.found.append(f"{ways:,} ways to read one text")
    return check.found


@dataclass
class _At:
    """The state at a position of the pattern: what precedes it, and how often it can be reached."""

    left: list[Any] = field(default_factory=list)
    is_searched: bool = True
    is_loose: bool = False
    is_last: bool = True


@cache
def _of_category(category: Any) -> Letters:
    return frozenset(re.findall(_CATEGORIES[category], "".join(map(chr, _UNIVERSE))))


@dataclass
class _Check:
    flags: int
    found: list[str] = field(default_factory=list)

    def sequence(self, nodes: Sequence[Any], at: _At) -> _At:
        for number, node in enumerate(nodes):
            self.check_possessive(*node)
            kind, value = _as_possessive(*node)
            rest = nodes[number + 1 :]
            inner = replace(at, left=list(at.left), is_last=at.is_last and all(map(self.cannot_fail, rest)))
            if kind is c.SUBPATTERN:
                after = self.sequence(list(value[3]), inner)
                at = replace(after, is_last=at.is_last)
                continue
            if kind is c.ATOMIC_GROUP:
                after = self.sequence(list(value), inner)
                at.left = after.left
                continue
            if kind is c.BRANCH:
                ends = [self.sequence(list(each), replace(inner, left=list(at.left))) for each in value[1]]
                at.is_loose = any(end.is_loose for end in ends)
                at.is_searched = any(end.is_searched for end in ends)
            elif kind in _REPEATS:
                at.is_loose = self.repeat((kind, value), rest, inner)
            elif kind in (c.ASSERT, c.ASSERT_NOT) and value[0] > 0:
                self.sequence(list(value[1]), replace(inner, is_last=False))
            elif kind is c.AT and self.is_start(value):
                at.is_searched = False
            at.left.append((kind, value))
        return at

    def check_possessive(self, kind: Any, value: Any) -> None:
        if kind is c.POSSESSIVE_REPEAT and [each[0] for each in value[2]] not in _SINGLE:
            self.found.append("a possessive group; make it atomic")

    def repeat(self, node: Any, rest: Sequence[Any], at: _At) -> bool:
        """Check a repeat; return whether the engine may backtrack into it."""
        kind, (_, most, body) = node
        body, is_possessive = list(body), kind is c.POSSESSIVE_REPEAT
        own = self.letters(body)
        if most <= MOST and (most == 1 or not self.is_endless(body)):
            after = self.sequence(body, replace(at, left=list(at.left)))
            return at.is_loose if is_possessive else after.is_loose
        is_single = len(body) == 1 and body[0][0] in _CHARACTERS
        needs = at.is_searched or at.is_loose
        if needs and not (self.is_delimited(own, at.left) or (at.is_last and not at.is_loose)):
            self.found.append(f"a repeat of {self.shown(own)} that is not delimited")
        if not is_single:
            self.sequence(body, _At(is_last=False))
            if not (is_possessive or self.has_one_way(body)):
                self.found.append("a repeated group that is not atomic")
        gives_back = not (is_possessive or at.is_last or self.ends_at(own, rest))
        return at.is_loose or gives_back

    def ends_at(self, own: Letters, rest: Sequence[Any]) -> bool:
        """Tell whether what must follow begins with none of a repeat's letters."""
        return bool(rest) and not own & self.first(rest)

    def first(self, nodes: Sequence[Any]) -> Letters:
        """Return with what letters a text begins that the nodes match, all if it may be empty."""
        letters: Letters = frozenset()
        for kind, value in nodes:
            if kind in (c.ASSERT, c.ASSERT_NOT, c.AT):
                continue
            if kind in _CHARACTERS:
                return letters | self.letters([(kind, value)])
            if kind is c.SUBPATTERN and self.least(value[3]):
                return letters | self.first(list(value[3]))
            if kind is c.BRANCH and self.least([(kind, value)]):
                return letters.union(*(self.first(list(each)) for each in value[1]))
            if kind in _REPEATS:
                letters |= self.first(list(value[2]))
                if value[0] and self.least(value[2]):
                    return letters
                continue
            break
        return _everything()

    def is_delimited(self, own: Letters, left: Sequence[Any]) -> bool:
        is_next = True
        for kind, value in reversed(left):
            if kind in (c.AT, c.ASSERT, c.ASSERT_NOT):
                if self.is_guard(own, (kind, value), is_next=is_next):
                    return True
                continue
            is_next = False
            node = [(kind, value)]
            if self.is_endless(node):
                if own & self.letters(node):
                    return False
                if self.least(node):
                    return True
            elif self.must_hold_another(own, node):
                return True
        return False

    def is_guard(self, own: Letters, node: Any, *, is_next: bool) -> bool:
        kind, value = node
        if kind is c.AT:
            if value in (c.AT_BEGINNING, c.AT_BEGINNING_STRING):
                return self.is_start(value) or "\n" not in own
            return value is c.AT_BOUNDARY and is_next and own <= _of_category(c.CATEGORY_WORD)
        is_behind = kind is c.ASSERT_NOT and value[0] < 0 and len(value[1]) == 1
        return is_behind and is_next and own <= self.letters(list(value[1]))

    def must_hold_another(self, own: Letters, nodes: Iterable[Any]) -> bool:
        """Tell whether every text of these nodes has a character that is none of `own`."""
        return any(self._holds_another(own, kind, value) for kind, value in nodes)

    def _holds_another(self, own: Letters, kind: Any, value: Any) -> bool:
        if kind in _CHARACTERS:
            return not own & self.letters([(kind, value)])
        if kind is c.SUBPATTERN:
            return self.must_hold_another(own, value[3])
        if kind is c.ATOMIC_GROUP:
            return self.must_hold_another(own, value)
        if kind is c.BRANCH:
            return all(self.must_hold_another(own, each) for each in value[1])
        return kind in _REPEATS and value[0] > 0 and self.must_hold_another(own, value[2])

    def has_one_way(self, body: Sequence[Any]) -> bool:
        """Tell whether a group has no choices, and nothing in it matches its first character again."""
        kinds = {kind for kind, _ in body}
        first, others = self.letters(body[:1]), self.letters(body[1:])
        return body[0][0] in _CHARACTERS and kinds <= {*_CHARACTERS, *_REPEATS} and not first & others

    def is_start(self, where: Any) -> bool:
        return where is c.AT_BEGINNING_STRING or (where is c.AT_BEGINNING and not self.flags & re.MULTILINE)

    def is_endless(self, nodes: Iterable[Any]) -> bool:
        return any(
            (kind in _REPEATS and value[1] > MOST) or any(map(self.is_endless, _inner(kind, value)))
            for kind, value in nodes
        )

    def least(self, nodes: Iterable[Any]) -> int:
        """Return the least length that the nodes match."""
        return int(sum(_least(kind, value, self) for kind, value in nodes))

    def cannot_fail(self, node: Any) -> bool:
        kind, value = node
        if kind in _REPEATS:
            return bool(value[0] == 0)
        if kind in (c.SUBPATTERN, c.ATOMIC_GROUP):
            return all(map(self.cannot_fail, value[3] if kind is c.SUBPATTERN else value))
        return kind is c.BRANCH and any(all(map(self.cannot_fail, each)) for each in value[1])

    def ways(self, nodes: Iterable[Any]) -> int:
        """Return an upper limit of the ways in which bounded repeats and branches read a text."""
        product = 1
        for kind, value in nodes:
            inner = [self.ways(each) for each in _inner(kind, value)]
            if kind is c.BRANCH:
                product *= max(1, sum(1 for ways in inner if ways == 1) and 1, *inner)
            elif kind in _REPEATS:
                lengths = value[1] - value[0] + 1 if value[1] <= MOST else 1
                product *= 1 if kind is c.POSSESSIVE_REPEAT else lengths * inner[0]
            elif kind is c.SUBPATTERN:
                product *= inner[0]
        return product

    def letters(self, nodes: Iterable[Any]) -> Letters:
        return frozenset().union(*(self._letters(kind, value) for kind, value in nodes))

    def _letters(self, kind: Any, value: Any) -> Letters:
        if kind in (c.ASSERT, c.ASSERT_NOT, c.AT):
            return frozenset()
        if kind is c.GROUPREF:
            return _everything()
        if kind is c.ANY:
            return _everything() if self.flags & re.DOTALL else _everything() - {"\n"}
        if kind is c.LITERAL:
            return self.cased({chr(value)})
        if kind is c.NOT_LITERAL:
            return _everything() - self.cased({chr(value)})
        if kind is c.IN:
            return self._of_set(value)
        return frozenset().union(*(self.letters(each) for each in _inner(kind, value)))

    def _of_set(self, items: Iterable[Any]) -> Letters:
        found: set[str] = set()
        is_negated = False
        for kind, value in items:
            is_negated |= kind is c.NEGATE
            if kind is c.LITERAL:
                found |= self.cased({chr(value)})
            elif kind is c.RANGE:
                found |= self.cased(
                    {letter for letter in _everything() if value[0] <= ord(letter) <= value[1]}
                )
            elif kind is c.CATEGORY:
                found |= _of_category(value)
        return _everything() - found if is_negated else frozenset(found)

    def cased(self, letters: set[str]) -> Letters:
        if not self.flags & re.IGNORECASE:
            return frozenset(letters)
        return frozenset({form for letter in letters for form in (letter, letter.lower(), letter.upper())})

    @staticmethod
    def shown(letters: Letters) -> str:
        return repr("".join(sorted(letters))[:40])


@cache
def _everything() -> Letters:
    return frozenset(map(chr, _UNIVERSE))


def _as_possessive(kind: Any, value: Any) -> tuple[Any, Any]:
    """Return an atomic group of one repeat as the possessive repeat that it is; other nodes unchanged."""
    if kind is c.ATOMIC_GROUP and len(value) == 1 and value[0][0] is c.MAX_REPEAT:
        return c.POSSESSIVE_REPEAT, value[0][1]
    return kind, value


def _inner(kind: Any, value: Any) -> list[Any]:
    if kind is c.SUBPATTERN:
        return [value[3]]
    if kind is c.ATOMIC_GROUP:
        return [value]
    if kind is c.BRANCH:
        return list(value[1])
    if kind in _REPEATS:
        return [value[2]]
    return [value[1]] if kind in (c.ASSERT, c.ASSERT_NOT) else []


def _least(kind: Any, value: Any, check: _Check) -> int:
    if kind in _CHARACTERS:
        return 1
    if kind in (c.ASSERT, c.ASSERT_NOT, c.AT, c.GROUPREF):
        return 0
    shortest = min((check.least(each) for each in _inner(kind, value)), default=0)
    return int(value[0]) * shortest if kind in _REPEATS else shortest
