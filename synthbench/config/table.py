"""Checks the names in the `table` section: test sets, averages, variants, published figures, plots."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from synthbench.base.user_files import RootedName, path_of
from synthbench.config.coordinates import Coordinates, column_names, coordinates_of
from synthbench.config.documents import Document
from synthbench.config.experiment import Variant
from synthbench.config.problems import Cursor
from synthbench.config.published_tables import PublishedValue, chosen_costs, chosen_values, read_published
from synthbench.config.rows import ExperimentRow
from synthbench.config.runs import named_tasks
from synthbench.config.table_options import (
    FEWEST_SEEDS,
    CurvesOptions,
    FiguresOptions,
    PublishedOptions,
    TableOptions,
)
from synthbench.sources.models import Source


def tasks_of(row: ExperimentRow) -> Iterator[str]:
    """Yield the test sources of a row."""
    return (task for _, task in named_tasks(row.document.mapping("evaluate")))


def _texts(value: object) -> tuple[str, ...]:
    listed = value if isinstance(value, list) else [value]
    return tuple(each for each in listed if isinstance(each, str))


class TableCheck:
    """Checks that the names in the table's options exist; notes every fault.

    Names of rows that an override such as `--variant` removed are allowed.
    """

    def __init__(self, file: Cursor, original: Document, rows: Sequence[ExperimentRow]) -> None:
        self.at = file["table"]
        self.tasks = dict.fromkeys(task for row in rows for task in tasks_of(row))
        self.across = _texts(self.at["across"].value)
        self.columns: dict[str, dict[str, None]] = {}
        """Possible name of a column -> its test sets."""
        for row in rows:
            for task in tasks_of(row):
                for name in column_names(coordinates_of(row.axes, self.across), task):
                    self.columns.setdefault(name, {})[task] = None
        self.variants = {row.name for row in rows} | original.mapping("variants").keys()
        baseline = original.data.get("baseline")
        self.baseline = baseline if isinstance(baseline, str) else None
        if self.baseline is not None:
            self.variants.add(self.baseline)
        self.sources = original.mapping("sources")
        self.axes = original.mapping("grid")
        self.values = {value for axis in self.axes.values() if isinstance(axis, dict) for value in axis}

    def names(self) -> None:
        """Check the names of test sets, averages and variants; skip values of a wrong type."""
        averages = self.at["averages"].mapping
        for name in averages:
            if name in self.columns:
                what = "a test set" if name in self.tasks else "a value of the grid"
                self.at["averages"][name].add(f"'{name}' is {what}; an average needs a name of its own")
            self._listed(self.at["averages"][name], "test set", self.columns)
        shown = {**self.columns, **averages}
        self._listed(self.at["columns"], "test set or average", shown)
        for axis in self.across:
            self.at["across"].is_known("axis of the grid", axis, self.axes)
        self._listed(self.at["ceiling"], "variant", self.variants)
        compared = self.at["compare_to"]
        if isinstance(compared.value, str):
            compared.is_known("variant", compared.value, self.variants)
        for name in compared.mapping:
            compared[name].is_known("variant", name, self.variants)
            self._listed(compared[name], "variant", self.variants)
            if name in _texts(compared[name].value):
                compared[name].add(f"'{name}' is compared with itself")
        chosen = _texts(self.at["columns"].value) if not self.across else ()
        self._listed(self.at["primary"], "column of the table", {*chosen, *averages} if chosen else shown)
        self._family()
        for key, what, known in (("shows", "row", self.variants), ("record_usd", "source", self.sources)):
            for name in self.at[key].mapping:
                self.at[key][name].is_known(what, name, known)
        score = self.at["figures"]["frontier"]["score"]
        if isinstance(score.value, str):
            score.is_known("test set or average", score.value, shown)

    def _family(self) -> None:
        """Note a fault unless `compare_to` has all comparisons that `family` names."""
        family, compared = self.at["family"], self._compared()
        if isinstance(family.value, str):
            self._is_baseline(family, family.value, compared)
        for baseline in family.mapping:
            if not self._is_baseline(family[baseline], baseline, compared):
                continue
            for index, name in enumerate(_texts(family[baseline].value)):
                self._is_compared(family[baseline][index], name, baseline, compared[baseline])

    def _compared(self) -> Mapping[str, Collection[str]]:
        """Return baseline -> the variants compared with it; () means all variants."""
        compared = self.at["compare_to"]
        if isinstance(compared.value, str):
            return {compared.value: ()}
        if compared.value is None:
            return {} if self.baseline is None else {self.baseline: ()}
        return {name: _texts(compared[name].value) for name in compared.mapping}

    def _is_baseline(self, at: Cursor, name: str, compared: Collection[str]) -> bool:
        if name in compared:
            return True
        if at.is_known("variant", name, self.variants):
            at.add(f"no row is compared with '{name}' (`table.compare_to`, `baseline`)")
        return False

    def _is_compared(self, at: Cursor, name: str, baseline: str, compared: Collection[str]) -> None:
        """Note a fault if `NAME` or `NAME [AXIS=VALUE, ...]` is not compared with the baseline."""
        variant, has_point, point = name.partition(" [")
        if not at.is_known("variant", variant, self.variants):
            return
        ceilings = _texts(self.at["ceiling"].value)
        if variant == baseline:
            at.add(f"'{variant}' is compared with itself")
        elif variant in ceilings or (compared and variant not in compared):
            at.add(f"'{variant}' is not compared with '{baseline}' (`table.compare_to`)")
        known = [
            f"{axis}={value}"
            for axis, values in self.axes.items()
            if axis not in self.across and isinstance(values, dict)
            for value in values
        ]
        for coordinate in point.removesuffix("]").split(", ") if has_point else ():
            at.is_known("value of the grid", coordinate, known)

    def main_scores(self, options: TableOptions, variants: Sequence[Variant]) -> None:
        """Note each column, average or frontier that would mix main scores (spearman_all, spearman_mean)."""
        scores: dict[tuple[Coordinates, str], dict[str, None]] = {}
        for variant in variants:
            coordinates = coordinates_of(variant.axes, options.across)
            for plan in variant.candidates[0].config.evaluations:
                for task in (*plan.tasks, *plan.if_found):
                    scores.setdefault((coordinates, task), {})[plan.evaluator.main_score] = None
        for (coordinates, task), found in scores.items():
            self._one_score(self.at["columns"], column_names(coordinates, task)[-1], found)
        for title, names in options.averages.items():
            over = [found for key, found in scores.items() if {*column_names(*key)} & {*names}]
            self._one_score(self.at["averages"][title], title, [score for found in over for score in found])
        if options.figures.frontier is not None:
            self._one_mean(options, options.figures.frontier.score, scores)

    def _one_mean(
        self,
        options: TableOptions,
        score: str | None,
        scores: Mapping[tuple[Coordinates, str], Iterable[str]],
    ) -> None:
        """Note a fault if the frontier would mix main scores; `main_scores` checks the averages itself."""
        if score in options.averages:
            return
        wanted = {score} if score else {*(options.columns or self.columns)}
        found = dict.fromkeys(s for key in scores if {*column_names(*key)} & wanted for s in scores[key])
        if len(found) > 1:
            what = f"a mean would mix {' and '.join(found)}; name one column or average as `score`"
            self.at["figures"]["frontier"].add(what)

    def _one_score(self, at: Cursor, title: str, scores: Iterable[str]) -> None:
        found = dict.fromkeys(scores)
        if len(found) > 1:
            at.add(f"column '{title}' would mix {' and '.join(found)}; give each its own column")

    def published(
        self, options: TableOptions, folder: Path, sources: Mapping[str, Source | None]
    ) -> tuple[PublishedValue, ...]:
        """Read the table's published figures and costs; note faults."""
        found: tuple[PublishedValue, ...] = ()
        if options.published is not None:
            with self.at["published"].noting():
                found = self._published(options, options.published, folder, sources)
        if options.costs is not None:
            with self.at["costs"].noting():
                file = path_of(RootedName(options.costs.file, folder))
                found = (*found, *chosen_costs(options.costs, read_published(file)))
        return found

    def _published(
        self,
        options: TableOptions,
        published: PublishedOptions,
        folder: Path,
        sources: Mapping[str, Source | None],
    ) -> tuple[PublishedValue, ...]:
        titles = [*(self.columns if self.across else options.columns or self.tasks), *options.averages]
        # Grid values that overrides removed are allowed, like variants.
        columns = [*titles, *(self.values if self.across else ())]
        for key, what, known in (
            ("rows", "variant", self.variants),
            ("encoders", "value of the grid", self.values),
            ("columns", "test set or average", columns),
        ):
            for name in getattr(published, key):
                self.at["published"][key][name].is_known(what, name, known)
        files = (path_of(RootedName(name, folder)) for name in published.file)
        values = chosen_values(published, [value for file in files for value in read_published(file)])
        self._splits(published, values, titles, sources)
        return values

    def _splits(
        self,
        published: PublishedOptions,
        values: Sequence[PublishedValue],
        titles: Sequence[str],
        sources: Mapping[str, Source | None],
    ) -> None:
        splits = {value.column: value.split for value in values}
        printed = {title: published.columns.get(title, title) for title in titles}
        if not splits.keys() & set(printed.values()):
            self.at["published"].add(f"{' and '.join(published.file)} has none of the table's columns")
        for title, column in printed.items():
            for task in self.columns.get(title, ()):
                split = getattr(sources.get(task), "final_split", None)
                if split is not None and splits.get(column, split) != split:
                    what = f"'{title}' is of the split {split}, published is {splits[column]}"
                    self.at["published"].add(what)

    def _listed(self, at: Cursor, what: str, known: Collection[str]) -> None:
        """Note each name of a list that is not in `known`; `what` says what the names are."""
        for index, name in enumerate(at.value if isinstance(at.value, list) else ()):
            if isinstance(name, str):
                at[index].is_known(what, name, known)


