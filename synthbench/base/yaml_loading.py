"""Load untrusted YAML: anything but plain data, or data that take long to load, is refused with its line."""

import warnings
from collections.abc import Iterator, Sequence
from typing import Any, Literal

from ruamel.yaml import YAML
from ruamel.yaml.composer import Composer
from ruamel.yaml.constructor import ConstructorError, RoundTripConstructor, SafeConstructor
from ruamel.yaml.error import MantissaNoDotYAML1_1Warning, MarkedYAMLError, YAMLError
from ruamel.yaml.events import AliasEvent
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode
from ruamel.yaml.reader import ReaderError
from ruamel.yaml.scanner import RoundTripScanner, Scanner, ScannerError

from synthbench.base.errors import UserError
from synthbench.base.patterns import linear_pattern

warnings.filterwarnings("ignore", category=MantissaNoDotYAML1_1Warning)
MOST_VALUES = 20_000
"""Limit of keys and values in one file; an alias counts as much as the values it refers to."""
MOST_LEVELS = 50
MOST_DIGITS = 100
_TOO_DEEP = f"nested too deeply: more than {MOST_LEVELS} levels"
_CORE = "tag:yaml.org,2002:"
_PLAIN_TAGS = {
    ScalarNode: {"str", "int", "float", "bool", "null", "timestamp", "merge", "value"},
    SequenceNode: {"seq"},
    MappingNode: {"map"},
}
_SURROGATE = linear_pattern(r"[\ud800-\udfff]")
_NO_VALUE = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""Errors that ruamel raises where a scalar does not fit its tag."""


class _NotPlainError(Exception):
    """A value that is YAML but not plain data."""

    def __init__(self, line: int, key: Sequence[str], problem: str) -> None:
        super().__init__(problem)
        self.line = line
        self.key = ".".join(key)


def load_yaml(text: str, name: str, kind: Literal["rt", "safe"] = "rt") -> Any:  # noqa: ANN401 - whatever it holds
    """Return the value of YAML 1.2 text; `name` is the file's name in messages.

    The kind "rt" keeps the line of each value, "safe" gives plain values. Raises UserError with the line for:
    invalid YAML, too many values, too deep nesting, an alias inside the value it refers to, a duplicate key,
    and any value but text, number, true, false, date, list or mapping.
    """
    yaml = YAML(typ=kind, pure=True)
    is_rt = kind == "rt"
    yaml.Scanner = _RoundTripScanner if is_rt else _SafeScanner
    yaml.Composer = _CountingComposer
    yaml.Constructor = _RoundTripConstructor if is_rt else _SafeConstructor
    try:
        return yaml.load(text)
    except _NotPlainError as error:
        location = ": ".join(part for part in (f"{name}:{error.line}", error.key) if part)
        raise UserError(f"{location}: {error}") from None
    except ReaderError as error:
        line = len(text[: error.position].splitlines()) or 1
        problem = f"the character U+{error.character:04X} is not allowed"
        raise UserError(f"{name}:{line}: not valid YAML: {problem}") from None
    except YAMLError as error:
        raise UserError(f"{name}:{_line(error, text)}: not valid YAML: {_problem(error)}") from None


def _line(error: YAMLError, text: str) -> int:
    """Return the line of an error; where the text ends too early, that of the unclosed bracket."""
    marks = [getattr(error, name, None) for name in ("problem_mark", "context_mark")]
    lines = [mark.line + 1 for mark in marks if mark is not None and mark.index < len(text)]
    return lines[0] if lines else max(1, len(text.splitlines()))


def _problem(error: YAMLError) -> str:
    problem, context = (str(getattr(error, name, None) or "") for name in ("problem", "context"))
    # What ruamel quotes after a key is its value, which may be secret.
    problem = problem.partition('" with value "')[0] + '"' if '" with value "' in problem else problem
    said = f"{context} {problem}" if problem.startswith("but ") else problem or context or str(error)
    return " ".join(said.split())


class _DepthLimited:
    """Stops at once at too deeply nested brackets, since scanning takes longer with each level."""

    def fetch_flow_collection_start(self, *arguments: Any, **named: Any) -> None:  # noqa: ANN401
        scanner: Any = self
        if scanner.flow_level >= MOST_LEVELS:
            raise ScannerError(None, None, _TOO_DEEP, scanner.reader.get_mark())
        super().fetch_flow_collection_start(*arguments, **named)  # type: ignore[misc]  # of what this is mixed into


class _RoundTripScanner(_DepthLimited, RoundTripScanner): ...


class _SafeScanner(_DepthLimited, Scanner): ...


class _CountingComposer(Composer):
    """Stops as soon as the file holds too many values or levels, aliases not expanded."""

    num_values = 0
    num_levels = 0

    def compose_node(self, parent: Any, index: Any) -> Any:  # noqa: ANN401 - ruamel's types
        event = self.parser.peek_event()
        if self.num_levels > MOST_LEVELS:
            raise ConstructorError(None, None, _TOO_DEEP, event.start_mark)
        if getattr(event, "anchor", None) in self.anchors and not isinstance(event, AliasEvent):
            problem = f"the anchor &{event.anchor} is defined twice"
            raise ConstructorError(None, None, problem, event.start_mark)
        self.num_levels += 1
        node = super().compose_node(parent, index)
        self.num_levels -= 1
        self.num_values += 1
        if self.num_values > MOST_VALUES:
            raise _error(node, f"more than {MOST_VALUES:,} values")
        return node


class _CheckedConstruction:
    """Checks the whole document before any value is constructed."""

    def construct_document(self, node: Node) -> Any:  # noqa: ANN401 - whatever it holds
        _size(node, {}, ())
        return super().construct_document(node)  # type: ignore[misc]  # of the class that this is mixed into

    def construct_object(self, node: Node, *arguments: Any, **named: Any) -> Any:  # noqa: ANN401
        try:
            return super().construct_object(node, *arguments, **named)  # type: ignore[misc]
        except _NO_VALUE as error:
            tag = str(node.tag).removeprefix(_CORE)
            why = str(error) if isinstance(error, ValueError) else f"{node.value!r} is no !!{tag}"
            raise _error(node, why) from None


class _RoundTripConstructor(_CheckedConstruction, RoundTripConstructor): ...


class _SafeConstructor(_CheckedConstruction, SafeConstructor): ...


def _size(node: Node, sizes: dict[int, int], key: tuple[str, ...]) -> int:
    """Return the number of values in a node with aliases expanded; `sizes` holds 0 for an unfinished node."""
    known = sizes.get(id(node))
    if known == 0:
        raise _error(node, "an alias is inside the value that it stands for")
    if len(key) > MOST_LEVELS:
        raise _error(node, _TOO_DEEP)
    if known is not None:
        return known
    sizes[id(node)] = 0
    _check_plain(node, key)
    size = 1 + sum(_size(child, sizes, (*key, name)) for name, child in _children(node, key))
    if size > MOST_VALUES:
        raise _error(node, f"more than {MOST_VALUES:,} values; an alias counts as all that it stands for")
    sizes[id(node)] = size
    return size


def _children(node: Node, key: tuple[str, ...]) -> Iterator[tuple[str, Node]]:
    """Yield the keys and values of a mapping, or the items of a list, each with its path."""
    if isinstance(node, MappingNode):
        names: set[str] = set()
        for name, value in node.value:
            _check_key(name, key, names)
            yield from ((name.value, name), (name.value, value))
    elif isinstance(node, SequenceNode):
        yield from ((str(number), item) for number, item in enumerate(node.value))


def _check_key(node: Node, key: tuple[str, ...], before: set[str]) -> None:
    """Raise an error for a key that is not text or repeats one of `before`."""
    what = (
        "a mapping" if isinstance(node, MappingNode) else "a list" if isinstance(node, SequenceNode) else ""
    )
    if not what and str(node.tag) == f"{_CORE}null":
        what = "empty" if node.value in ("", "~") else node.value
    if what:
        raise _NotPlainError(node.start_mark.line + 1, key, f"a key must be text, is {what}")
    if node.value in before:
        raise _NotPlainError(node.start_mark.line + 1, (*key, node.value), "is given twice")
    before.add(node.value)


def _check_plain(node: Node, key: tuple[str, ...]) -> None:
    """Raise an error for a tag of non-plain data, a number too long or with `_`, and invalid Unicode."""
    tag = str(node.tag)
    if tag.removeprefix(_CORE) not in _PLAIN_TAGS[type(node)]:
        shown = f"!!{tag.removeprefix(_CORE)}" if tag.startswith(_CORE) else tag
        problem = f"tags such as {shown} have no meaning here"
        raise _NotPlainError(node.start_mark.line + 1, key, problem)
    if not isinstance(node, ScalarNode):
        return
    if tag.endswith(":int") and len(node.value) > MOST_DIGITS:
        raise _error(node, f"a number of {len(node.value):,} digits")
    if tag.endswith((":int", ":float")) and "_" in node.value:
        problem = "YAML 1.2 has no numbers with `_`; leave it out, or put a text in quotation marks"
        raise _NotPlainError(node.start_mark.line + 1, key, problem)
    if _SURROGATE.search(node.value):
        raise _error(node, "half a character: one beyond U+FFFF is written \\U and eight digits")


def _error(node: Node, problem: str) -> MarkedYAMLError:
    return ConstructorError(None, None, problem, node.start_mark)
