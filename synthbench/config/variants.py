"""Turns rows into variants: expands `select`, links trainings to first stages, drops equal variants."""

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from synthbench.base.errors import did_you_mean
from synthbench.config.coordinates import coordinates_of
from synthbench.config.documents import Document, expand_dotted, merge
from synthbench.config.experiment import Candidate, RunConfig, Start, Variant, configs_of
from synthbench.config.parts import ancestors_of
from synthbench.config.problems import Cursor, Problems
from synthbench.config.rows import MOST_ROWS, ExperimentRow, RowProblems
from synthbench.training.settings import TrainingSettings


def candidates_of(run: Cursor, most: int) -> Iterator[tuple[dict[str, Any], Document]]:
    """Yield each combination of `select` values with its run; without `select`, yield {} and the run.

    For more than `most` combinations, note a fault and yield none.
    """
    at = run["select"]["over"]
    over = at.mapping
    if not all(isinstance(values, list) and values for values in over.values()):
        over = {}
    known = [path for path in over if _is_path(run, path)]
    location = at.document.location(at.path)
    number = math.prod(len(over[path]) for path in known)
    if number > most:
        at.add(f"{number:,} combinations in each row; at most {MOST_ROWS:,} in all rows together are tried")
        return
    for values in itertools.product(*(over[path] for path in known)):
        chosen = dict(zip(known, values, strict=True))
        patch = expand_dotted(Document(chosen, {(): location, **{(path,): location for path in chosen}}))
        yield chosen, merge(run.document, patch)


def _is_path(run: Cursor, path: str) -> bool:
    """Return whether a path leads into one of the run's sections; note a fault if not."""
    section, *inner = path.split(".")
    if section == "evaluate":
        run["select"].add("ranges over data and train only, not over evaluate")
        return False
    named = ".".join((section, *inner[:1])) if section == "data" else section
    known = [*(f"data.{name}" for name in run["data"].mapping), "train"]
    is_whole_part = section == "data" and len(inner) == 1
    if inner and (named in known or is_whole_part):
        return True
    near = did_you_mean(named, [key for key in known if key != named])
    run["select"]["over"][path].add(f"'{path}' is no setting of this run{near}")
    return False


def check_candidates(at: Cursor, candidates: Sequence[Candidate]) -> None:
    """Require that all candidates of a row's `select` have the same dev data and audits."""
    first = candidates[0].config
    if first.selection is None:
        at.add("needs train.selection: candidates are compared on dev")
    if any(candidate.config.selection != first.selection for candidate in candidates):
        at.add("candidates must have the same train.selection")
    selecting = ancestors_of(first.selection.parts if first.selection else (), first.parts)
    audited = ancestors_of({part for audit in first.audits for part in audit.reads}, first.parts)
    for path in candidates[0].chosen:
        part = path.split(".")[1] if path.startswith("data.") else ""
        if part in selecting:
            message = f"changes part '{part}', whose dev split selects; candidates need the same dev data"
            at["over"][path].add(message)
        if part in audited:
            at["over"][path].add(
                f"changes part '{part}', which is audited; audit it in rows of one candidate"
            )


def with_starts(rows: Sequence[ExperimentRow], names: Sequence[str]) -> list[ExperimentRow]:
    """Return the rows of the named variants and of the variants these start from; without names all rows."""
    wanted, before = set(names), set[str]()
    while wanted != before:
        before = set(wanted)
        wanted |= {_named(row) for row in rows if row.name in wanted} - {""}
    return [row for row in rows if not names or row.name in wanted]


def _named(row: ExperimentRow) -> str:
    name = Cursor(row.document, Problems())["train"]["starts_from"].value
    return name if isinstance(name, str) else ""


def what_starts(variants: Sequence[Variant]) -> Iterator[str]:
    """Yield a note for each variant that starts from the trained model of a first variant.

    The note says that test sentences in the first variant's data are not counted for the other variant.
    """
    found = {
        (variant.name, candidate.config.starts_from)
        for variant in variants
        for candidate in variant.candidates
        if candidate.config.start is not None
    }
    for name, first in sorted(found):
        yield (
            f"{name} starts from the trained model of {first}; test sentences in the data of {first} are not"
            " counted as its own."
        )


