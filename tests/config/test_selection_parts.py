"""`train.selection.parts`: the dev split of training data selects the checkpoint."""

import pytest
from experiment_files import ExperimentFile

from synthbench.config.permissions import plugins_of

SELECTION = "selection: {evaluator: fake, sources: [dev]}"
GOLD, DIVIDED = "gold: {source: gold}\n", "gold: {source: gold, prepare: [{step: split, dev: 0.5}]}\n"
PARTS = "selection: {evaluator: fake, parts: [gold]}"


def test_dev_parts_of_the_data_select_with_or_without_sources(experiment: ExperimentFile) -> None:
    experiment.change(GOLD, DIVIDED)
    experiment.change(SELECTION, "selection: {evaluator: fake, sources: [dev], parts: [gold]}")
    selection = experiment.load().variants[0].candidates[0].config.selection
    assert selection is not None
    assert (selection.sources, selection.parts) == (("dev",), ("gold",))
    assert experiment.faults("train.selection.sources=[]", "sources.dev=null") == []


def test_the_evaluator_of_dev_data_is_one_of_the_plugins_whose_code_and_files_a_run_names(
    experiment: ExperimentFile,
) -> None:
    config = experiment.load().variants[0].candidates[0].config
    assert config.selection is not None
    assert any(plugin is config.selection.evaluator for plugin in plugins_of(config))


@pytest.mark.parametrize(
    ("selection", "message"),
    [
        ("{evaluator: fake}", "train.selection: needs `sources:`, `parts:` or both"),
        (
            "{evaluator: fake, sources: [dev], parts: [glod]}",
            "train.selection.parts.0: no part of `data` is called 'glod'; did you mean 'gold'?",
        ),
        (
            "{evaluator: fake, sources: [dev], parts: [gold, gold]}",
            "train.selection.parts.1: 'gold' is listed twice",
        ),
        (
            "{evaluator: sentences, sources: [lines], parts: [gold]}",
            "train.selection.parts.0: 'gold' holds records of kind scored_pair, here sentence is needed",
        ),
    ],
)
def test_parts_that_can_not_select_are_reported_with_their_location(
    experiment: ExperimentFile, selection: str, message: str
) -> None:
    experiment.change("seeds:", "  lines: {file: lines.txt, split: dev}\nseeds:")
    experiment.change(SELECTION, f"selection: {selection}")
    line = experiment.line(f"selection: {selection}")
    assert f"study.yaml:{line}: {message}" in experiment.faults("train.strength=0.25")


def test_a_part_that_only_one_row_has_selects_in_that_row_only(experiment: ExperimentFile) -> None:
    experiment.change(SELECTION, "selection: {evaluator: fake, sources: [dev], parts: [silver]}")
    (message,) = experiment.faults()
    assert message.endswith(
        "train.selection.parts.0: no part of `data` is called 'silver'; known: gold (in plain)"
    )


def test_candidates_whose_dev_data_differ_are_not_compared(experiment: ExperimentFile) -> None:
    experiment.change(
        "size: 3",
        "size: 3\n    train.selection.parts: [silver]\n    select: {over: {data.silver.size: [2, 3]}}",
    )
    (message,) = experiment.faults()
    assert message.endswith(
        "select.over.data.silver.size: changes part 'silver', whose dev split selects; "
        "candidates need the same dev data"
    )


def test_a_part_whose_dev_split_a_patch_dropped_can_not_select(experiment: ExperimentFile) -> None:
    experiment.change(GOLD, DIVIDED).change(SELECTION, PARTS)
    experiment.change("size: 3\n", "size: 3\n    data.gold.source: other\n")
    experiment.change("seeds:", "  other: {file: gold.tsv, kind: scored_pair}\nseeds:")
    (message,) = (told for told in experiment.faults() if "split dev" in told)
    assert message.endswith(
        "train.selection.parts.0: no record of 'gold' is in split dev: all are in train; a last step such as"
        " {step: split, dev: 0.1} in data.gold.prepare sets some apart (in silver)"
    )


def test_prepare_steps_that_a_patch_drops_silently_are_noted(experiment: ExperimentFile) -> None:
    experiment.change(GOLD, DIVIDED)
    experiment.change("size: 3\n", "size: 3\n    data.gold.source: dev\n")
    line = experiment.line("data.gold.source: dev")
    assert [told.replace(f"{experiment.folder}/", "") for told in experiment.load().remarks] == [
        f"study.yaml:{line}: data.gold: `source: dev` begins the part anew, without its prepare steps;"
        " give them again, or write `data.gold.prepare: []` (in silver)"
    ]
    experiment.change("data.gold.source: dev", "data.gold: {source: dev, prepare: []}")
    assert experiment.load().remarks == ()
