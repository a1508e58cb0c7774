"""YAML from anybody: what would take long, or much memory, is refused with its line."""

from typing import Any, Literal

from ruamel.yaml import YAML
from ruamel.yaml.composer import Composer
from ruamel.yaml.constructor import ConstructorError, RoundTripConstructor, SafeConstructor
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode
from ruamel.yaml.scanner import RoundTripScanner, Scanner, ScannerError

from synthbench.errors import UserError

MOST_VALUES = 20_000
"""Keys and values of one file; an alias counts as much as what it stands for."""
MOST_LEVELS = 50
MOST_DIGITS = 100
_TOO_DEEP = f"nested too deeply: more than {MOST_LEVELS} levels"


def load_yaml(text: str, name: str, kind: Literal["rt", "safe"] = "rt") -> Any:  # noqa: ANN401 - whatever it holds
    """Return what YAML 1.2 text holds; `name` stands for the file in messages.

    The kind "rt" knows the lines that values come from, "safe" gives plain values. Raises UserError, with the
    line, for what is not YAML, too much of it, nested too deeply, or an alias inside what it stands for.
    """
    yaml = YAML(typ=kind, pure=True)
    is_rt = kind == "rt"
    yaml.Scanner = _RoundTripScanner if is_rt else _SafeScanner
    yaml.Composer = _CountingComposer
    yaml.Constructor = _RoundTripConstructor if is_rt else _SafeConstructor
    try:
        return yaml.load(text)
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        problem = " ".join(str(error.problem or error.context or "not YAML").split())
        raise UserError(f"{name}:{line}: not valid YAML: {problem}") from None
    except YAMLError as error:
        raise UserError(f"{name}: not valid YAML: {' '.join(str(error).split())}") from None
    except RecursionError:
        raise UserError(f"{name}: not valid YAML: nested too deeply") from None


class _Levelled:
    """Stops at once where brackets are nested too deeply: scanning them takes longer with each level."""

    def fetch_flow_collection_start(self, *arguments: Any, **named: Any) -> None:  # noqa: ANN401
        scanner: Any = self
        if scanner.flow_level >= MOST_LEVELS:
            raise ScannerError(None, None, _TOO_DEEP, scanner.reader.get_mark())
        super().fetch_flow_collection_start(*arguments, **named)  # type: ignore[misc]  # of what this is mixed into


class _RoundTripScanner(_Levelled, RoundTripScanner): ...


class _SafeScanner(_Levelled, Scanner): ...


class _CountingComposer(Composer):
    """Stops as soon as the file itself holds too many values."""

    num_values = 0

    def compose_node(self, parent: Any, index: Any) -> Any:  # noqa: ANN401 - ruamel's types
        node = super().compose_node(parent, index)
        self.num_values += 1
        if self.num_values > MOST_VALUES:
            raise _error(node, f"more than {MOST_VALUES:,} values")
        return node


class _Checking:
    """Looks at the whole document before anything is made of it."""

    def construct_document(self, node: Node) -> Any:  # noqa: ANN401 - whatever it holds
        _size(node, {}, 0)
        return super().construct_document(node)  # type: ignore[misc]  # of the class that this is mixed into

    def construct_object(self, node: Node, *arguments: Any, **named: Any) -> Any:  # noqa: ANN401
        try:
            return super().construct_object(node, *arguments, **named)  # type: ignore[misc]
        except ValueError as error:
            raise _error(node, str(error)) from None


class _RoundTripConstructor(_Checking, RoundTripConstructor): ...


class _SafeConstructor(_Checking, SafeConstructor): ...


def _size(node: Node, sizes: dict[int, int], depth: int) -> int:
    """Return how many values a node stands for, its aliases written out; of one begun, `sizes` has 0."""
    known = sizes.get(id(node))
    if known == 0:
        raise _error(node, "an alias is inside the value that it stands for")
    if depth > MOST_LEVELS:
        raise _error(node, _TOO_DEEP)
    if known is not None:
        return known
    sizes[id(node)] = 0
    size = 1 + sum(_size(child, sizes, depth + 1) for child in _children(node))
    if size > MOST_VALUES:
        raise _error(node, f"more than {MOST_VALUES:,} values; an alias counts as all that it stands for")
    sizes[id(node)] = size
    return size


def _children(node: Node) -> list[Node]:
    if isinstance(node, MappingNode):
        return [child for pair in node.value for child in pair]
    if not isinstance(node, ScalarNode):
        return list(node.value)
    if str(node.tag).endswith(":int") and len(node.value) > MOST_DIGITS:
        raise _error(node, f"a number of {len(node.value):,} digits")
    return []


def _error(node: Node, problem: str) -> MarkedYAMLError:
    return ConstructorError(None, None, problem, node.start_mark)
