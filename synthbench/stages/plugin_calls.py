"""Stages that run a plug-in, and checks of the values that plug-ins return."""

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
from synthbench.plugins.contracts import Component, Unit
from synthbench.plugins.model_contracts import Evaluator

T = TypeVar("T")
P = TypeVar("P", bound=Component)
_SHOWN = 60
STORED = "stored_in"
"""The configuration key of models that are stored in another dtype than fp32."""


@dataclass(frozen=True)
class PluginOperation(Operation, Generic[P]):
    """A stage that runs one plug-in; version, code and settings come from the plug-in."""

    name: str
    plugin: P

    @property
    def component(self) -> str:
        """The plug-in's name."""
        return self.name

    @property
    def version(self) -> int:
        """The plug-in's version, or an earlier version if the settings still give that version's results."""
        return self.plugin.version_in_use()

    def code(self) -> Mapping[str, Mapping[str, str]]:
        """Return the plug-in's code as `code_of` does: name -> package -> version or hash."""
        return code_of([(self.name, self.plugin)])

    def config(self) -> Mapping[str, Any]:
        """Return the plug-in's settings as plain JSON values, its changed constants, and stored dtypes.

        Dtypes appear only for models that are not stored in fp32. Earlier versions loaded these models in the
        stored dtype; now every model is loaded in fp32.
        """
        stored = self._stored_dtypes
        return {**in_identity(self.plugin), **({STORED: dict(stored)} if stored else {})}

    @cached_property
    def _stored_dtypes(self) -> Mapping[str, str]:
        found = ((base.model, default_dtype(base)) for base in pretrained_in(self.plugin))
        return {model: dtype for model, dtype in found if dtype}


def checked_outputs(made: Any, name: str, kind: RecordKind) -> Iterator[Record | Unit]:  # noqa: ANN401 - anything
    """Yield a method's outputs; raises UserError for an invalid one.

    Valid are records of `kind`, Failures, and Units of these.
    """
    wanted = f"`generate` must yield records of kind {kind}, Failures, or Units of them"
    if not isinstance(made, Iterable):
        raise UserError(f"{name}: {wanted}; it returned {_shown(made)}")
    for output in made:
        fault = _unit_fault(output, kind) if isinstance(output, Unit) else _record_fault(output, kind)
        if fault:
            raise UserError(f"{name}: {wanted}; it yielded {fault}")
        yield output


def checked_records(apply: Callable[[], Any], name: str, kind: RecordKind) -> Iterator[Record]:
    """Yield the records from a step's `apply`; raises UserError for outputs that are not records of `kind`.

    If a step treats its iterator of records as a list, the error says what `apply` gets.
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


def checked_return(value: Any, wanted: type[T], name: str, function: str) -> T:  # noqa: ANN401 - anything
    """Return a plug-in's return value; raises UserError if it has another type than `wanted`."""
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


def _record_fault(record: Any, kind: RecordKind) -> str:  # noqa: ANN401 - a plug-in may yield anything
    """Return the fault of an output that must be a record of `kind` or a Failure; "" if it is valid."""
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
    """Run an evaluator's own check of the data set in `folder`, if it has one; once in a process.

    Raises UserError if the evaluator can't measure anything there.
    """
    if type(evaluator).check_data is not Evaluator.check_data:
        _check(evaluator, folder)


@cache
def _check(evaluator: Evaluator, folder: Path) -> None:
    evaluator.check_data(SyntheticDataset.read(folder))
