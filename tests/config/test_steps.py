"""Steps in experiment files: found by name, checked with their sources, kinds followed from step to step."""

from experiment_files import ExperimentFile
from wording import worded

SOURCE = "gold: {source: gold}\n"


def test_an_unknown_step_is_reported_in_one_line_with_the_nearest_name(experiment: ExperimentFile) -> None:
    experiment.change(SOURCE, "gold: {source: gold, prepare: [{step: sampel, size: 2}]}\n")
    (fault,) = experiment.faults()
    worded([fault], f"study.yaml:{experiment.line('sampel')}", "data.gold.prepare.0.step", "'sample'")


def test_a_step_without_a_name_is_reported_in_one_line(experiment: ExperimentFile) -> None:
    experiment.change(SOURCE, "gold: {source: gold, prepare: [{size: 2}]}\n")
    (fault,) = experiment.faults()
    worded([fault], "data.gold.prepare.0.step")


def test_further_sources_of_a_step_are_checked_where_they_are_named(experiment: ExperimentFile) -> None:
    experiment.change(
        SOURCE, "gold: {source: gold, prepare: [{step: drop-overlap, sources: [test, tets]}]}\n"
    )
    (fault,) = experiment.faults()
    worded([fault], "data.gold.prepare.0.sources.1", "'tets'", "'test'")


def test_faults_of_steps_are_reported_even_if_the_method_is_unknown(experiment: ExperimentFile) -> None:
    experiment.change("method: fake\n", "method: faek\n      prepare: [{step: sampel}]\n")
    keys = {fault.split(": ")[1] for fault in experiment.faults()}
    assert keys == {"data.silver.method", "data.silver.prepare.0.step"}


def test_data_without_training_may_have_steps(experiment: ExperimentFile) -> None:
    text = experiment.file.read_text(encoding="utf-8")
    head = text[: text.index("sources:")]
    experiment.file.write_text(
        head + "sources: {gold: {file: gold.tsv, kind: scored_pair}}\nbaseline: plain\n"
        "defaults: {data.gold: {source: gold, prepare: [{step: sample, size: 2}]}}\n",
        encoding="utf-8",
    )
    (variant,) = experiment.load().variants
    (step,) = variant.candidates[0].config.parts[0].prepare
    assert (step.name, step.plugin.model_dump()["size"]) == ("sample", 2)


def test_negatives_are_not_mined_with_the_encoder_under_test(experiment: ExperimentFile) -> None:
    miner = "{step: mine-negatives, encoder: {base: {model: org/small}}}"
    experiment.change("file: gold.tsv, kind: scored_pair}", "file: gold.tsv, kind: scored_pair, as: triplet}")
    experiment.change(SOURCE, f"gold: {{source: gold, prepare: [{miner}]}}\n")
    faults = [fault for fault in experiment.faults() if "mine-negatives" in fault]
    worded(faults, "data.gold.prepare.0", "mine-negatives", "train.base")


def test_sources_of_a_steps_labeller_are_checked_by_role(experiment: ExperimentFile) -> None:
    labeller = "labeller: {cross_encoder: {base: {model: org/small}}}"
    step = f"{{step: keep-consistent, sources: {{gold: glod}}, {labeller}}}"
    experiment.change(SOURCE, f"gold: {{source: gold, prepare: [{step}]}}\n")
    faults = [fault for fault in experiment.faults() if "glod" in fault]
    worded(faults, "data.gold.prepare.0.sources.gold", "'glod'", "'gold'")
