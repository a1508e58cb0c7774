"""What must be known beside comparisons with baselines."""

from collections.abc import Iterator, Sequence
from operator import attrgetter

from synthbench.reporting.model.table import MISSING
from synthbench.reporting.options import TableOptions
from synthbench.reporting.results import ExperimentResult
from synthbench.reporting.statistics.comparisons import ColumnComparisons, Comparison, compare

FILES = "comparisons.*"
WHOLE_SCALE = 1.0
"""A score is in [0, 1] if it is no correlation: a difference as large as that is none to look for."""


def comparison_notes(result: ExperimentResult) -> tuple[str, ...]:
    """Return what the comparisons mean, plain sentences in a fixed order."""
    columns = compare(result)
    comparisons = [each for column in columns for each in column.comparisons]
    seen = tuple(_least_detectable(result, columns))
    said = ("Seen: found at the 5 % level, not adjusted, in four experiments of five.",) if seen else ()
    return (*_meanings(comparisons), *_refused(columns), *seen, *said)


def least_detectable_notes(result: ExperimentResult) -> Iterator[str]:
    """Yield, for beside the table itself, what is too small to be seen and where rows are compared."""
    notes = tuple(_least_detectable(result, compare(result)))
    yield from notes[:-1]
    yield from (f"{note} ({FILES} has all comparisons with a baseline.)" for note in notes[-1:])


def _least_detectable(result: ExperimentResult, columns: Sequence[ColumnComparisons]) -> Iterator[str]:
    decimals = TableOptions.model_validate(result.table).decimals

    def texts(least: Sequence[float | None]) -> str:
        named = zip(columns, least, strict=True)
        return ", ".join(
            f"{100 * v:.{decimals}f} ({c.column.title})"
            for c, v in named
            if v is not None and v < WHOLE_SCALE
        )

    counts = sorted({n for column in columns for n in _seed_counts(column) if n > 1})
    with_these = f"With {' or '.join(map(str, counts))} seeds and this noise"
    if seeds := texts([column.least_over_seeds for column in columns]):
        items = texts([column.least_over_items for column in columns])
        also = (
            f"; under {items} if they are to hold for other test items, too"
            if items not in ("", seeds)
            else ""
        )
        yield f"{with_these}, differences under {seeds} points cannot be relied on to be seen{also}."
    over_seeds, over_items = (
        [c.column.title for c in columns if (least(c) or 0.0) >= WHOLE_SCALE]
        for least in (attrgetter("least_over_seeds"), attrgetter("least_over_items"))
    )
    if over_seeds:
        yield f"{with_these} no difference at all can be relied on to be seen on {', '.join(over_seeds)}."
    if only_items := [title for title in over_items if title not in over_seeds]:
        yield (
            f"{with_these} no difference at all can be relied on to be seen on {', '.join(only_items)} if it"
            " is to hold for other test items, too."
        )


def _seed_counts(column: ColumnComparisons) -> Iterator[int]:
    for each in column.comparisons:
        yield from (sample.num_seeds for sample in each.samples if sample.is_seeded)


def _meanings(comparisons: Sequence[Comparison]) -> Iterator[str]:
    known = [each for each in comparisons if each.over_seeds]
    unknown = "; ".join(dict.fromkeys(reason for each in comparisons if (reason := why_unknown(each))))
    if not any(each.over_seeds or each.over_items for each in comparisons):
        if unknown:
            yield f"No intervals and p values: {unknown}."
        return
    if known:
        kinds = {each.is_paired for each in known}
        tests = {True: "paired by seed", False: "Welch's, rows having other seeds or none that matters"}
        how = "; or ".join(tests[kind] for kind in sorted(kinds, reverse=True))
        yield f"seeds: holds for other seeds and these very test items. Student's t, {how}."
    if any(each.over_items for each in comparisons):
        yield (
            "seeds and items: holds for other seeds and other test items of the same kind. The items' share"
            " of the variance, crossed with the seeds', is added to theirs; items are taken as independent of"
            " each other, thresholds and classifiers as they were fitted."
        )
    yield "p: two-sided, adjusted by Holm for all comparisons of the column; the intervals are not adjusted."
    if any(each.effect_size is not None for each in comparisons):
        yield "g: Hedges' g, the difference in standard deviations between seeds."
    if unknown:
        yield f"{MISSING} Not known: {unknown}."


def why_unknown(comparison: Comparison) -> str:
    """Return why the noise of one kind, or of both, is not known; "" if it is, or nothing was compared."""
    seeded = [sample for sample in comparison.samples if sample.is_seeded]
    if comparison.refusal or (comparison.over_seeds and comparison.over_items):
        return ""
    if comparison.over_seeds:
        return "nobody tells what the test items do to a score"
    if not seeded:
        also = "" if comparison.over_items else ", and nobody tells what the test items do"
        return f"no seed changes these rows{also}"
    if any(sample.num_seeds < 2 for sample in seeded):
        return "a single seed tells nothing of the noise"
    return "differences that are equal for all seeds tell nothing of the noise"


def _refused(columns: Sequence[ColumnComparisons]) -> Iterator[str]:
    for column in columns:
        for each in column.comparisons:
            if each.refusal:
                yield f"{column.column.title}: {each.name}: {each.refusal}, so not compared."
