"""Load untrusted YAML: plain data only, and no data that load slowly; errors name the line."""

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

import yaml
from ruamel.yaml import YAML
from ruamel.yaml.composer import Composer
from ruamel.yaml.constructor import ConstructorError, SafeConstructor
from ruamel.yaml.error import MantissaNoDotYAML1_1Warning, MarkedYAMLError, YAMLError
from ruamel.yaml.events import AliasEvent
from ruamel.yaml.nodes import ScalarNode
from ruamel.yaml.reader import ReaderError
from ruamel.yaml.resolver import VersionedResolver
from ruamel.yaml.scanner import RoundTripScanner, ScannerError

from synthbench.base.errors import UserError
from synthbench.base.patterns import linear_pattern

try:
    from yaml.cyaml import CParser
except ImportError:  # PyYAML was built without libyaml
    from yaml import BaseLoader as CParser

warnings.filterwarnings("ignore", category=MantissaNoDotYAML1_1Warning)
MOST_VALUES = 20_000
"""Limit of keys and values in one file; an alias counts as much as the values it refers to."""
MOST_LEVELS = 50
MOST_DIGITS = 100
_TOO_DEEP = f"nested too deeply: more than {MOST_LEVELS} levels"
_CORE = "tag:yaml.org,2002:"
Node = Any
"""A node from ruamel or PyYAML, whose attributes are the same."""
_PLAIN_TAGS = {
    "scalar": {"str", "int", "float", "bool", "null", "timestamp", "merge", "value"},
    "sequence": {"seq"},
    "mapping": {"map"},
}
_NOT_FOR_C = linear_pattern(r"[^\n -~\u00a1-\u1fff\u2030-\ud7ff]|!(?:\s|\Z)")
"""Text that PyYAML (YAML 1.1) silently reads differently: tabs, other line breaks, and the tag `!`."""
_SURROGATE = linear_pattern(r"[\ud800-\udfff]")
_TEXTS = ("str", "merge", "value")
"""Tags of text scalars; `<<` and `=` are text unless they are merge keys."""
_NO_VALUE = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""Errors that ruamel raises where a scalar does not fit its tag."""


class _NotPlainError(Exception):
    """A value that is YAML but not plain data."""

    def __init__(self, line: int, key: Sequence[str], problem: str) -> None:
        super().__init__(problem)
        self.line = line
        self.key = ".".join(key)


Lines = dict[tuple[str | int, ...], int]
"""The line of each key and item, by its path of keys (as text) and indices; () is the document."""


def load_yaml(text: str, name: str) -> Any:  # noqa: ANN401 - whatever it holds
    """Parse YAML 1.2 text; `name` is the file's name in messages.

    Raises UserError with the line for: invalid YAML, too many values, too deep nesting, an alias inside the
    value it refers to, a duplicate key, and any value but text, number, true, false, null, date, list or
    mapping.
    """
    return load_with_lines(text, name)[0]


def load_with_lines(text: str, name: str, *, is_merged_first: bool = False) -> tuple[Any, Lines]:
    """Parse YAML 1.2 text, with the lines of its keys and items; raises UserError as `load_yaml`.

    A mapping's own keys come before those merged by `<<`; with `is_merged_first`, after them.
    """
    constructor = _MergedFirstConstructor if is_merged_first else _Constructor
    if not _NOT_FOR_C.search(text):
        # Errors are ignored here: the slow parser below finds them again and explains them.
        with suppress(yaml.YAMLError, YAMLError, _NotPlainError):
            node = _FastComposer(text).get_single_node()
            return constructor(loader=YAML(pure=True)).construct_document(node)
    slow = YAML(pure=True)
    slow.Scanner, slow.Composer, slow.Constructor = _LevelledScanner, _CountingComposer, constructor
    try:
        found: tuple[Any, Lines] | None = slow.load(text)
        return found or (None, {(): 1})
    except _NotPlainError as error:
        location = ": ".join(part for part in (f"{name}:{error.line}", error.key) if part)
        raise UserError(f"{location}: {error}") from None
    except ReaderError as error:
        line = len(text[: error.position].splitlines()) or 1
        problem = f"the character U+{error.character:04X} is not allowed"
        raise UserError(f"{name}:{line}: not valid YAML: {problem}") from None
    except YAMLError as error:
        raise UserError(f"{name}:{_line(error, text)}: not valid YAML: {_problem(error)}") from None


class _FastComposer(CParser):  # type: ignore[misc]
    """Composes nodes in C, with YAML 1.2 scalars; raises at too many values or levels."""

    num_values = 0
    num_levels = 0
    resolvers: Mapping[str, Sequence[tuple[str, Any]]] = VersionedResolver(
        loadumper=YAML()
    ).versioned_resolver
    """Tags of YAML 1.2 and their patterns, by the first character of a value."""

    def resolve(self, kind: Any, value: Any, implicit: Any) -> str:  # noqa: ANN401 - PyYAML's types
        if kind.id != "scalar":
            return f"{_CORE}{'seq' if kind.id == 'sequence' else 'map'}"
        tagged = self.resolvers.get(value[:1], ()) if implicit[0] else ()
        return next((tag for tag, pattern in tagged if pattern.match(value)), f"{_CORE}str")

    def descend_resolver(self, parent: Any, index: Any) -> None:  # noqa: ANN401
        self.num_values += 1
        self.num_levels += 1
        if self.num_levels > MOST_LEVELS or self.num_values > MOST_VALUES:
            raise yaml.YAMLError

    def ascend_resolver(self) -> None:
        self.num_levels -= 1


class _Constructor(SafeConstructor):
    """Checks the whole document, then constructs its values and records the line of each key and item."""

    is_merged_first = False

    def construct_document(self, node: Node | None) -> tuple[Any, Lines]:
        self.lines: Lines = {(): 1}
        if node is None:
            return None, self.lines
        _size(node, {}, ())
        return self._value(node, ()), self.lines

    def _value(self, node: Node, path: tuple[str | int, ...]) -> Any:  # noqa: ANN401
        if node.id == "scalar":
            return self._scalar(node)
        if node.id == "sequence":
            return [self._at(item, item, (*path, index)) for index, item in enumerate(node.value)]
        return {key: self._at(at, value, (*path, str(key))) for key, (at, value) in self._items(node).items()}

    def _at(self, at: Node, node: Node, path: tuple[str | int, ...]) -> Any:  # noqa: ANN401
        self.lines[path] = at.start_mark.line + 1
        return self._value(node, path)

    def _items(self, node: Node) -> dict[Any, tuple[Node, Node]]:
        """Return each key's nodes (key and value); the mapping's own keys override those merged by `<<`."""
        own = [pair for pair in node.value if str(pair[0].tag) != f"{_CORE}merge"]
        layers: list[dict[Any, tuple[Node, Node]]] = [{}]
        for key, value in own:
            if (scalar := self._scalar(key)) in layers[0]:  # 1 and 1.0, true and True
                raise _NotPlainError(key.start_mark.line + 1, (key.value,), "is given twice")
            layers[0][scalar] = (key, value)
        for value in (value for key, value in node.value if str(key.tag) == f"{_CORE}merge"):
            for each in value.value if value.id == "sequence" else [value]:
                if each.id != "mapping":
                    what = "a mapping" if value.id == "sequence" else "a mapping or list of mappings"
                    raise _error(each, f"expected {what} for merging, but found {each.id}")
                layers.append(self._items(each))
        items = {key: item for layer in reversed(layers) for key, item in layer.items()}
        return items if self.is_merged_first else {key: items[key] for layer in layers for key in layer}

    def _scalar(self, node: Node) -> Any:  # noqa: ANN401
        tag = str(node.tag).removeprefix(_CORE)
        try:
            if tag in _TEXTS:
                # ruamel's scanner marks the folds of folded text with \a.
                return node.value.replace("\a", "") if node.style == ">" else node.value
            return self.construct_object(ScalarNode(node.tag, node.value, node.start_mark, node.end_mark))
        except _NO_VALUE as error:
            why = str(error) if isinstance(error, ValueError) else f"{node.value!r} is no !!{tag}"
            raise _error(node, why) from None


class _MergedFirstConstructor(_Constructor):
    is_merged_first = True


def _line(error: YAMLError, text: str) -> int:
    """Return an error's line; if the text ends inside a bracket, the line of that bracket."""
    marks = [getattr(error, name, None) for name in ("problem_mark", "context_mark")]
    lines = [mark.line + 1 for mark in marks if mark is not None and mark.index < len(text)]
    return lines[0] if lines else max(1, len(text.splitlines()))


