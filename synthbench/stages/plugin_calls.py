"""Stages whose work a plug-in does, and checks of what plug-ins return."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from functools import cache, cached_property
from numbers import Real
from pathlib import Path
from typing import Any, Generic, TypeVar

from synthbench.base.errors import UserError
from synthbench.base.frozen import in_identity
from synthbench.data.dataset import ParquetRecords, StoredRecords, SyntheticDataset
from synthbench.data.records import RECORD_TYPES, Record, RecordKind
from synthbench.engine.stage import Operation
from synthbench.models.checks import default_dtype
from synthbench.models.pretrained import pretrained_in
from synthbench.plugins.code import code_of
from synthbench.plugins.contracts import Component, Evaluator, Unit

T = TypeVar("T")
P = TypeVar("P", bound=Component)
_SHOWN = 60
STORED = "stored_in"
"""In a stage's configuration: the models that are stored in another dtype than the one they are loaded in."""


@dataclass(frozen=True)
class PluginOperation(Operation, Generic[P]):
    """A stage whose work one plug-in does: name, version, code and settings are the plug-in's."""

    name: str
    plugin: P

    @property
    def component(self) -> str:
        """The plug-in's name."""
        return self.name

    @property
    def version(self) -> int:
        """The plug-in's version with its settings."""
        return self.plugin.version_in_use()

    def code(self) -> Mapping[str, Mapping[str, str]]:
        """Return the plug-in's code."""
        return code_of([(self.name, self.plugin)])

    def config(self) -> Mapping[str, Any]:
        """Return the plug-in's settings as plain JSON values, constants of the code that changed, and dtypes.

        Models that are stored in another dtype than fp32 had been trained and had encoded in it, before all
        were loaded in fp32.
        """
        stored = self._stored_otherwise
        return {**in_identity(self.plugin), **({STORED: dict(stored)} if stored else {})}

    @cached_property
    def _stored_otherwise(self) -> Mapping[str, str]:
        found = ((base.model, default_dtype(base)) for base in pretrained_in(self.plugin))
        return {model: dtype for model, dtype in found if dtype}


def checked(made: Any, name: str, kind: RecordKind) -> Iterator[Record | Unit]:  # noqa: ANN401 - anything
    """Yield what a method yields; raises UserError if that is no record of its kind and no Unit."""
    wanted = f"`generate` must yield records of kind {kind}, Failures, or Units of them"
    if not isinstance(made, Iterable):
        raise UserError(f"{name}: {wanted}; it returned {_shown(made)}")
    for output in made:
        fault = _unit_fault(output, kind) if isinstance(output, Unit) else _record_fault(output, kind)
        if fault:
            raise UserError(f"{name}: {wanted}; it yielded {fault}")
        yield output


def yielded(apply: Callable[[], Any], name: str, kind: RecordKind) -> Iterator[Record]:
    """Yield what a step's `apply` makes; raises UserError if that is no record of its kind.

    A step that was written for a list of records is told what it gets instead.
    """
    wanted = f"`apply` must yield records of kind {kind}"
    try:
        made = apply()
        if not isinstance(made, Iterable):
            raise UserError(f"{name}: {wanted}; it returned {_shown(made)}")
        for record in made:
            if not isinstance(record, Record) or record.kind != kind:
                found = f"a record of kind {record.kind}: " if isinstance(record, Record) else ""
                raise UserError(f"{name}: {wanted}; it yielded {found}{_shown(record)}")
            yield record
    except (TypeError, AttributeError) as error:
        if not any(view.__name__ in str(error) for view in (ParquetRecords, StoredRecords)):
            raise
        raise UserError(
            f"{name}: {error}: `records` is no list, but read from the disk each time it is iterated over;"
            " iterate, take `records.column(NAME)`, or `list(records)` if they fit into memory"
        ) from error


def returned(value: Any, wanted: type[T], name: str, function: str) -> T:  # noqa: ANN401 - anything
    """Return a plug-in's return value; raises UserError if it has another type."""
    if not isinstance(value, wanted):
        raise UserError(f"{name}: `{function}` must return {wanted.__name__}; it returned {_shown(value)}")
    return value


def _unit_fault(unit: Unit, kind: RecordKind) -> str:
    title = f"the Unit {_shown(unit.key)}"
    if not isinstance(unit.key, str):
        return f"{title}, whose key is no text"
    if type(unit.position) is not int:
        return f"{title}, whose position is {_shown(unit.position)}, no whole number"
    if not isinstance(unit.records, tuple | list):
        return f"{title}, whose records are {_shown(unit.records)}, no tuple"
    return next(
        (f"{title} with {fault}" for each in unit.records if (fault := _record_fault(each, kind))), ""
    )


def _record_fault(record: Any, kind: RecordKind) -> str:  # noqa: ANN401 - whatever it yielded
    """Return what is wrong with a record, "" if nothing is."""
    if not isinstance(record, Record):
        return f"{_shown(record)} ({type(record).__name__})"
    if record.kind not in (kind, RecordKind.FAILURE):
        return f"a record of kind {record.kind}: {_shown(record)}"
    for name in _text_columns(record.kind):
        value = getattr(record, name)
        if not isinstance(value, str):
            return f"a {record.kind} whose {name} is {_shown(value)}, no text"
    if not all(isinstance(text, str) for text in record.texts()):
        return f"a {record.kind} with a text that is none: {_shown(record)}"
    score = getattr(record, "score", 0.0)
    return "" if isinstance(score, Real) else f"a {record.kind} whose score is {_shown(score)}, no number"


@cache
def _text_columns(kind: RecordKind) -> tuple[str, ...]:
    return tuple(field.name for field in fields(RECORD_TYPES[kind]) if field.type is str)


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def check_task(evaluator: Evaluator, folder: Path) -> None:
    """Let an evaluator check the data set in `folder`, if it has such a check; each set is read once.

    Raises UserError if it can't measure anything there.
    """
    if type(evaluator).check_data is not Evaluator.check_data:
        _check(evaluator, folder)


@cache
def _check(evaluator: Evaluator, folder: Path) -> None:
    evaluator.check_data(SyntheticDataset.read(folder))
