"""`sources: {role: {part: NAME}}`: a role takes another part of the data."""

import pytest
from experiment_files import ExperimentFile

from synthbench.config.schema import PartRole

SILVER = """\
    data.silver:
      method: fake
      sources: {gold: gold}
      size: 3
"""
CHAIN = """\
    data.scratch: {method: fake, sources: {gold: gold}, size: 6, train_on: false}
    data.silver: {method: fake, sources: {gold: %s}, size: 3}
"""


def chain(experiment: ExperimentFile, role: str = "{part: scratch}") -> ExperimentFile:
    return experiment.change(SILVER, CHAIN % role)


def test_a_role_reads_another_part_before_or_after_its_steps(experiment: ExperimentFile) -> None:
    chain(experiment)
    (config,) = (row.candidates[0].config for row in experiment.load(variants=("silver",)).variants)
    parts = {part.name: part for part in config.parts}
    assert parts["silver"].roles == {"gold": PartRole(part="scratch")}
    assert [part.train_on for part in parts.values()] == [True, False, True]
    bare = experiment.load("variants.silver.data.silver.sources.gold={part: scratch, prepared: false}")
    parts = {part.name: part for part in bare.variants[1].candidates[0].config.parts}
    assert parts["silver"].roles == {"gold": PartRole(part="scratch", prepared=False)}


@pytest.mark.parametrize(
    ("role", "message"),
    [
        (
            "{part: scrath}",
            "sources.gold.part: no part of `data` is called 'scrath'; did you mean 'scratch'?",
        ),
        (
            "{part: dev}",
            "sources.gold.part: 'dev' is a source, not a part of `data`; write gold: dev",
        ),
        ("{part: silver}", "sources.gold.part: 'silver' can't be made from itself"),
        ("{prt: scratch}", "sources.gold.part: missing; it has no default"),
        ("{part: scratch, prepard: false}", "sources.gold.prepard: unknown key; did you mean 'prepared'?"),
        ("scratch", "sources.gold: 'scratch' is a part of `data`, not a source; write {part: scratch}"),
        ("3", "sources.gold: must be text or a mapping, is 3"),
    ],
)
def test_an_invalid_part_for_a_role_is_reported_in_one_line(
    experiment: ExperimentFile, role: str, message: str
) -> None:
    chain(experiment, role)
    line = experiment.line("data.silver:")
    faults = [fault for fault in experiment.faults() if f"study.yaml:{line}: data.silver." in fault]
    assert f"study.yaml:{line}: data.silver.{message}" in faults


def test_a_role_can_not_read_a_later_part(experiment: ExperimentFile) -> None:
    experiment.change(SILVER, "".join(reversed((CHAIN % "{part: scratch}").splitlines(keepends=True))))
    (message,) = experiment.faults()
    assert "data.silver.sources.gold.part: part 'scratch' comes later in `data`; move it before" in message


def test_a_cycle_is_reported_completely(experiment: ExperimentFile) -> None:
    chain(experiment).change("sources: {gold: gold}, size: 6", "sources: {gold: {part: silver}}, size: 6")
    faults = experiment.faults()
    assert len(faults) == 2
    assert "a cycle: scratch is made from silver is made from scratch" in faults[0]
    assert "a cycle: silver is made from scratch is made from silver" in faults[1]


def test_a_role_gets_the_record_kind_after_the_steps(experiment: ExperimentFile) -> None:
    experiment.change("seeds:", "  lines: {file: lines.txt, split: train}\nseeds:")
    (experiment.folder / "lines.txt").write_text("one line\n", encoding="utf-8")
    chain(experiment).change("{method: fake, sources: {gold: gold}, size: 6,", "{source: lines,")
    (message,) = experiment.faults()
    assert message.endswith("'scratch' holds records of kind sentence, here scored_pair is needed")


def test_an_unused_part_is_named_unless_some_row_uses_it(experiment: ExperimentFile) -> None:
    unused = "data.scratch: is not trained on, and no other part, selection or audit uses it"
    chain(experiment, "gold")
    (message,) = experiment.faults()
    assert message.endswith(unused)
    shared = "    gold: {source: gold}\n    scratch: {source: gold, train_on: false}\n"
    experiment.change("    gold: {source: gold}\n", shared)
    experiment.change(CHAIN.splitlines(keepends=True)[0], "")
    (message,) = experiment.faults()
    assert message.endswith(unused)
    experiment.change("sources: {gold: gold}, size: 3", "sources: {gold: {part: scratch}}, size: 3")
    plain, silver = (row.candidates[0].config.parts for row in experiment.load().variants)
    assert [part.name for part in plain] == ["gold"]
    assert [part.name for part in silver] == ["gold", "scratch", "silver"]


def test_a_part_that_only_selects_counts_as_used(experiment: ExperimentFile) -> None:
    chain(experiment, "gold").change("train_on: false", "train_on: false, prepare: [{step: split, dev: 0.5}]")
    experiment.change("size: 3}", "size: 3}\n    train.selection.parts: [scratch]")
    assert experiment.faults() == []


def test_training_needs_a_part_to_train_on(experiment: ExperimentFile) -> None:
    experiment.change("gold: {source: gold}\n", "gold: {source: gold, train_on: false}\n")
    assert any("data: trainer 'fake' needs data, there is none" in line for line in experiment.faults())


def test_candidates_may_not_change_the_origin_of_dev_data(experiment: ExperimentFile) -> None:
    chain(experiment)
    experiment.change(
        "size: 3}",
        "size: 3}\n    train.selection.parts: [silver]\n    select: {over: {data.scratch.size: [2, 3]}}",
    )
    (message,) = experiment.faults()
    assert "changes part 'scratch', whose dev split selects" in message
