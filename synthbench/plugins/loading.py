"""Find and load plug-ins, and check each against its contract; a fault is reported in one line."""

import inspect
from collections.abc import Collection, Iterator, Mapping
from functools import cache
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any, ClassVar, get_args, get_origin

from pydantic import BaseModel, TypeAdapter, ValidationError

from synthbench.base.entry_points import imported, offered, only_offer, origin
from synthbench.base.errors import UserError, did_you_mean, in_one_line
from synthbench.plugins.contracts import Component, Method, Step
from synthbench.plugins.files import FilePlugin, is_in_file
from synthbench.plugins.importers import Importer
from synthbench.plugins.model_contracts import Evaluator, Trainer

GROUPS: Mapping[str, type[Component]] = {
    "methods": Method,
    "steps": Step,
    "trainers": Trainer,
    "evaluators": Evaluator,
    "importers": Importer,
}
_NAMES = tuple[str, ...] | list[str] | set[str] | frozenset[str]
_KINDS = '{"texts": RecordKind.SENTENCE}'
_EXAMPLES: Mapping[str, str] = {
    "version": "1",
    "record_kind": "RecordKind.SCORED_PAIR",
    "model_kind": "ModelKind.ENCODER",
    "source_roles": _KINDS,
    "optional_source_roles": _KINDS,
    "kinds": "frozenset({RecordKind.PAIR})",
    "learns_from": '("train", "dev")',
    "title": '"the format"',
    "suffix": '".jsonl"',
}


def installed(group: str) -> Mapping[str, EntryPoint]:
    """Return the entry points of a group, such as "methods", by name."""
    return {name: points[0] for name, points in offered(group).items()}


def component(group: str, name: str, folder: Path | None = None) -> type[Any]:
    """Return the plug-in class with that name: an installed one, or "file.py:Class" in a file below `folder`.

    Raises UserError with one line if no plug-in has the name (with the nearest name), or two packages offer
    a plug-in of that name. Raises UserError also if the plug-in can't be imported or breaks the group's
    contract, or if the user does not allow the file's code.
    """
    if is_in_file(name):
        return _load(FilePlugin(name, folder or Path()), group[:-1], GROUPS[group])
    return installed_component(group, name)


@cache
def installed_component(group: str, name: str) -> type[Any]:
    """Return the installed plug-in class with that name, cached; raises UserError as `component` does."""
    known, word = installed(group), group[:-1]
    if name not in known:
        raise UserError(f"unknown {word} '{name}'{did_you_mean(name, known)}")
    only_offer(word, offered(group).get(name, (known[name],)))
    return _load(known[name], word, GROUPS[group])


def _load(point: EntryPoint | FilePlugin, word: str, contract: type[BaseModel]) -> type[Any]:
    """Return the class of an entry point or file; `word` is the contract's name, such as "method".

    Raises UserError with one line if the class can't be imported or breaks the contract. The line names the
    plug-in, its distribution and the fault.
    """
    where = origin(point.value, point.dist)
    title = f"{word} '{point.name}' ({where})"
    loaded = imported(title, point.load)
    if not (isinstance(loaded, type) and issubclass(loaded, contract)):
        raise UserError(f"{where} is not a {contract.__name__}, as '{point.name}' must be")
    faults = list(_faults(loaded, contract))
    if faults:
        raise UserError(f"{title}: {'; '.join(faults)}")
    return loaded


def _faults(plugin: type[BaseModel], contract: type[BaseModel]) -> Iterator[str]:
    if plugin.__init__ is not contract.__init__:
        yield "has an `__init__` of its own; settings are fields, such as `score: float = 1.0`"
    try:
        # A class may refer to sections defined below it.
        plugin.model_rebuild()
    except Exception as error:  # noqa: BLE001 - pydantic tells unknown names in several ways
        yield f"its settings can't be read: {in_one_line(error)}"
        return
    definers = contract.__mro__[: contract.__mro__.index(BaseModel)]
    for definer in definers:
        for name, annotation in inspect.get_annotations(definer).items():
            origin_type: Any = get_origin(annotation)
            if origin_type is ClassVar:
                yield from _value_faults(plugin, contract, name, get_args(annotation)[0])
        for name, member in vars(definer).items():
            if inspect.isfunction(member) or isinstance(member, property):
                yield from _member_faults(plugin, name, member)


def _value_faults(
    plugin: type[BaseModel],
    contract: type[BaseModel],
    name: str,
    wanted: Any,  # noqa: ANN401 - any annotation
) -> Iterator[str]:
    right = f"write `{name} = {_EXAMPLES.get(name) or repr(getattr(contract, name, None))}`"
    if name in plugin.model_fields:
        yield f"`{name}` is a setting; {right}, without a type or as a ClassVar"
    elif not hasattr(plugin, name):
        yield f"has no `{name}`; {right}"
    else:
        value = getattr(plugin, name)
        try:
            # Pydantic has no schema for a Collection.
            known: Any = _NAMES if wanted == Collection[str] else wanted
            TypeAdapter(known).validate_python(value, strict=True)
        except ValidationError:
            yield f"`{name}` can't be {value!r}; {right} or the like"


def _member_faults(plugin: type[BaseModel], name: str, wanted: Any) -> Iterator[str]:  # noqa: ANN401 - a function or a property
    if name.startswith("_"):
        return
    given = inspect.getattr_static(plugin, name)
    is_property = isinstance(wanted, property)
    right = f"a property `{name}`" if is_property else f"`def {name}{_parameters(wanted)}`"
    if getattr(given, "__isabstractmethod__", False):
        yield f"has no `{name}`; write {right}"
    elif is_property:
        if inspect.isroutine(given):
            yield f"`{name}` is a method; write @property above it"
    elif not _takes(given, len(inspect.signature(wanted).parameters)):
        yield f"`{name}` can't be called as it is; write {right}"


def _parameters(function: Any) -> str:  # noqa: ANN401 - a function
    return f"({', '.join(inspect.signature(function).parameters)})"


def _takes(given: Any, number: int) -> bool:  # noqa: ANN401 - whatever the class holds
    """Return whether an object can be called with `number` arguments, including self."""
    if isinstance(given, staticmethod | classmethod):
        given, number = given.__func__, number - isinstance(given, staticmethod)
    try:
        inspect.signature(given).bind(*range(number))
    except (TypeError, ValueError):
        return False
    return True
