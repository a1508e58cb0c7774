"""The rows of an experiment: its variants crossed with its grid, each with its merged run document."""

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from synthbench.base.errors import UserError
from synthbench.base.listing import listed
from synthbench.config.coordinates import row_at
from synthbench.config.documents import (
    COMPONENT_KEYS,
    Document,
    KeyPath,
    expand_dotted,
    is_another_component,
    merge,
    texts_in,
    without_nulls,
)
from synthbench.config.problems import Cursor, Fault, Problems
from synthbench.config.schema import EvaluateSection, RunSection
from synthbench.plugins.loading import component
from synthbench.plugins.task_providers import TaskProvider


def without_aliases(document: Document) -> Document:
    """Return a run with each alias replaced by its source, at the alias's location.

    A malformed run is returned unchanged; the schema reports it.
    """
    aliases = document.mapping("aliases")
    found = document
    for path, name in texts_in(document.data) if aliases else ():
        if _names_a_source(path) and isinstance(aliases.get(name), str):
            found = found.replaced(path, aliases[name], {path: document.location(("aliases", name))})
    return found


def _names_a_source(path: KeyPath) -> bool:
    """Return whether this path of a run holds a source's name; covers nested settings of prepare steps."""
    match path:
        case ("data", _, "source") | ("data", _, "sources", _) | ("train", "selection", "sources", int()):
            return True
        case ("evaluate", _, "tasks" | "if_found" | "exclude" | "train" | "dev", int()):
            return True
        case ("data", _, "prepare", int(), *outer, "sources", _):
            pass
        case ("data", _, "prepare", int(), *outer, "source"):
            pass
        case _:
            return False
    return all(isinstance(key, str) and key not in ("source", "sources") for key in outer)


Patches = Sequence[Document]

PATCHES_NOTHING = "patches nothing: every value is the defaults' own (name that row with `baseline:` instead)"
OF_VARIANTS = "variants"
"""The key under which an axis value patches single variants, after their own patches."""
ALL = "all"
"""In an evaluation's `tasks`: all tasks of the TaskProvider."""
MOST_ROWS = 1_000
"""Maximum number of rows, counting each candidate; validating more would take minutes."""
_NAMED = 3
"""Maximum number of rows that a message names; it counts the rest."""


@dataclass(frozen=True)
class ExperimentRow:
    """A variant at one point of the grid: its merged run, aliases replaced, `select` not yet expanded."""

    name: str
    axes: Mapping[str, str]
    document: Document
    lost: tuple[str, ...] = ()
    """Messages on prepare steps that patches dropped silently."""

    @property
    def label(self) -> str:
        """The variant's name with its axis values."""
        return row_at(self.name, self.axes).label


def rows_of(document: Document, patches: Patches, problems: Problems) -> list[ExperimentRow]:
    """Return every row of a file; `patches`, whose dotted keys must be expanded, are merged into each.

    Malformed sections are skipped; the schema reports them. `problems` gets a fault for a variant that
    patches nothing, a value given twice, a baseline with a variant's name, and more than `MOST_ROWS` rows.
    """
    data = document.data
    if not all(isinstance(data.get(key, {}), dict) for key in ("sources", "defaults", "grid", "variants")):
        return []
    twice: list[str] = []
    expanded = expand_dotted(document.section("defaults"), twice)
    defaults = replace(expanded, data=without_nulls(expanded.data))
    variants = _variants(document, twice, problems)
    idle = {name for name, patch in variants if patch.data}
    rows: list[ExperimentRow] = []
    axes = _axes(document)
    num_rows = math.prod(map(len, axes)) * len(variants)
    if num_rows > MOST_ROWS:
        many = f"{num_rows:,} rows, variants crossed with the grid; at most {MOST_ROWS:,} are compared"
        problems.add(document, ("grid",), many)
        return []
    for combination in itertools.product(*axes):
        values = [_value(document, axis, value) for axis, value in combination]
        crossed = defaults
        for value, _ in values:
            crossed = merge(crossed, expand_dotted(value, twice))
        for name, patch in variants:
            if merge(crossed, patch).data != crossed.data:
                idle.discard(name)
            own = [expand_dotted(of_variants.section(name), twice) for _, of_variants in values]
            merged, lost = crossed, list[str]()
            for each in (patch, *own, *patches):
                lost += _lost(merged, each)
                merged = merge(merged, each)
            rows.append(ExperimentRow(name, dict(combination), without_aliases(merged), tuple(lost)))
    for name in (name for name, _ in variants if name in idle and rows):
        problems.add(document, ("variants", name), PATCHES_NOTHING)
    problems.note(*(Fault("", "", message) for message in twice))
    return rows


def _lost(under: Document, over: Document) -> Iterator[str]:
    """Yield a message on each part that loses its prepare steps because a patch replaces the part."""
    for name, part in under.mapping("data").items():
        patch = over.mapping("data", name)
        is_lost = isinstance(part, dict) and part.get("prepare") and "prepare" not in patch
        if is_lost and is_another_component(part, patch):
            named = next(key for key in COMPONENT_KEYS if key in patch and part.get(key) != patch[key])
            yield (
                f"{over.location(('data', name, named))}: data.{name}: `{named}: {patch[named]}` begins the"
                f" part anew, without its prepare steps; give them again, or write `data.{name}.prepare: []`"
            )


