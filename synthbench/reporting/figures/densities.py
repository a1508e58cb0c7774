"""How the scores of training pairs are distributed: what each row trains on, against a reference."""

import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from synthbench.escaping import CsvWriter
from synthbench.reporting.model.grids import Grid
from synthbench.reporting.model.notes import data_notes
from synthbench.reporting.model.table import MISSING
from synthbench.reporting.options import TableOptions
from synthbench.reporting.results import ExperimentResult, RunResult
from synthbench.reporting.statistics import aggregate
from synthbench.reporting.statistics.histograms import BINS, coarse, divergence, levels

FIELDS = ("panel", "data", "n_records", "kl_nats", "bin_from", "bin_to", "count")


@dataclass(frozen=True)
class ScoreSet:
    """The scores of one data set, or of those that several seeds have, together."""

    label: str
    counts: tuple[int, ...]

    @property
    def num_records(self) -> int:
        """How many scores there are."""
        return sum(self.counts)


@dataclass(frozen=True)
class DensityPanel:
    """The data of the rows at one point of the grid, or of several points that share them."""

    title: str
    reference: ScoreSet | None
    sets: tuple[ScoreSet, ...]

    def divergence(self, of: ScoreSet) -> float | None:
        """Return a set's divergence from the reference, None without one."""
        return None if self.reference is None else divergence(of.counts, self.reference.counts)


@dataclass(frozen=True)
class Densities:
    """All panels, and what must be known beside them."""

    caption: str
    panels: tuple[DensityPanel, ...]
    notes: tuple[str, ...]

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of all sets that are compared, in order of first appearance."""
        return tuple(dict.fromkeys(each.label for panel in self.panels for each in panel.sets))


def densities(result: ExperimentResult) -> Densities | None:
    """Return what `table.figures.densities` asks for, None if it asks for nothing or no data were counted."""
    options = TableOptions.model_validate(result.table)
    wanted = options.figures.densities
    if wanted is None:
        return None
    points: dict[aggregate.Place, dict[str, tuple[RunResult, ...]]] = {}
    for key, runs in aggregate.rows(result).items():
        points.setdefault(key.axes, {})[key.variant] = runs
    titles: dict[tuple[ScoreSet | None, tuple[ScoreSet, ...]], list[str]] = {}
    for place, rows in points.items():
        everyone = [run for runs in rows.values() for run in runs]
        reference = _together(wanted.reference, everyone, wanted.reference) if wanted.reference else None
        sets = tuple(_sets(rows, wanted.parts))
        if sets:
            title = ", ".join(value for _, value in place)
            titles.setdefault((reference, sets), []).append(title)
    panels = tuple(
        DensityPanel("" if len(titles) == 1 else ", ".join(of), *content) for content, of in titles.items()
    )
    caption = f"How the scores of training pairs are distributed: {result.description or result.experiment}"
    return Densities(caption, panels, data_notes(result)) if panels else None


def _sets(rows: Mapping[str, Sequence[RunResult]], parts: Sequence[str]) -> Iterator[ScoreSet]:
    """Yield each row's data, those that several rows share once and called after all of them."""
    labels: dict[tuple[int, ...], list[str]] = {}
    for variant, runs in rows.items():
        for part in parts:
            label = variant if len(parts) == 1 else f"{variant}: {part}"
            found = _together(part, runs, label)
            if found is not None:
                labels.setdefault(found.counts, []).append(label)
    return (ScoreSet(", ".join(names), counts) for counts, names in labels.items())


def _together(part: str, runs: Sequence[RunResult], label: str) -> ScoreSet | None:
    """Return all scores of a part, data that several runs share counted once; None if there are none."""
    distinct = {
        data.content_hash: data.score_counts
        for run in runs
        for data in run.datasets
        if data.part == part and data.score_counts
    }
    counts = tuple(sum(column) for column in zip(*distinct.values(), strict=True))
    return ScoreSet(label, counts) if sum(counts) else None


def density_grid(found: Densities) -> Grid:
    """Return a line for each set: records, mean score, divergence from the reference."""
    lines: list[tuple[str, ...]] = []
    for panel in found.panels:
        for each in (*([panel.reference] if panel.reference else []), *panel.sets):
            name = f"{panel.title}: {each.label}" if panel.title else each.label
            lines.append((name, f"{each.num_records:,}", _text(panel, each)))
    reference = next((panel.reference.label for panel in found.panels if panel.reference), "")
    header: tuple[str, ...] = ("scores of", "records", f"KL from {reference}")
    shown = slice(None if reference else -1)
    return Grid(found.caption, header[shown], tuple(line[shown] for line in lines))


def grid_notes(found: Densities) -> tuple[str, ...]:
    """Return what stands below the grid."""
    return (*_divergence_notes(found), *found.notes)


def _divergence_notes(found: Densities) -> list[str]:
    """Say over which bins divergences are, and of which panels over another number of them."""
    titles: dict[int, list[str]] = {}
    for panel in found.panels:
        if panel.reference:
            titles.setdefault(len(levels(panel.reference.counts)), []).append(panel.title or "here")
    if not titles:
        return []
    others = [f"{', '.join(of)} {num}" for num, of in titles.items() if num]
    classes = f" ({'; '.join(others)}: one for each score that the reference has)" if others else ""
    bins = f"over {BINS} bins{classes} with half a count added to each of the reference's"
    return [f"KL: Kullback-Leibler divergence in nats, {bins}."]


def _text(panel: DensityPanel, of: ScoreSet) -> str:
    value = None if of is panel.reference else panel.divergence(of)
    return MISSING if value is None else f"{value:.3f}"


def csv_densities(found: Densities) -> str:
    """Return a line for each set and each of the bins."""
    text = io.StringIO()
    writer = CsvWriter(text)
    writer.writerow(FIELDS)
    for panel in found.panels:
        for each in (*([panel.reference] if panel.reference else []), *panel.sets):
            value = None if each is panel.reference else panel.divergence(each)
            distance = "" if value is None else f"{value:.6f}"
            of_set = [panel.title, each.label, each.num_records, distance]
            for number, count in enumerate(coarse(each.counts)):
                writer.writerow([*of_set, f"{number / BINS:.2f}", f"{(number + 1) / BINS:.2f}", count])
    return text.getvalue()
