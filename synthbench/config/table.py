"""Check what the `table` section names: test sets, averages, variants, published figures, figures to draw."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from synthbench.base.errors import UserError, did_you_mean
from synthbench.base.user_files import RootedName, path_of
from synthbench.config.coordinates import Coordinates, column_names, coordinates_of
from synthbench.config.documents import Document, KeyPath
from synthbench.config.experiment import Variant
from synthbench.config.problems import Problems
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
    evaluate = row.document.data.get("evaluate")
    for _, task in named_tasks(evaluate if isinstance(evaluate, dict) else {}):
        yield task


def _texts(value: object) -> tuple[str, ...]:
    listed = value if isinstance(value, list) else [value]
    return tuple(each for each in listed if isinstance(each, str))


class TableCheck:
    """Requires that the table names what there is; notes every fault.

    Rows that are taken away from outside may stay in the table's options, as with `--variant`.
    """

    def __init__(
        self, document: Document, original: Document, rows: Sequence[ExperimentRow], problems: Problems
    ) -> None:
        self.document = document
        self.problems = problems
        self.table = document.section("table")
        self.tasks = dict.fromkeys(task for row in rows for task in tasks_of(row))
        self.across = _texts(self.table.data.get("across"))
        self.columns: dict[str, dict[str, None]] = {}
        """What a column may be called -> its test sets."""
        for row in rows:
            for task in tasks_of(row):
                for name in column_names(coordinates_of(row.axes, self.across), task):
                    self.columns.setdefault(name, {})[task] = None
        self.variants = {row.name for row in rows} | set(original.section("variants").data)
        if isinstance(baseline := original.data.get("baseline"), str):
            self.variants.add(baseline)
        self.sources = original.section("sources").data
        self.axes = original.section("grid").data
        self.values = {value for axis in self.axes.values() if isinstance(axis, dict) for value in axis}

    def names(self) -> None:
        """Look at the names of test sets, averages and variants, as far as they are readable."""
        averages = self.table.data.get("averages")
        averages = averages if isinstance(averages, dict) else {}
        for name in averages:
            if name in self.columns:
                what = "a test set" if name in self.tasks else "a value of the grid"
                self._add(("averages", name), f"'{name}' is {what}; an average needs a name of its own")
            self._names(("averages", name), "test set", self.columns, averages[name])
        self._names(
            ("columns",), "test set or average", {**self.columns, **averages}, self.table.data.get("columns")
        )
        for axis in self.across:
            if axis not in self.axes:
                self._add(
                    ("across",), f"no axis of the grid is called '{axis}'{did_you_mean(axis, self.axes)}"
                )
        self._names(("ceiling",), "variant", self.variants, self.table.data.get("ceiling"))
        self._compared(self.table.data.get("compare_to"))
        shows = self.table.data.get("shows")
        for name in shows if isinstance(shows, dict) else ():
            if name not in self.variants:
                self._add(("shows", name), f"no row is called '{name}'{self._near(name)}")
        prices = self.table.data.get("record_usd")
        for name in prices if isinstance(prices, dict) else ():
            if name not in self.sources:
                self._add(
                    ("record_usd", name), f"no source is called '{name}'{did_you_mean(name, self.sources)}"
                )
        figures = self.table.data.get("figures")
        bought = figures.get("frontier") if isinstance(figures, dict) else None
        score = bought.get("score") if isinstance(bought, dict) else None
        if isinstance(score, str) and score not in (known := {**self.columns, **averages}):
            what = f"no test set or average is called '{score}'{did_you_mean(score, known)}"
            self._add(("figures", "frontier", "score"), what)

    def _compared(self, baselines: object) -> None:
        """Look at the names of `compare_to`: a baseline, or several with the rows compared with each."""
        if isinstance(baselines, str) and baselines not in self.variants:
            self._add(("compare_to",), f"no variant is called '{baselines}'{self._near(baselines)}")
        for name, rows in baselines.items() if isinstance(baselines, dict) else ():
            if name not in self.variants:
                self._add(("compare_to", name), f"no variant is called '{name}'{self._near(name)}")
            self._names(("compare_to", name), "variant", self.variants, rows)

    def _near(self, name: str) -> str:
        return did_you_mean(name, self.variants)

    def main_scores(self, options: TableOptions, variants: Sequence[Variant]) -> None:
        """Require one main score for each column, averages included: "all" and "mean" are not mixed."""
        scores: dict[tuple[Coordinates, str], dict[str, None]] = {}
        for variant in variants:
            coordinates = coordinates_of(variant.axes, options.across)
            for plan in variant.candidates[0].config.evaluations:
                for task in (*plan.tasks, *plan.if_found):
                    scores.setdefault((coordinates, task), {})[plan.evaluator.main_score] = None
        for (coordinates, task), found in scores.items():
            self._one_score(("columns",), column_names(coordinates, task)[-1], found)
        for title, names in options.averages.items():
            over = [found for key, found in scores.items() if {*column_names(*key)} & {*names}]
            self._one_score(("averages", title), title, [score for found in over for score in found])
        if options.figures.frontier is not None:
            self._one_mean(options, options.figures.frontier.score, scores)

    def _one_mean(
        self,
        options: TableOptions,
        score: str | None,
        scores: Mapping[tuple[Coordinates, str], Iterable[str]],
    ) -> None:
        """Require one main score for what the frontier shows; averages are looked at by themselves."""
        if score in options.averages:
            return
        wanted = {score} if score else {*(options.columns or self.columns)}
        found = dict.fromkeys(s for key in scores if {*column_names(*key)} & wanted for s in scores[key])
        if len(found) > 1:
            what = f"a mean would mix {' and '.join(found)}; name one column or average as `score`"
            self._add(("figures", "frontier"), what)

    def _one_score(self, path: tuple[str, ...], title: str, scores: Iterable[str]) -> None:
        found = dict.fromkeys(scores)
        if len(found) > 1:
            self._add(path, f"column '{title}' would mix {' and '.join(found)}; give each its own column")

    def published(
        self, options: TableOptions, folder: Path, sources: Mapping[str, Source | None]
    ) -> tuple[PublishedValue, ...]:
        """Read the published figures that the table shows; () with the fault noted if they can't be read."""
        published = options.published
        if published is None:
            return ()
        columns = self.columns if self.across else options.columns or self.tasks
        titles = [*columns, *options.averages]
        self._names(("published", "rows"), "variant", self.variants, list(published.rows))
        self._names(("published", "encoders"), "value of the grid", self.values, list(published.encoders))
        # A value of the grid that is taken away from outside may stay there, as a variant may.
        known = [*titles, *(self.values if self.across else ())]
        self._names(("published", "columns"), "test set or average", known, list(published.columns))
        try:
            files = (path_of(RootedName(name, folder)) for name in published.file)
            read = [value for file in files for value in read_published(file)]
            values = chosen_values(published, read)
        except UserError as error:
            self.problems.add_error(self.document, ("table", "published"), error)
            return ()
        self._splits(published, values, titles, sources)
        return values

    def published_costs(self, options: TableOptions, folder: Path) -> tuple[PublishedValue, ...]:
        """Read the published costs beside ours; () with the fault noted if they can't be read."""
        if options.costs is None:
            return ()
        try:
            return chosen_costs(
                options.costs, read_published(path_of(RootedName(options.costs.file, folder)))
            )
        except UserError as error:
            self.problems.add_error(self.document, ("table", "costs"), error)
            return ()

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
            self._add(("published",), f"{' and '.join(published.file)} has none of the table's columns")
        for title, column in printed.items():
            for task in self.columns.get(title, ()):
                split = getattr(sources.get(task), "final_split", None)
                if split is not None and splits.get(column, split) != split:
                    what = f"'{title}' is of the split {split}, published is {splits[column]}"
                    self._add(("published",), what)

    def _names(self, path: tuple[str, ...], what: str, known: Collection[str], listed: object) -> None:
        for index, name in enumerate(listed if isinstance(listed, list) else ()):
            if isinstance(name, str) and name not in known:
                key: tuple[str | int, ...] = (*path, name if path[0] == "published" else index)
                self._add(key, f"no {what} is called '{name}'{did_you_mean(name, known)}")

    def _add(self, path: tuple[str | int, ...], message: str) -> None:
        self.problems.add(self.document, ("table", *path), message)


