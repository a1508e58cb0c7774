"""Aliases: a name for another source in each row."""

import pytest
from experiment_files import ExperimentFile

SETS = """
  other-gold: {file: gold.tsv, kind: scored_pair}
  other-dev: {file: dev.tsv, kind: scored_pair, split: dev}
  other-test: {file: test.tsv, kind: scored_pair, split: test}
"""
GRID = """
grid:
  data_set:
    first: {aliases: {train-data: gold, dev-data: dev, test-data: test}}
    second: {aliases: {train-data: other-gold, dev-data: other-dev, test-data: other-test}}
"""


@pytest.fixture
def two_sets(experiment: ExperimentFile) -> ExperimentFile:
    """The valid file, every row on two data sets."""
    experiment.change("seeds: [0, 1]", SETS.strip("\n") + "\nseeds: [0, 1]")
    steps = "[{step: drop-overlap, sources: [test-data]}]"
    experiment.change("gold: {source: gold}\n", f"gold: {{source: train-data, prepare: {steps}}}\n")
    experiment.change("sources: [dev]}", "sources: [dev-data]}").change("tasks: [test]", "tasks: [test-data]")
    experiment.change("sources: {gold: gold}", "sources: {gold: train-data}")
    experiment.change("table:\n  columns: [test]\n", "")
    return experiment.append(GRID)


def test_rows_may_name_a_source_by_its_alias(two_sets: ExperimentFile) -> None:
    loaded = two_sets.load()
    assert loaded.tasks == ("test", "other-test")
    (row,) = (each for each in loaded.variants if each.label == "silver [data_set=second]")
    config = row.candidates[0].config
    gold, silver = config.parts
    assert (gold.source, silver.roles) == ("other-gold", {"gold": "other-gold"})
    assert gold.prepare[0].plugin.others() == ("other-test",)
    assert config.selection is not None
    assert config.selection.sources == ("other-dev",)
    assert [evaluation.tasks for evaluation in config.evaluations] == [("other-test",)]
    assert row.parameters["data.gold.source"] == "other-gold"


def test_an_alias_for_an_unknown_source_is_reported_with_its_line(two_sets: ExperimentFile) -> None:
    two_sets.change("train-data: other-gold", "train-data: other-gould")
    line = two_sets.line("second:")
    messages = two_sets.faults()
    assert messages[0].startswith(
        f"study.yaml:{line}: data.gold.source: no source is called 'other-gould'; did you mean 'other-gold'?"
    )


def test_an_alias_may_not_have_a_sources_name(two_sets: ExperimentFile) -> None:
    two_sets.change("first: {aliases: {", "first: {aliases: {gold: other-gold, ")
    (message,) = two_sets.faults()
    assert "aliases.gold: 'gold' is the name of a source; give the alias another name" in message


def test_a_name_without_an_alias_is_no_source(two_sets: ExperimentFile) -> None:
    two_sets.change("first: {aliases: {train-data: gold, ", "first: {aliases: {")
    assert all("no source is called 'train-data'" in message for message in two_sets.faults())
