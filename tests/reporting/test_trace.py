"""From a cell of the table to the runs behind it."""

from collections.abc import Callable

import pytest

from synthbench.errors import UserError
from synthbench.reporting.results import DatasetSummary, ExperimentResult, RunResult
from synthbench.reporting.trace import trace


@pytest.fixture
def result(
    make_runs: Callable[..., tuple[RunResult, ...]], make_result: Callable[..., ExperimentResult]
) -> ExperimentResult:
    """Two rows at two values of an axis, one row that is the same for both; an average of two test sets."""
    scores = {"A": [0.5, 0.7], "B": [0.3, 0.1]}
    return make_result(
        make_runs("plain", scores, base="small"),
        make_runs("plain", scores, base="large", dropped=3),
        make_runs("other", {"A": [0.9, 0.8]}),
        averages={"Mean": ["A", "B"]},
    )


def test_a_cell_is_followed_to_each_seed_and_what_it_was_made_of(result: ExperimentResult) -> None:
    silver = DatasetSummary(
        part="silver",
        kind="scored_pair",
        method="augsbert",
        num_records=1200,
        content_hash="0123456789abcdef",
        stage="stage",
        folder="store/artifacts/01/0123",
    )
    runs = [
        run.model_copy(update={"datasets": (silver,), "chosen": {"train.seed": 4}}) for run in result.runs
    ]
    told = list(
        trace(result.model_copy(update={"runs": tuple(runs)}), "other", "A", {runs[4].identity: "f00"})
    )
    assert [headline for headline, _ in told] == [
        "A, seed 0: 90.0000 (cosine_spearman × 100)",
        "A, seed 1: 80.0000 (cosine_spearman × 100)",
    ]
    assert told[0][1] == (
        "MLflow run f00",
        "evaluation stage: 100 items",
        "chosen on dev: train.seed = 4",
        "data silver by augsbert: 1,200 records, content 0123456789ab, store/artifacts/01/0123",
    )
    assert told[1][1][0] == "MLflow run unknown: tracked elsewhere, or not any more"


def test_a_row_of_several_axes_is_named_with_its_values(result: ExperimentResult) -> None:
    (_, lines), *_ = trace(result, "plain [base=large]", "B", {})
    assert "evaluation stage: 100 items, 3 left out" in lines


def test_an_average_is_followed_to_every_test_set(result: ExperimentResult) -> None:
    headlines = [headline for headline, _ in trace(result, "plain [base=small]", "Mean", {})]
    assert [headline.split(":")[0] for headline in headlines] == [
        "A, seed 0",
        "A, seed 1",
        "B, seed 0",
        "B, seed 1",
    ]


@pytest.mark.parametrize(
    ("row", "column", "fault"),
    [
        ("plain", "A", "'plain' is several rows: 'plain [base=small]', 'plain [base=large]'"),
        ("othr", "A", "the table has no row 'othr'; did you mean 'other'?"),
        ("other", "Maen", "the table has no column 'Maen'; did you mean 'Mean'?"),
        ("other", "B", "'other' has no score in the column 'B'"),
    ],
)
def test_what_is_not_in_the_table_is_said(
    result: ExperimentResult, row: str, column: str, fault: str
) -> None:
    with pytest.raises(UserError) as caught:
        list(trace(result, row, column, {}))
    assert caught.value.messages == (fault,)
