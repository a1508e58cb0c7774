"""Results name test sets and training sources that a base model has seen."""

from pathlib import Path

import pytest
from experiment_files import ExperimentFile
from fake_stages import RUNTIME
from fakes import Lines

from synthbench.engine.artifacts import Artifacts
from synthbench.engine.local_executors import InProcess
from synthbench.engine.runner import Runner
from synthbench.engine.store import Store
from synthbench.models import known_training
from synthbench.models.known_training import KnownTraining
from synthbench.pipeline.planning import make_plan
from synthbench.reporting.render.markdown import markdown_table
from synthbench.reporting.report import Report
from synthbench.reporting.results import ExperimentResult
from synthbench.results import seen as seen_module
from synthbench.results.collect import collect


@pytest.fixture(autouse=True)
def small_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    known = KnownTraining(("Quora question pairs", "SNLI"), "its model card")
    monkeypatch.setattr(seen_module, "training_of", {"org/small": known}.get)


@pytest.fixture
def on_quora(experiment: ExperimentFile) -> ExperimentFile:
    for name in ("test", "gold"):
        file = experiment.folder / f"{name}.tsv"
        file.rename(file.with_name(f"{'quora' if name == 'test' else 'snli'}-{name}.tsv"))
    return experiment.change("file: test.tsv", "file: quora-test.tsv").change(
        "file: gold.tsv", "file: snli-gold.tsv"
    )


def collected(experiment: ExperimentFile, store: Store) -> ExperimentResult:
    plan = make_plan(experiment.load())
    assert not Runner(store, InProcess(), RUNTIME, Lines()).run(plan).failed
    return collect(plan, Artifacts(store))


def test_a_result_carries_what_its_base_has_seen(on_quora: ExperimentFile, store: Store) -> None:
    result = collected(on_quora, store)
    assert [(each.name, each.is_test, each.data_set, each.rows) for each in result.seen] == [
        ("test", True, "Quora question pairs", ("plain", "silver")),
        ("gold", False, "SNLI", ("plain", "silver")),
    ]

    table = markdown_table(Report(result).table)
    assert "| variant | test¶ |" in table
    assert (
        "¶ org/small was trained on data of this table: test sets: test (Quora question pairs);"
        " training data: gold (SNLI) (its model card)." in table
    )
    # The name in other files and in options stays.
    assert Report(result).table.columns[0].title == "test"


def test_a_result_without_seen_data_is_written_as_before(experiment: ExperimentFile, store: Store) -> None:
    result = collected(experiment, store)
    assert result.seen == ()
    assert "seen" not in result.model_dump(mode="json")
    assert "¶" not in markdown_table(Report(result).table)


def test_data_that_steps_only_compare_with_are_no_training_data(
    on_quora: ExperimentFile, store: Store
) -> None:
    on_quora.change(
        "    gold: {source: gold}\n",
        "    gold: {source: gold, prepare: [{step: drop-contaminated, sources: [test]}]}\n",
    )
    assert [(each.name, each.is_test) for each in collected(on_quora, store).seen] == [
        ("test", True),
        ("gold", False),
    ]


def test_only_the_rows_with_the_model_are_named(on_quora: ExperimentFile, store: Store) -> None:
    on_quora.change("    data.silver:\n", "    train.base.model: org/judge\n    data.silver:\n")
    result = collected(on_quora, store)
    (row,) = {each.rows for each in result.seen}
    assert row == ("plain",)
    assert "¶ org/small, which is behind plain, was trained on data" in markdown_table(Report(result).table)


def test_a_labeller_counts_as_a_model_behind_its_row(on_quora: ExperimentFile, store: Store) -> None:
    on_quora.change("base: {model: org/small}", "base: {model: org/judge}")
    on_quora.change("      size: 3\n", "      size: 3\n      labeller: {model: org/small}\n")
    on_quora.change("sources: {gold: gold}", "sources: {gold: gold, dev: dev}")
    assert {each.rows for each in collected(on_quora, store).seen} == {("silver",)}


def test_the_table_ships_beside_the_code() -> None:
    assert known_training.TABLE.is_file()
    assert known_training.TABLE.parent == Path(known_training.__file__).parent
