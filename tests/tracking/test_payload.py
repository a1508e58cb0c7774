import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mlflow.utils.validation import _validate_metric_name, _validate_param_name

from synthbench.auditing.confusion import confusion
from synthbench.auditing.report import Audit
from synthbench.data.records import RecordKind
from synthbench.registration.record import Registered
from synthbench.reporting.results import (
    AuditResult,
    DatasetSummary,
    ExperimentResult,
    Overlap,
    RunResult,
    TaskScores,
)
from synthbench.tracking.payload import (
    experiment_digest,
    experiment_points,
    experiment_run_name,
    experiment_tags,
    legal_name,
    legal_texts,
    live_points,
    run_digest,
    run_name,
    run_points,
)


def make_run(**changes: object) -> RunResult:
    return RunResult(variant="gold", seed=0, identity="i", scores=()).model_copy(update=changes)


@given(st.lists(st.text(), min_size=1, max_size=4))
def test_every_name_is_legal_for_mlflow(parts: list[str]) -> None:
    name = legal_name(*parts)

    _validate_metric_name(name)  # type: ignore[no-untyped-call]
    _validate_param_name(name)  # type: ignore[no-untyped-call]
    assert len(name) <= 250


@given(st.text(), st.text())
def test_different_names_stay_different(one: str, other: str) -> None:
    assert (legal_name(one) == legal_name(other)) == (one == other)


@pytest.mark.parametrize("name", ["gold", "augsbert-bm25", "STS12", "spearman/deft-forum", "λ 2.0"])
def test_legal_names_are_unchanged(name: str) -> None:
    assert legal_name(name) == name


@pytest.mark.parametrize("name", ["gold+silver", "(a)", "..", ""])
def test_illegal_names_get_a_hash(name: str) -> None:
    assert re.fullmatch(r"[\w.]*-[0-9a-f]{6}", legal_name(name))


def test_run_names_are_readable() -> None:
    assert (
        run_name(make_run(variant="augsbert-bm25", axes={"base": "static"}))
        == "augsbert-bm25 · static · seed 0"
    )


def test_the_parents_name_includes_the_overrides() -> None:
    result = ExperimentResult(experiment="small", identity="i", runs=())
    partial = result.model_copy(update={"overrides": ("--variant gold", "--seeds 0")})

    assert experiment_run_name(result) == "small"
    assert experiment_run_name(partial) == "small --variant gold --seeds 0"


def test_scores_of_subsets_keep_their_names() -> None:
    scored = TaskScores(
        task="STS13",
        evaluator="sts",
        main_score="spearman_all",
        scores={"spearman_all": 0.5, "spearman/FNWN": 0.4},
        num_items=1,
        stage="x",
    )

    names = [point.name for point in run_points(make_run(scores=(scored,)))]

    assert names[:2] == ["STS13/spearman_all", "STS13/spearman/FNWN"]


def test_the_path_of_item_scores_is_not_tracked() -> None:
    scored = TaskScores(
        task="A", evaluator="sts", main_score="s", scores={"s": 0.5}, num_items=1, stage="x", items_file="/me"
    )

    assert "/me" not in make_run(scores=(scored,)).model_dump_json()


def test_long_texts_are_truncated_to_mlflows_limit() -> None:
    text = legal_texts({"prompt": "x" * 7000})["prompt"]

    assert len(text) == 6000
    assert text.endswith("…")


def test_two_evaluators_of_one_test_set_retain_all_scores() -> None:
    scored = tuple(
        TaskScores(task="A", evaluator=name, main_score="s", scores={"s": 0.5}, num_items=1, stage="x")
        for name in ("sts", "pairs")
    )

    names = [point.name for point in run_points(make_run(scores=scored))]

    assert names[:2] == ["A/sts/s", "A/pairs/s"]


