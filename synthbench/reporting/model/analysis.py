"""The analysis of a result (options, rows, columns, comparisons), shared by tables, notes and figures."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from synthbench.config.comparing import all_pairs, pairs_with_baselines
from synthbench.config.coordinates import RowKey
from synthbench.config.table_options import TableOptions
from synthbench.reporting.model import aggregate
from synthbench.reporting.model.aggregate import ColumnSource, Measurement, Runs
from synthbench.reporting.model.comparisons import ColumnComparisons, compare
from synthbench.reporting.model.decisions import Decisions, decide, primary_columns
from synthbench.reporting.model.item_errors import ItemErrors, PairInColumn
from synthbench.reporting.results import ExperimentResult


@dataclass(frozen=True)
class Analysis:
    """A result and everything derived from it, each computed once.

    `other_items` are pairs of rows known to be scored on different items, even if the numbers of items are
    equal.
    """

    result: ExperimentResult
    other_items: frozenset[PairInColumn] = frozenset()

    @cached_property
    def options(self) -> TableOptions:
        """The table options; raises pydantic.ValidationError if `result.table` is invalid."""
        return TableOptions.model_validate(self.result.table)

    def with_options(self, **changes: Any) -> "Analysis":  # noqa: ANN401 - fields of TableOptions
        """Return the analysis of the same result under other table options."""
        options = self.options.model_copy(update=changes).model_dump(mode="json")
        return replace(self, result=self.result.model_copy(update={"table": options}))

    @cached_property
    def seeds(self) -> tuple[int, ...]:
        """All seeds, sorted."""
        return tuple(sorted({run.seed for run in self.result.runs}))

    @cached_property
    def rows(self) -> Mapping[RowKey, Runs]:
        """Row of the table -> its runs; with `table.across`, its runs at all values of these axes."""
        return aggregate.rows(self.result, self.options.across)

    @cached_property
    def grid_rows(self) -> Mapping[RowKey, Runs]:
        """The runs of each variant at each point of the grid."""
        return aggregate.rows(self.result)

    @cached_property
    def measurements(self) -> tuple[Measurement, ...]:
        """The test scores that the table may show."""
        return aggregate.measurements(self.result, self.options.across)

    @cached_property
    def columns(self) -> tuple[ColumnSource, ...]:
        """The columns of the table."""
        return aggregate.column_sources(self.result, self.options, self.measurements)

    @cached_property
    def item_errors(self) -> ItemErrors:
        """The noise of comparisons due to the choice of test items."""
        return ItemErrors(self.result.item_noise, self.other_items)

    @cached_property
    def decisions(self) -> Decisions:
        """The comparisons with baselines, and which of them are significant; ceilings are not compared."""
        rows = {key: runs for key, runs in self.rows.items() if key.variant not in self.options.ceiling}
        primary = primary_columns(self.columns, self.options)
        pairs = all_pairs(rows) if self.options.best else ()
        return decide(
            compare(rows, self.columns, pairs_with_baselines(rows, self.compared), self.item_errors),
            compare(rows, primary, pairs, self.item_errors),
            self.columns,
            self.options,
            self.item_errors,
        )

    @property
    def comparisons(self) -> tuple[ColumnComparisons, ...]:
        """The comparisons with baselines."""
        return self.decisions.columns

    @property
    def compared(self) -> Mapping[str, Sequence[str]]:
        """Each baseline with the variants compared with it; () for all variants."""
        if self.options.compare_to is not None:
            return self.options.compare_to
        return {self.result.baseline: ()} if self.result.baseline else {}