PATH: KeyPath = ("table", "figures")


class FiguresCheck:
    """Requires that figures can be drawn; notes every fault."""

    def __init__(
        self, document: Document, original: Document, rows: Sequence[ExperimentRow], problems: Problems
    ) -> None:
        self.document = document
        self.problems = problems
        self.grid = original.section("grid").data
        seeds = original.data.get("seeds")
        self.num_seeds = len(seeds) if isinstance(seeds, list) else 1
        """The file's own; from outside it may be fewer, and then there is no figure."""
        parts = (row.document.data.get("data") for row in rows)
        self.parts = dict.fromkeys(name for of_row in parts if isinstance(of_row, dict) for name in of_row)

    def check(self, options: FiguresOptions, variants: Sequence[Variant]) -> None:
        """Look at what each figure names and takes."""
        if options.curves is not None:
            self._curves(options.curves)
        if options.densities is not None:
            named = options.densities
            self._known(("densities", "parts"), "part of `data`", self.parts, named.parts)
            reference = [named.reference] if named.reference else []
            self._known(("densities", "reference"), "part of `data`", self.parts, reference)
        if options.early_dev:
            self._early_dev(variants)

    def _curves(self, options: CurvesOptions) -> None:
        self._known(("curves", "records"), "part of `data`", self.parts, options.records)
        if options.axis is None:
            return
        self._known(("curves", "axis"), "axis of the grid", self.grid, [options.axis])
        values: Any = self.grid.get(options.axis)
        for value in values if isinstance(values, Mapping) and not options.records else ():
            if not _is_amount(value):
                message = (
                    f"'{value}' is no amount; a curve needs numbers as values of its axis, or `records:`"
                )
                self._add(("curves", "axis"), message)

    def _early_dev(self, variants: Sequence[Variant]) -> None:
        if self.num_seeds < FEWEST_SEEDS:
            self._add(
                ("early_dev",), f"ranks seeds, of which there are {self.num_seeds}; needs {FEWEST_SEEDS}"
            )
        configs = [variant.candidates[0].config for variant in variants]
        if configs and all(config.selection is None for config in configs):
            self._add(("early_dev",), "needs train.selection: without it nothing is scored on dev")
        elif configs and all(getattr(config.trainer, "evaluations", 2) == 1 for config in configs):
            self._add(("early_dev",), "needs train.evaluations: one dev score, in the end, is not early")

    def _known(self, path: KeyPath, what: str, known: Collection[str], names: Iterable[str]) -> None:
        for name in names:
            if name not in known:
                self._add(path, f"no {what} is called '{name}'{did_you_mean(name, known)}")

    def _add(self, path: KeyPath, message: str) -> None:
        self.problems.add(self.document, (*PATH, *path), message)


def _is_amount(name: str) -> bool:
    try:
        return 0 <= float(name) < float("inf")
    except ValueError:
        return False