def test_two_evaluators_of_one_test_set_have_live_scores_of_their_own() -> None:
    scored = tuple(
        TaskScores(task="A", evaluator=name, main_score="s", scores={"s": value}, num_items=1, stage="x")
        for name, value in (("sts", 0.5), ("pairs", 0.7))
    )

    points = {point.name: point.value for point in live_points(make_run(scores=scored))}

    assert points == {
        **{legal_name("score", "A (sts)"): 0.5, legal_name("score", "A (pairs)"): 0.7},
        **{"A/sts/s": 0.5, "A/pairs/s": 0.7},
    }


def test_shares_of_an_audit_are_tracked_for_each_row() -> None:
    audit = Audit(
        kind=RecordKind.SCORED_PAIR,
        judge="anna",
        num_records=4,
        num_items=4,
        num_failures=0,
        failures={},
        confusion=confusion([("0.9", "same")] * 3 + [("0.9", "different")], ["different", "same"], ["0.9"]),
    )
    judged = AuditResult(
        name="labels", part="x2", rows=("dino", "plain"), stage="s", num_items=4, audit=audit
    )
    waiting = judged.model_copy(update={"audit": None, "rows": ("other",)})
    result = ExperimentResult(experiment="e", identity="i", runs=(), audits=(judged, waiting))

    points = {point.name: point.value for point in experiment_points(result)}

    assert points == {
        f"{row}/audit.labels/0.9/{label}": share
        for row in ("dino", "plain")
        for label, share in (("different", 25.0), ("same", 75.0))
    }


def test_the_digest_ignores_only_time_and_environment() -> None:
    run = make_run()
    result = ExperimentResult(experiment="e", identity="i", runs=(run,))

    slower = run.model_copy(update={"seconds": 9.0})
    assert run_digest(slower) == run_digest(run)
    how = {"environment": {"torch": "3"}, "file": "a.yaml", "is_data_folder_given": True}
    elsewhere = result.model_copy(update={**how, "runs": (slower,)})
    assert experiment_digest(elsewhere) == experiment_digest(result)

    other = run.model_copy(update={"seed": 1})
    assert run_digest(other) != run_digest(run)
    assert experiment_digest(result.model_copy(update={"runs": (other,)})) != experiment_digest(result)


def test_the_note_leaves_out_a_table_that_is_too_long() -> None:
    result = ExperimentResult(experiment="e", identity="i", description="What for", runs=())

    assert experiment_tags(result, "x" * 9000)["mlflow.note.content"] == "What for"


def test_tags_hold_the_registrations_hash_and_time() -> None:
    registered = Registered(hash="a" * 64, time="2026-11-26T07:03", experiment="e", num_comparisons=1)
    result = ExperimentResult(experiment="e", identity="i", runs=(), registration=registered)
    tags = experiment_tags(result, "")
    assert (tags["registration.hash"], tags["registration.time"]) == ("a" * 64, "2026-11-26T07:03")


def test_data_figures_and_overlaps_are_tracked() -> None:
    dataset = DatasetSummary(
        part="x2", kind="pair", num_records=1, figures={"distinct_1": 0.5}, content_hash="c", stage="s"
    )
    counts = {"sharing": {"exact": 0, "normalised": 2}, "whole": {}, "as_pairs": 0, "by_part": {}}
    overlap = Overlap(task="STSb", items="pairs", num_items=8, **counts)
    points = {
        point.name: point.value for point in run_points(make_run(datasets=(dataset,), overlaps=(overlap,)))
    }
    assert points | {"data/x2/distinct_1": 0.5, "overlap/STSb": 0.25} == points


def test_an_overlap_without_test_items_is_not_tracked() -> None:
    counts = {"sharing": {"exact": 0, "normalised": 0}, "whole": {}, "as_pairs": 0, "by_part": {}}
    overlap = Overlap(task="STSb", items="pairs", num_items=0, **counts)

    assert "overlap/STSb" not in [point.name for point in run_points(make_run(overlaps=(overlap,)))]
