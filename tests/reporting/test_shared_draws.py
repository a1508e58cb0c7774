"""Rows are paired by design: seeds redraw data that both rows use."""

from collections.abc import Callable, Sequence

import pytest

from synthbench.reporting.model.shared_draws import share_draws
from synthbench.reporting.results import DatasetSummary, Ingredient, RunResult

MakeRuns = Callable[..., tuple[RunResult, ...]]


@pytest.fixture
def row(make_runs: MakeRuns) -> Callable[..., tuple[RunResult, ...]]:
    """Return the runs of a row: per seed its data's stage, and the stages that these were made of."""

    def made(*seeds: Sequence[str]) -> tuple[RunResult, ...]:
        runs = make_runs("row", {"A": [0.5] * len(seeds)})
        return tuple(
            run.model_copy(update={"datasets": (dataset(stage, made_of),)})
            for run, (stage, *made_of) in zip(runs, seeds, strict=True)
        )

    return made


def dataset(stage: str, made_of: Sequence[str]) -> DatasetSummary:
    return DatasetSummary(
        part="silver",
        kind="scored_pairs",
        num_records=1,
        content_hash="",
        stage=stage,
        made_of=tuple(Ingredient(role="x", kind="prepare", name="sample", stage=each) for each in made_of),
    )


def test_rows_that_are_made_of_a_sample_of_their_seed_share_draws(row: MakeRuns) -> None:
    one = row(("dino-0", "sample-0"), ("dino-1", "sample-1"))
    other = row(("bm25-0", "sample-0"), ("bm25-1", "sample-1"))

    assert share_draws(one, other)
    assert share_draws(other, one)


def test_a_sample_may_be_the_other_rows_data_themselves(row: MakeRuns) -> None:
    assert share_draws(row(("dino-0", "sample-0"), ("dino-1", "sample-1")), row(("sample-0",), ("sample-1",)))


def test_equal_seeds_alone_and_data_made_once_share_no_draws(row: MakeRuns) -> None:
    made_once = row(("dino", "sample"), ("dino", "sample"))

    assert not share_draws(made_once, made_once)
    assert not share_draws(made_once, row(("bm25", "sample"), ("bm25", "sample")))
    assert not share_draws(
        row(("dino-0", "all"), ("dino-1", "all")), row(("bm25-0", "all"), ("bm25-1", "all"))
    )
    assert not share_draws((), ())


def test_every_seed_must_redraw(row: MakeRuns) -> None:
    one, other = (
        row((f"{name}-0", "sample-0"), (f"{name}-1", "sample-1"), (f"{name}-2", "sample-1"))
        for name in ("dino", "bm25")
    )

    assert not share_draws(one, other)


def test_a_row_drawn_once_shares_no_draw_with_one_that_seeds_redraw(row: MakeRuns) -> None:
    once = row(("dino", "sample-0"), ("dino", "sample-0"))

    assert not share_draws(once, row(("bm25-0", "sample-0"), ("bm25-1", "sample-1")))


def test_a_single_common_seed_pairs_nothing(row: MakeRuns) -> None:
    one = row(("dino-0", "sample-0"), ("dino-1", "sample-1"))

    assert not share_draws(one, one[:1])
