"""Training data on the page: origin, sample records, and several data sets side by side."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from synthbench.base.grouping import grouped
from synthbench.base.listing import listed
from synthbench.reporting.model.aggregate import row_of
from synthbench.reporting.model.aggregate import rows as rows_of
from synthbench.reporting.model.sections import Grid, Line
from synthbench.reporting.model.table import MISSING
from synthbench.reporting.results import (
    DataExcerpt,
    DatasetSummary,
    ExperimentResult,
    Overlap,
    RecordExcerpt,
    RunResult,
    SharedRecords,
)
from synthbench.reporting.trace import ingredient_text, shown_revisions

MAX_ROWS = 4
CHECKS = ("exact", "normalised", "13-gram", "near-duplicate")


@dataclass(frozen=True)
class ShownData:
    """One data set: title, size, properties (`facts`) as (name, value), key figures, and sample records."""

    title: str
    size: str
    facts: tuple[tuple[str, str], ...]
    figures: str
    records: tuple[RecordExcerpt, ...]


@dataclass(frozen=True)
class ShownSentence:
    """A sentence's records as a table: `header`, then a block per data set; equal sets share a block."""

    sentence: str
    header: Line
    blocks: tuple[tuple[Line, ...], ...]


def shown_data(result: ExperimentResult) -> tuple[ShownData, ...]:
    """Return the data sets of each row's first seed, each once, in the order of the rows."""
    titles, excerpts = _titles(result), {excerpt.stage: excerpt for excerpt in result.excerpts}
    return tuple(
        _shown(titles[stage], dataset, excerpts.get(stage)) for stage, dataset in _first(result).items()
    )


def shown_sentences(result: ExperimentResult) -> tuple[ShownSentence, ...]:
    """Return the sentences that several data sets share, with each data set's records for them."""
    titles = _titles(result)
    found = []
    for shared in result.side_by_side:
        records = [record for each in shared.found for record in each.records]
        names = list(dict.fromkeys(name for record in records for name, _ in record.texts[1:]))
        scores = ("score",) if any(record.score is not None for record in records) else ()
        blocks = tuple(tuple(_lines(each, titles, names, has_scores=bool(scores))) for each in shared.found)
        found.append(ShownSentence(shared.sentence, ("data", *scores, *names), blocks))
    return tuple(found)


def overlap_grids(result: ExperimentResult) -> Iterator[Grid]:
    """Yield counts of test items found in training data: one grid for all rows with equal counts.

    If seeds have different data, the seed with the largest normalised overlap is shown.
    """
    rows: dict[str, dict[str, Overlap]] = {}
    for run in result.runs:
        name = ", ".join((run.variant, *run.axes.values()))
        for overlap in run.overlaps:
            known = rows.setdefault(name, {}).get(overlap.task)
            if known is None or overlap.sharing["normalised"] > known.sharing["normalised"]:
                rows[name][overlap.task] = overlap
    groups = grouped((str(list(overlaps.values())), name) for name, overlaps in rows.items())
    for names in groups.values():
        title = "every row" if len(groups) == 1 else listed(names, MAX_ROWS)
        body = tuple(map(_overlap_line, rows[names[0]].values()))
        yield Grid(("test set", "items", *CHECKS, "whole item", "as a pair"), body, title=title)


def _first(result: ExperimentResult) -> dict[str, DatasetSummary]:
    """Return the data sets of each row's first seed, by stage."""
    return {data.stage: data for runs in rows_of(result).values() for data in runs[0].datasets}


def _titles(result: ExperimentResult) -> Mapping[str, str]:
    """Return each data set's title: the part's name, with rows and seeds unless all have the same data."""
    of_part: dict[str, list[RunResult]] = {}
    of_stage: dict[str, dict[str, list[RunResult]]] = {}
    for run in result.runs:
        for data in run.datasets:
            of_part.setdefault(data.part, []).append(run)
            of_stage.setdefault(data.stage, {}).setdefault(data.part, []).append(run)
    return {
        stage: ", ".join(part + _which(runs, of_part[part]) for part, runs in parts.items())
        for stage, parts in of_stage.items()
    }