def _problem(error: YAMLError) -> str:
    problem, context = (str(getattr(error, name, None) or "") for name in ("problem", "context"))
    # What ruamel quotes after a key is its value, which may be secret.
    problem = problem.partition('" with value "')[0] + '"' if '" with value "' in problem else problem
    said = f"{context} {problem}" if problem.startswith("but ") else problem or context or str(error)
    return " ".join(said.split())


class _LevelledScanner(RoundTripScanner):
    """Stops at once at too deeply nested brackets, since scanning takes longer with each level."""

    def fetch_flow_collection_start(self, *arguments: Any, **named: Any) -> None:  # noqa: ANN401
        if self.flow_level >= MOST_LEVELS:
            raise ScannerError(None, None, _TOO_DEEP, self.reader.get_mark())
        super().fetch_flow_collection_start(*arguments, **named)


class _CountingComposer(Composer):
    """Stops as soon as the file holds too many values or levels; counts an alias as one value."""

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


def _size(node: Node, sizes: dict[int, int], key: tuple[str, ...]) -> int:
    """Return the number of values in a node, aliases expanded; `sizes` is 0 for nodes still being counted."""
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
    """Yield the keys and values of a mapping, or the items of a list, each with the key or the index."""
    if node.id == "mapping":
        names: set[str] = set()
        for name, value in node.value:
            _check_key(name, key, names)
            yield from ((name.value, name), (name.value, value))
    elif node.id == "sequence":
        yield from ((str(number), item) for number, item in enumerate(node.value))


def _check_key(node: Node, key: tuple[str, ...], before: set[str]) -> None:
    """Raise an error for a key that is not text or repeats one of `before`."""
    what = "a mapping" if node.id == "mapping" else "a list" if node.id == "sequence" else ""
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
    if tag.removeprefix(_CORE) not in _PLAIN_TAGS[node.id]:
        shown = f"!!{tag.removeprefix(_CORE)}" if tag.startswith(_CORE) else tag
        problem = f"tags such as {shown} have no meaning here"
        raise _NotPlainError(node.start_mark.line + 1, key, problem)
    if node.id != "scalar":
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