def check_figures(
    at: Cursor,
    options: FiguresOptions,
    original: Document,
    rows: Sequence[ExperimentRow],
    variants: Sequence[Variant],
) -> None:
    """Note why figures can't be drawn: unknown names, an axis without numbers, too few seeds."""
    parts = dict.fromkeys(name for row in rows for name in row.document.mapping("data"))
    if options.curves is not None:
        for name in options.curves.records:
            at["curves"]["records"].is_known("part of `data`", name, parts)
        _check_axis(at["curves"]["axis"], options.curves, original)
    if options.densities is not None:
        for name in options.densities.parts:
            at["densities"]["parts"].is_known("part of `data`", name, parts)
        if options.densities.reference:
            at["densities"]["reference"].is_known("part of `data`", options.densities.reference, parts)
    if options.early_dev:
        # Checks the file's own seeds; if overrides leave too few, the figure is skipped.
        seeds = original.data.get("seeds")
        _check_early_dev(at["early_dev"], len(seeds) if isinstance(seeds, list) else 1, variants)


def _check_axis(at: Cursor, options: CurvesOptions, original: Document) -> None:
    axis = options.axis
    if axis is None or not at.is_known("axis of the grid", axis, original.mapping("grid")):
        return
    for value in original.mapping("grid", axis) if not options.records else ():
        if not _is_amount(value):
            at.add(f"'{value}' is no amount; a curve needs numbers as values of its axis, or `records:`")


def _check_early_dev(at: Cursor, num_seeds: int, variants: Sequence[Variant]) -> None:
    if num_seeds < FEWEST_SEEDS:
        at.add(f"ranks seeds; needs at least {FEWEST_SEEDS}, there are {num_seeds}")
    configs = [variant.candidates[0].config for variant in variants]
    if configs and all(config.selection is None for config in configs):
        at.add("needs train.selection: without it nothing is scored on dev")
    elif configs and all(getattr(config.trainer, "evaluations", 2) == 1 for config in configs):
        at.add("needs train.evaluations: one dev score, in the end, is not early")


def _is_amount(name: str) -> bool:
    try:
        return 0 <= float(name) < float("inf")
    except ValueError:
        return False
