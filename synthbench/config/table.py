"""What the `table` section names: test sets, averages, variants, and a paper's figures."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

from synthbench.config.documents import Document
from synthbench.config.experiment import Variant
from synthbench.config.problems import Problems
from synthbench.config.rows import Row
from synthbench.config.runs import named_tasks
from synthbench.errors import UserError, did_you_mean
from synthbench.reporting.options import PublishedOptions, TableOptions
from synthbench.reporting.published import PublishedValue, chosen_costs, chosen_values, read_published
from synthbench.sources.models import Source


def tasks_of(row: Row) -> Iterator[str]:
    """Yield the test sources of a row."""
    evaluate = row.document.data.get("evaluate")
    for _, task in named_tasks(evaluate if isinstance(evaluate, dict) else {}):
        yield task


class TableCheck:
    """Requires that the table names what there is; notes every fault.

    Rows that are taken away from outside may stay in the table's options, as with `--variant`.
    """

    def __init__(
        self, document: Document, original: Document, rows: Sequence[Row], problems: Problems
    ) -> None:
        self.document = document
        self.problems = problems
        self.table = document.section("table")
        self.tasks = dict.fromkeys(task for row in rows for task in tasks_of(row))
        self.variants = {row.name for row in rows} | set(original.section("variants").data)
        axes = original.section("grid").data.values()
        self.values = {value for axis in axes if isinstance(axis, dict) for value in axis}

    def names(self) -> None:
        """Look at the names of test sets, averages and variants, as far as they are readable."""
        averages = self.table.data.get("averages")
        averages = averages if isinstance(averages, dict) else {}
        for name in averages:
            if name in self.tasks:
                self._add(("averages", name), f"'{name}' is a test set; an average needs a name of its own")
            self._names(("averages", name), "test set", self.tasks, averages[name])
        self._names(
            ("columns",), "test set or average", {**self.tasks, **averages}, self.table.data.get("columns")
        )
        self._names(("ceiling",), "variant", self.variants, self.table.data.get("ceiling"))

    def main_scores(self, options: TableOptions, variants: Sequence[Variant]) -> None:
        """Require one main score for each column, averages included: "all" and "mean" are not mixed."""
        scores: dict[str, dict[str, None]] = {}
        for variant in variants:
            for plan in variant.candidates[0].config.evaluations:
                for task in (*plan.tasks, *plan.if_found):
                    scores.setdefault(task, {})[plan.evaluator.main_score] = None
        shown = {task: (task,) for task in scores} | dict(options.averages)
        for title, tasks in shown.items():
            found = dict.fromkeys(score for task in tasks for score in scores.get(task, ()))
            if len(found) > 1:
                path = ("averages", title) if title in options.averages else ("columns",)
                self._add(path, f"column '{title}' would mix {' and '.join(found)}; give each its own column")

    def published(
        self, options: TableOptions, folder: Path, sources: Mapping[str, Source | None]
    ) -> tuple[PublishedValue, ...]:
        """Read the published figures that the table shows; () with the fault noted if they can't be had."""
        published = options.published
        if published is None:
            return ()
        titles = [*(options.columns or self.tasks), *options.averages]
        self._names(("published", "rows"), "variant", self.variants, list(published.rows))
        self._names(("published", "encoders"), "value of the grid", self.values, list(published.encoders))
        self._names(("published", "columns"), "test set or average", titles, list(published.columns))
        try:
            values = chosen_values(published, read_published(folder / Path(published.file).expanduser()))
        except UserError as error:
            self.problems.add_error(self.document, ("table", "published"), error)
            return ()
        self._splits(published, values, titles, sources)
        return values

    def published_costs(self, options: TableOptions, folder: Path) -> tuple[PublishedValue, ...]:
        """Read the published costs beside ours; () with the fault noted if they can't be had."""
        if options.costs is None:
            return ()
        try:
            return chosen_costs(options.costs, read_published(folder / Path(options.costs.file).expanduser()))
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
            self._add(("published",), f"{published.file} has none of the table's columns")
        for title, column in printed.items():
            split = getattr(sources.get(title), "final_split", None)
            if split is not None and splits.get(column, split) != split:
                self._add(("published",), f"'{title}' is of the split {split}, published is {splits[column]}")

    def _names(self, path: tuple[str, ...], what: str, known: Collection[str], listed: object) -> None:
        for index, name in enumerate(listed if isinstance(listed, list) else ()):
            if isinstance(name, str) and name not in known:
                key: tuple[str | int, ...] = (*path, name if path[0] == "published" else index)
                self._add(key, f"no {what} is called '{name}'{did_you_mean(name, known)}")

    def _add(self, path: tuple[str | int, ...], message: str) -> None:
        self.problems.add(self.document, ("table", *path), message)