class StartLinker:
    """Links each variant to the training that it starts from; notes faults at the variant's row."""

    def __init__(
        self, variants: Sequence[Variant], rows: Sequence[ExperimentRow], problems: RowProblems
    ) -> None:
        self._variants = {each.label: each for each in variants}
        self._rows = {row.label: row for row in rows}
        self._names = tuple(dict.fromkeys(row.name for row in rows))
        self._problems = problems

    def linked(self) -> list[Variant]:
        """Return the linked variants; faulty ones stay unchanged."""
        return [self._linked(variant, ()) for variant in self._variants.values()]

    def _linked(self, variant: Variant, behind: tuple[str, ...]) -> Variant:
        """Return a variant with linked candidates; `behind`: names of the variants that start from it."""
        chain = (*behind, variant.name)
        candidates = tuple(
            replace(each, config=self._started(variant, each.config, chain)) for each in variant.candidates
        )
        return replace(variant, candidates=candidates)

    def _started(self, variant: Variant, config: RunConfig, chain: tuple[str, ...]) -> RunConfig:
        name = config.starts_from
        if not name:
            return config
        if name in chain:
            # Each variant of a cycle notes its own fault.
            if name == chain[0]:
                self._add(variant, f"a circle: {' starts from '.join((*chain, name))}")
            return config
        if name not in self._names:
            self._add(variant, f"no variant is called '{name}'{did_you_mean(name, self._names)}")
            return config
        first = next(
            (each for each in self._variants.values() if (each.name, each.axes) == (name, variant.axes)), None
        )
        if first is None:
            # Its own faults are already noted.
            return config
        if len(chain) == 1 and (fault := _fault(config, first)):
            self._add(variant, fault)
        start = self._linked(first, chain)
        return replace(config, start=Start(start.label, start.candidates))

    def _add(self, variant: Variant, fault: str) -> None:
        row, problems = self._rows[variant.label], Problems()
        problems.add(row.document, ("train", "starts_from"), fault)
        self._problems.add(row, problems)


def _fault(config: RunConfig, first: Variant) -> str:
    """Return why a training can't start from a variant's model, "" if it can."""
    trainer = config.trainer
    if not isinstance(trainer, TrainingSettings):
        return f"trainer '{config.trainer_name}' starts from no trained model"
    if fault := trainer.why_no_start():
        return fault
    for candidate in first.candidates:
        other = candidate.config.trainer
        if not isinstance(other, TrainingSettings):
            return f"'{first.name}' trains no model"
        if other.model_kind is not trainer.model_kind:
            theirs = candidate.config.trainer_name
            return f"'{first.name}' trains a model of another kind (trainer '{theirs}')"
        if other.base != trainer.base:
            return f"train.base must be that of '{first.name}', whose model goes on"
    return ""


def without_equal(variants: Sequence[Variant], kept: Sequence[str]) -> tuple[list[Variant], list[str]]:
    """Drop variants that are equal to an earlier one; return the rest, with a note on each dropped one.

    A variant that is the same for all values of an axis loses the axis and moves behind the others. Axes in
    `kept` stay, since their values are columns or points of a curve.
    """
    groups: list[list[Variant]] = []
    for variant in variants:
        coordinates, own = coordinates_of(variant.axes, kept), list(configs_of([variant]))
        equals = (
            group
            for group in groups
            if coordinates_of(group[0].axes, kept) == coordinates and list(configs_of(group[:1])) == own
        )
        group = next(equals, None)
        if group is None:
            groups.append([variant])
        else:
            group.append(variant)
    notes: dict[str, None] = {}
    distinct = []
    for first, *others in groups:
        shared = _shared_axes([first, *(each for each in others if each.name == first.name)], variants)
        if shared:
            notes[f"{first.name} is the same for every {' and '.join(shared)}; it is shown once"] = None
            others = [each for each in others if each.name != first.name]
        notes |= {f"{each.label} is the same as {first.label}; it is shown once": None for each in others}
        axes = {axis: value for axis, value in first.axes.items() if axis not in shared}
        distinct.append(replace(first, axes=axes))
    num_axes = max((len(variant.axes) for variant in distinct), default=0)
    return sorted(distinct, key=lambda variant: len(variant.axes) < num_axes), list(notes)


def _shared_axes(equal: Sequence[Variant], variants: Sequence[Variant]) -> list[str]:
    """Return the axes in which `equal`, variants of one name, differ.

    Returns [] if another variant of this name, at other values of these axes, is not equal to them.
    """
    varying = [axis for axis in equal[0].axes if len({each.axes[axis] for each in equal}) > 1]
    fixed = {axis: value for axis, value in equal[0].axes.items() if axis not in varying}
    all_points = [
        each for each in variants if each.name == equal[0].name and fixed.items() <= each.axes.items()
    ]
    return varying if len(all_points) == len(equal) else []
