"""Chains: roles that take another part of the data instead of a source."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from synthbench.base.errors import did_you_mean
from synthbench.config.components import ComponentParser
from synthbench.config.documents import Document, KeyPath
from synthbench.config.experiment import Part
from synthbench.config.problems import Problems
from synthbench.config.schema import PartRole
from synthbench.data.records import RecordKind


class ChainParser:
    """Checks the roles of one run that take a part."""

    def __init__(self, components: ComponentParser, problems: Problems) -> None:
        self.components = components
        self.problems = problems

    def take(
        self, document: Document, part: str, role: str, taken: PartRole, kind: RecordKind | None
    ) -> None:
        """Note that a part's role takes another part, and the problem if it can't (kind None: any)."""
        parts = _parts(document)
        path: KeyPath = ("data", part, "sources", role, "part")
        wrong = _obstacle(parts, part, taken.part)
        if taken.part in self.components.sources and taken.part not in parts:
            wrong = f"'{taken.part}' is a source, not a part of `data`; write {role}: {taken.part}"
        if wrong:
            self.problems.add(document, path, wrong)
            return
        found = self.components.kind_of(parts[taken.part], prepared=taken.prepared)
        if kind is not None and found is not None and found != kind:
            message = f"'{taken.part}' holds records of kind {found}, here {kind} is needed"
            self.problems.add(document, path, message)

    def is_mistaken(self, document: Document, part: str, role: str, source: str) -> bool:
        """Tell whether a role names a part as if it were a source, and note the problem."""
        if source in self.components.sources or source not in _parts(document):
            return False
        message = f"'{source}' is a part of `data`, not a source; write {{part: {source}}}"
        self.problems.add(document, ("data", part, "sources", role), message)
        return True


def _obstacle(parts: Mapping[str, Any], own: str, name: str) -> str:
    """Return why a part can't be made from the part of this name, "" if it can."""
    if name not in parts:
        others = [other for other in parts if other != own]
        near = did_you_mean(name, others) if others else f"; there is none but '{own}' itself"
        return f"no part of `data` is called '{name}'{near}"
    if name == own:
        return f"'{own}' can't be made from itself"
    cycle = _way(parts, name, own)
    if cycle:
        return f"a cycle: {' is made from '.join([own, *cycle])}; one of them needs another source"
    order = list(parts)
    if order.index(name) > order.index(own):
        return f"part '{name}' comes later in `data`; move it before '{own}'"
    return ""


def _way(parts: Mapping[str, Any], start: str, goal: str, seen: Collection[str] = ()) -> tuple[str, ...]:
    """Return the parts from one to another, each made from the next; () if there is no such way."""
    if start == goal:
        return (goal,)
    for name in _taken_by(parts.get(start)):
        way = _way(parts, name, goal, (*seen, start)) if name not in seen else ()
        if way:
            return (start, *way)
    return ()


def _taken_by(raw: object) -> Iterator[str]:
    """Yield the parts that a part's roles take, as far as its section is readable."""
    sources = raw.get("sources") if isinstance(raw, dict) else None
    for taken in sources.values() if isinstance(sources, dict) else ():
        name = taken.get("part") if isinstance(taken, dict) else None
        if isinstance(name, str):
            yield name


def _parts(document: Document) -> Mapping[str, Any]:
    found = document.data.get("data")
    return found if isinstance(found, dict) else {}


def ancestors_of(names: Collection[str], parts: Sequence[Part]) -> set[str]:
    """Return the parts of these names and all parts that they are made from."""
    found = set(names)
    for part in reversed(parts):  # a part takes only parts before it
        if part.name in found:
            found.update(role.part for role in (part.roles or {}).values() if isinstance(role, PartRole))
    return found