def _axes(document: Document) -> list[list[tuple[str, str]]]:
    """Return (axis, value) for each readable value, one list per axis; an empty list leaves no rows."""
    return [
        [(axis, value) for value, patch in document.mapping("grid", axis).items() if isinstance(patch, dict)]
        for axis in document.mapping("grid")
    ]


def _value(document: Document, axis: str, value: str) -> tuple[Document, Document]:
    """Split an axis value's patch into one patch for all rows, and a mapping from variants to patches."""
    patch = document.section("grid", axis, value)
    shared = {key: each for key, each in patch.data.items() if key != OF_VARIANTS}
    of_variants = patch.section(OF_VARIANTS)
    patches = {name: each for name, each in of_variants.data.items() if isinstance(each, dict)}
    return replace(patch, data=shared), replace(of_variants, data=patches)


def check_values(file: Cursor, original: Document) -> None:
    """Note a fault if an axis value patches a variant that `original`, the file without overrides, lacks."""
    baseline = original.data.get("baseline")
    known = {*original.mapping("variants"), *([baseline] if isinstance(baseline, str) else [])}
    values = (value for _, axis in file["grid"].sections for _, value in axis.sections)
    for at in (value[OF_VARIANTS] for value in values if OF_VARIANTS in value.mapping):
        if not isinstance(at.value, dict):
            at.add("must be a mapping: variant -> patch")
        for name, patch in at.mapping.items():
            if at[name].is_known("variant", name, known) and not isinstance(patch, dict):
                at[name].add("must be a patch, a mapping")


def _variants(document: Document, twice: list[str], problems: Problems) -> list[tuple[str, Document]]:
    """Return the readable variants with their patches; the baseline has an empty patch."""
    variants, baseline = document.data.get("variants", {}), document.data.get("baseline")
    patches: list[tuple[str, Document]] = []
    if isinstance(baseline, str) and baseline in variants:
        message = f"'{baseline}' is a variant; the row of the unpatched defaults needs a name of its own"
        problems.add(document, ("baseline",), message)
    elif isinstance(baseline, str):
        patches.append((baseline, Document({})))
    elif not variants:
        patches.append((str(document.data.get("experiment", "")), Document({})))
    for name, patch in variants.items():
        if not patch and (patch is None or isinstance(patch, dict)):
            problems.add(document, ("variants", name), PATCHES_NOTHING)
        elif isinstance(patch, dict):
            patches.append((name, expand_dotted(document.section("variants", name), twice)))
    return patches


class RowProblems:
    """Collects faults of merged rows, each once.

    If only some of the rows that contain a line have a fault there, the message names these rows.
    """

    def __init__(self, rows: Sequence[ExperimentRow]) -> None:
        self.rows = rows
        self.found: dict[Fault, dict[str, None]] = {}

    def add(self, row: ExperimentRow, problems: Problems) -> None:
        """Note the faults found in a row."""
        for fault in problems.faults:
            self.found.setdefault(fault, {})[row.label] = None

    def faults(self) -> Iterator[Fault]:
        """Yield each fault once."""
        with_text: dict[str, set[str]] = {}
        for row in self.rows:
            for location in row.document.locations.values():
                with_text.setdefault(location, set()).add(row.label)
        for fault, labels in self.found.items():
            if labels.keys() >= with_text.get(fault.location, set()):
                yield fault
            else:
                words = f"in {self._shown(labels)}{_remedy(fault)}"
                yield Fault(fault.location, fault.key, f"{fault.what} ({words})")

    def _shown(self, labels: Mapping[str, Any]) -> str:
        """Name rows briefly: by the variant alone if all rows of the variant are meant."""
        names: dict[str, None] = {}
        for row in self.rows:
            mates = [other.label for other in self.rows if other.name == row.name]
            if row.label in labels:
                names[row.name if all(mate in labels for mate in mates) else row.label] = None
        return listed(names, _NAMED)


def _remedy(fault: Fault) -> str:
    """Return how to limit a `--set` to the rows for which it is valid; "" for faults of other origin."""
    change = fault.location.removeprefix("--set ")
    section = change.partition(".")[0]
    if change == fault.location or section not in RunSection.model_fields:
        return ""
    where = "defaults" if section == "train" else "variants.NAME"
    return f"; to spare them: --set {where}.{change}, or --variant"


def with_names(rows: Sequence[ExperimentRow], folder: Path) -> list[ExperimentRow]:
    """Return the rows with `tasks: [all]` replaced by the task names; faulty sections stay unchanged."""
    return [replace(row, document=_spelt_out(row.document, folder)) for row in rows]


def _spelt_out(document: Document, folder: Path) -> Document:
    for name, raw in document.mapping("evaluate").items():
        if tasks := _tasks(raw, folder):
            document = document.replaced(("evaluate", name), {**raw, "tasks": tasks})
    return document


def _tasks(raw: Any, folder: Path) -> list[str]:  # noqa: ANN401 - whatever the file holds
    """Return all tasks for a section with `tasks: [all]`; [] for other or unreadable sections."""
    if not isinstance(raw, dict) or raw.get("tasks") != [ALL] or not isinstance(raw.get("evaluator"), str):
        return []
    settings = {key: value for key, value in raw.items() if key not in EvaluateSection.model_fields}
    try:
        plugin = component("evaluators", raw["evaluator"], folder)
        if not issubclass(plugin, TaskProvider):
            return []
        provider = Cursor(Document(settings), Problems(folder)).parse(plugin)
        return [] if provider is None else list(provider.names())
    except UserError:
        return []
