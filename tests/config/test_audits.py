"""The `audit` section of a run, and rows that end with it."""

import pytest
from experiment_files import ExperimentFile

TRAIN = """\
  train:
    trainer: fake
    base: {model: org/small}
    strength: 0.5
    selection: {evaluator: fake, sources: [dev]}
"""
AUDIT = "  audit:\n    labels: {part: gold, oracle: sandbox}\n"


def with_audit(experiment: ExperimentFile, audit: str) -> ExperimentFile:
    return experiment.change("  evaluate:\n", f"  audit:\n    labels: {audit}\n  evaluate:\n")


@pytest.mark.parametrize(
    ("audit", "message"),
    [
        ("{oracle: sandbox}", "audit.labels.part: missing; it has no default"),
        (
            "{part: glod, oracle: sandbox}",
            "audit.labels.part: no part of `data` is called 'glod'; did you mean 'gold'?",
        ),
        (
            "{part: gold, oracle: sandbx}",
            "audit.labels.oracle: must be 'sandbox', is \"sandbx\"; did you mean 'sandbox'?",
        ),
        ("{part: gold, per_label: -1}", "audit.labels.per_label: must be at least 0, is -1"),
        ("{part: gold, sheets: [a.csv]}", "audit.labels.sheets.0: no such file: a.csv"),
        (
            "{part: gold, sheets: [a.csv], oracle: sandbox}",
            "audit.labels: has both `oracle:` and `sheets:`; one of them judges",
        ),
        (
            "{part: gold, sheets: [a.csv, x/a.csv]}",
            "audit.labels: annotators are named after their sheets; give each sheet a name of its own",
        ),
        (
            "{part: gold, gold: glod}",
            "audit.labels.gold: no part of `data` is called 'glod'; did you mean 'gold'?",
        ),
        ("{part: gold, gold: gold}", "audit.labels: gold: the part can't judge itself"),
        (
            "{part: gold, gold: lines, oracle: sandbox}",
            "audit.labels: has both `oracle:` and `gold:`; one of them judges",
        ),
        ("{part: gold, sample: 5}", "audit.labels.sample: unknown key; known: gold, oracle, part, per_label"),
    ],
)
def test_faults_of_an_audit_are_reported_with_their_location(
    experiment: ExperimentFile, audit: str, message: str
) -> None:
    with_audit(experiment, audit)
    (found,) = experiment.faults()
    assert found.startswith(f"study.yaml:{experiment.line('labels:')}: {message}")


def test_gold_judges_scored_pairs_alone(experiment: ExperimentFile) -> None:
    experiment.change("seeds:", "  lines: {file: lines.txt}\nseeds:")
    experiment.change("gold: {source: gold}\n", "gold: {source: gold}\n    lines: {source: lines}\n")
    with_audit(experiment, "{part: gold, gold: lines}")
    (message,) = experiment.faults()
    assert "audit.labels.gold: gold scores are compared with scored pairs, 'lines' has sentence" in message


def test_audits_of_sentences_need_a_question(experiment: ExperimentFile) -> None:
    experiment.change("seeds:", "  lines: {file: lines.txt}\nseeds:")
    experiment.change("gold: {source: gold}\n", "gold: {source: gold}\n    lines: {source: lines}\n")
    with_audit(experiment, "{part: lines}")
    (message,) = experiment.faults()
    assert "audit.labels: what to ask about sentence records is not known" in message
    assert experiment.faults("audit.labels.oracle=sandbox") == []


def test_an_audited_row_needs_no_training(experiment: ExperimentFile) -> None:
    experiment.change(TRAIN, AUDIT).change("tasks: [test]", "tasks: [test, dev]")
    (message,) = experiment.faults()
    assert message.endswith(
        "train: missing; a run that is audited has neither `train` nor `evaluate`, or both"
    )
    assert experiment.faults("evaluate=null", "table.columns=null") == []
    experiment.change(AUDIT, "")
    assert "train: missing; it has no default" in " ".join(experiment.faults())


def test_a_row_can_remove_an_audit(experiment: ExperimentFile) -> None:
    with_audit(experiment, "{part: gold, oracle: sandbox}").change("size: 3", "size: 3\n    audit: null")
    plain, silver = (variant.candidates[0].config for variant in experiment.load().variants)
    assert ([audit.name for audit in plain.audits], silver.audits) == (["labels"], ())


def test_candidates_with_different_data_can_not_be_audited(experiment: ExperimentFile) -> None:
    experiment.change(
        "size: 3",
        "size: 3\n    audit.labels: {part: silver}\n    select: {over: {data.silver.size: [2, 3]}}",
    )
    (message,) = experiment.faults()
    assert message.endswith("changes part 'silver', which is audited; audit it in rows of one candidate")


def test_a_profile_replaces_annotators_with_the_oracle(experiment: ExperimentFile) -> None:
    experiment.profile("tiny", "substitute: {oracle: sandbox}\n")
    with_audit(experiment, "{part: gold, sheets: [missing.csv]}")
    experiment.change("size: 3", "size: 3\n    audit: null")
    plain, silver = (v.candidates[0].config for v in experiment.load(profile="tiny").variants)
    (audit,) = plain.audits
    assert (audit.oracle, audit.sheets, silver.audits) == ("sandbox", (), ())


def test_a_profile_with_an_oracle_leaves_files_without_audits_alone(experiment: ExperimentFile) -> None:
    experiment.profile("tiny", "substitute: {oracle: sandbox}\n")
    assert experiment.faults(profile="tiny") == []
