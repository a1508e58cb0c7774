"""What `table.figures` names: an axis of amounts, parts of the data; and what its figures take."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from synthbench.config.documents import Document, KeyPath
from synthbench.config.experiment import Variant
from synthbench.config.problems import Problems
from synthbench.config.rows import Row
from synthbench.errors import did_you_mean
from synthbench.reporting.figures.early_dev import FEWEST_SEEDS
from synthbench.reporting.options import CurvesOptions, FiguresOptions

PATH: KeyPath = ("table", "figures")


class FiguresCheck:
    """Requires that figures can be drawn; notes every fault."""

    def __init__(
        self, document: Document, original: Document, rows: Sequence[Row], problems: Problems
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