def _which(runs: Sequence[RunResult], among: Sequence[RunResult]) -> str:
    """Return the variants, axis values and seeds that single out `runs` in `among`: " (kde; STSb-500)"."""

    def names(some: Sequence[RunResult], axis: str) -> list[str]:
        return list(dict.fromkeys(run.axes.get(axis, MISSING) if axis else run.variant for run in some))

    axes = dict.fromkeys(["", *(axis for run in among for axis in run.axes)])
    texts = [listed(names(runs, axis), MAX_ROWS) for axis in axes if names(runs, axis) != names(among, axis)]
    texts += _which_seeds(runs, among)
    return f" ({'; '.join(texts)})" if texts else ""


def _which_seeds(runs: Sequence[RunResult], among: Sequence[RunResult]) -> list[str]:
    """Return texts such as "seed 0 of 3" if these rows' data differ between seeds, else []."""

    def seeds_of(some: Sequence[RunResult]) -> list[int]:
        return sorted({run.seed for run in some if row_of(run) in rows})

    rows = {row_of(run) for run in runs}
    own, every = seeds_of(runs), seeds_of(among)
    if own == every:
        return []
    return [f"seed{'s' * (len(own) > 1)} {listed([str(seed) for seed in own], MAX_ROWS)} of {len(every)}"]


def _shown(title: str, data: DatasetSummary, excerpt: DataExcerpt | None) -> ShownData:
    dropped = _counts(tuple(data.dropped.items()))
    reasons, revisions = ((), ()) if excerpt is None else (excerpt.failures, excerpt.revisions)
    failures = f"{data.num_failures:,}" + (f" ({_counts(reasons)})" if reasons else "")
    facts = (
        ("kind", data.kind.replace("_", " ")),
        ("written by", data.method),
        ("trained on", "" if data.trained_on else "no, other parts are made from it"),
        ("LLM", data.llm),
        ("failures", failures if data.num_failures else ""),
        ("dropped", dropped),
        ("measured", ", ".join(f"{name} = {value:.4g}" for name, value in data.measured.items())),
        ("read", ", ".join(shown_revisions(revisions))),
        *(("made of", ingredient_text(ingredient)) for ingredient in data.made_of),
        ("content", data.content_hash[:16]),
        ("kept in", data.folder),
    )
    figures = ", ".join(
        f"{name.removeprefix('num_').replace('_', ' ')} = {_number(value)}"
        for name, value in data.figures.items()
        if name != "num_records"
    )
    records = () if excerpt is None else excerpt.records
    size = f"{data.num_records:,} records"
    return ShownData(title, size, tuple(fact for fact in facts if fact[1]), figures, records)


def _lines(
    found: SharedRecords, titles: Mapping[str, str], names: Sequence[str], *, has_scores: bool
) -> Iterator[Line]:
    label = "; ".join(titles.get(stage, stage[:8]) for stage in found.stages)
    more = found.num_records - len(found.records)
    for number, record in enumerate(found.records):
        texts = dict(record.texts)
        score = () if not has_scores else (MISSING if record.score is None else f"{record.score:.2f}",)
        yield (label if number == 0 else "", *score, *(texts.get(name, "") for name in names))
    if more > 0:
        yield ("", *(("",) if has_scores else ()), f"and {more:,} more", *("" for _ in names[1:]))


def _overlap_line(overlap: Overlap) -> Line:
    def share(number: int) -> str:
        return f"{number:,} ({number / overlap.num_items:.1%})" if overlap.num_items else str(number)

    shares = (share(overlap.sharing[check]) if check in overlap.sharing else MISSING for check in CHECKS)
    whole = share(overlap.whole.get("normalised", 0))
    return (overlap.task, f"{overlap.num_items:,} {overlap.items}", *shares, whole, share(overlap.as_pairs))


def _counts(counts: Sequence[tuple[str, int]]) -> str:
    return ", ".join(f"{number:,} × {reason}" for reason, number in counts if number)


def _number(value: float) -> str:
    return f"{value:,.0f}" if value.is_integer() and abs(value) >= 1 else f"{value:.3g}"
