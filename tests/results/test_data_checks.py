"""Data checks in results: the training data of rows, and test items in them."""

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from disks import flip
from experiment_files import ExperimentFile
from fake_stages import RUNTIME
from fakes import Lines
from wording import refused, worded

from synthbench.data.records import RecordKind
from synthbench.engine.artifacts import Artifacts
from synthbench.engine.cleaning import clean
from synthbench.engine.local_executors import InProcess
from synthbench.engine.plan import Plan
from synthbench.engine.records import ArtifactDamagedError
from synthbench.engine.result_cache import FOLDER
from synthbench.engine.runner import Runner
from synthbench.engine.stage import Stage
from synthbench.engine.store import Store
from synthbench.models.pretrained import Pretrained
from synthbench.models.reading_limits import tokenizer_and_limit
from synthbench.models.reference import local
from synthbench.pipeline.planning import make_plan
from synthbench.reporting.results import Overlap, RunResult
from synthbench.results.collect import collect
from synthbench.results.data_checks import inputs_of, with_data_checks
from synthbench.stages.training import Train
from synthbench.training.bi_encoder import BiEncoder
from synthbench.training.cross_encoder import CrossEncoder
from synthbench.training.settings import TrainingSettings
from synthbench.training.simcse import SimCSE

HEADER = "sentence1\tsentence2\tscore\n"
GOLD = "A dog.\ta cat\t0.5\nsnow falls\train falls\t0.5\n"
TEST = "a dog\tSnow falls!\t0.5\nSnow falls.\tsun\t0.5\nsun\tmoon\t0.5\na dog\tA cat!\t0.5\n"


@pytest.fixture
def plan(experiment: ExperimentFile, store: Store) -> Plan:
    """A finished experiment whose gold pairs are also in its test set; one pair is dropped."""
    (experiment.folder / "gold.tsv").write_text(HEADER + GOLD, encoding="utf-8")
    (experiment.folder / "test.tsv").write_text(HEADER + TEST, encoding="utf-8")
    experiment.change("tasks: [test]", "tasks: [test]\n      exclude: [gold]")
    planned = make_plan(experiment.load("seeds=[0]"))
    assert not Runner(store, InProcess(), RUNTIME, Lines()).run(planned).failed
    return planned


def test_each_row_has_the_overlap_of_its_data_with_its_test_sets(plan: Plan, store: Store) -> None:
    plain, silver = collect(plan, Artifacts(store)).runs
    (overlap,) = plain.overlaps
    assert overlap == Overlap(
        task="test",
        items="pairs",
        num_items=3,
        sharing={"exact": 0, "normalised": 2, "13-gram": 2, "near-duplicate": 2},
        whole={"exact": 0, "normalised": 1, "13-gram": 1, "near-duplicate": 1},
        as_pairs=0,
        by_part={"gold": 2},
    )
    assert set(silver.overlaps[0].by_part) == {"gold", "silver"}


def test_each_part_of_the_data_has_its_statistics(plan: Plan, store: Store) -> None:
    (gold,) = collect(plan, Artifacts(store)).runs[0].datasets
    assert {name: round(value, 3) for name, value in gold.figures.items()} == {
        "num_records": 2,
        "num_sentences": 4,
        "mean_words": 2,
        "distinct_1": 0.75,
        "distinct_2": 1.0,
        "identical": 0,
        "duplicates": 0,
        "score_sd": 0,
        "near_duplicates": 0,
        "same_words": 0,
        "no_common_word": 0,
    }


def test_data_checks_are_cached_and_repeated_if_lost_or_damaged(plan: Plan, store: Store) -> None:
    first = collect(plan, Artifacts(store)).runs
    kept = sorted((store.root / "examined").iterdir())
    times = [file.stat().st_mtime_ns for file in kept]
    assert collect(plan, Artifacts(store)).runs == first
    assert [file.stat().st_mtime_ns for file in kept] == times
    kept[0].write_text("{", encoding="utf-8")
    kept[1].unlink()
    assert collect(plan, Artifacts(store)).runs == first
    assert all(json.loads(file.read_text(encoding="utf-8")) for file in kept)


def test_cached_data_checks_are_removed_with_the_data(plan: Plan, store: Store) -> None:
    collect(plan, Artifacts(store))
    store.addresses.remember("example", plan.addresses)
    kept = {*(store.root / "examined").iterdir()}
    (foreign := store.root / "examined" / "former.json").write_text("{}\n", encoding="utf-8")

    clean(store, 0)
    assert {*(store.root / "examined").iterdir()} == kept
    assert not foreign.exists()

    clean(store, 0, ["example"])
    assert not [*(store.root / "examined").iterdir()]


def test_results_without_data_checks_stay_unchanged(plan: Plan, store: Store) -> None:
    run = collect(plan, Artifacts(store)).runs[0]
    old = run.model_copy(update={"overlaps": (), "datasets": ()})
    assert "overlaps" not in old.model_dump(mode="json")
    assert RunResult.model_validate_json(old.model_dump_json()).overlaps == ()
    read = RunResult.model_validate_json(run.model_dump_json())
    assert (read.overlaps, read.datasets) == (run.overlaps, run.datasets)


def test_missing_data_are_left_out_and_damaged_data_are_an_error(
    plan: Plan, store: Store, tmp_path: Path
) -> None:
    (gold,) = (stage for stage in plan.stages.values() if stage.label == "gold")
    flip(store.folder(gold.identity) / "dataset" / "records.parquet")
    with refused("checksum", "dataset/records.parquet", kind=ArtifactDamagedError) as caught:
        collect(plan, Artifacts(store))
    assert caught.value.identity == gold.identity
    store.folder(gold.identity).rename(tmp_path / "gone")
    result = collect(plan, Artifacts(store))
    assert [run.scores[0].num_items for run in result.runs] == [3, 3]
    assert result.runs[0].overlaps == ()
    assert result.notes == ("source gold is no longer in the store: these training data were not checked.",)


def test_cached_checks_are_used_even_if_the_data_are_damaged_later(plan: Plan, store: Store) -> None:
    before = collect(plan, Artifacts(store))
    for file in (store.root / "artifacts").glob("*/*/dataset/records.parquet"):
        file.write_bytes(b"PAR1")
    again = collect(plan, Artifacts(store))
    assert (again.runs, again.notes) == (before.runs, before.notes)


def test_test_sets_missing_from_the_store_are_left_out(plan: Plan, store: Store, tmp_path: Path) -> None:
    for stage in plan.stages.values():
        if stage.kind == "exclude":
            store.folder(stage.identity).rename(tmp_path / "gone")
    result = collect(plan, Artifacts(store))
    assert result.runs[0].overlaps == ()
    assert result.notes == (
        "test is no longer in the store: training data were not checked for its sentences.",
    )


def test_a_single_key_drops_the_overlap_from_a_row(experiment: ExperimentFile, store: Store) -> None:
    (experiment.folder / "gold.tsv").write_text(HEADER + GOLD + "far\taway\t0.5\n", encoding="utf-8")
    (experiment.folder / "test.tsv").write_text(HEADER + TEST, encoding="utf-8")
    experiment.change(
        "variants:\n",
        "variants:\n  clean: {data.gold.prepare: [{step: drop-overlap, sources: [test, absent]}]}\n",
    )
    experiment.change("      tasks: [test]\n", "      tasks: [test]\n      if_found: [absent]\n")
    experiment.change("seeds:", "  absent: {file: absent.tsv, kind: scored_pair, split: test}\nseeds:")
    planned = make_plan(experiment.load("seeds=[0]"))
    assert not Runner(store, InProcess(), RUNTIME, Lines()).run(planned).failed
    runs = {run.variant: run for run in collect(planned, Artifacts(store)).runs}
    assert [(runs[row].overlaps[0].sharing["normalised"]) for row in ("plain", "clean")] == [3, 0]
    (gold,) = runs["clean"].datasets
    assert (gold.num_records, gold.dropped) == (1, {"drop-overlap": 2})


def test_sources_of_the_overlap_step_must_exist(experiment: ExperimentFile) -> None:
    experiment.change("{source: gold}", "{source: gold, prepare: [{step: drop-overlap, sources: [tset]}]}")
    line = experiment.line("drop-overlap")
    worded(experiment.faults(), f"study.yaml:{line}", "data.gold.prepare.0.sources.0", "'tset'", "'test'")


PROMPTS = {"query": "q: ", "passage": "p: "}


@pytest.mark.parametrize(
    ("trainer", "base", "kind", "inputs"),
    [
        (BiEncoder, {}, RecordKind.TRIPLET, [("a",), ("b",), ("c",)]),
        (CrossEncoder, {}, RecordKind.SCORED_PAIR, [("a", "b")]),
        (CrossEncoder, {}, RecordKind.TRIPLET, [("a", "b"), ("a", "c")]),
        (SimCSE, {"prompts": PROMPTS}, RecordKind.TRIPLET, [("q: a",), ("p: b",), ("p: c",)]),
        (BiEncoder, {"prompts": PROMPTS}, RecordKind.SCORED_PAIR, [("q: a",), ("q: b",)]),
    ],
)
def test_a_text_is_truncated_together_with_its_prompt_or_partner(
    trainer: type[TrainingSettings], base: dict[str, Any], kind: RecordKind, inputs: list[tuple[str, ...]]
) -> None:
    settings = trainer.model_validate({"base": {"model": "sandbox/encoder", **base}})
    row = ("a", "b") if kind == RecordKind.SCORED_PAIR else ("a", "b", "c")
    assert list(inputs_of(row, kind, settings)) == inputs


def checked_as_trained(plan: Plan, store: Store, model: str) -> tuple[Mapping[str, float], Sequence[str]]:
    """Return the figures of gold, and the notes, as if its row were a training that reads three tokens."""
    trainer = BiEncoder.model_validate({"base": {"model": model}, "max_length": 3})
    training = Train("bi-encoder", trainer, seed=0)
    training.assume({"base": "0" * 40})
    runs = [replace(plan.runs[0], model=Stage(training))]
    results, notes = with_data_checks(runs, collect(plan, Artifacts(store)).runs[:1], Artifacts(store))
    return results[0].datasets[0].figures, notes


def test_sentences_truncated_in_training_are_counted(plan: Plan, store: Store) -> None:
    figures, _ = checked_as_trained(plan, store, "sandbox/encoder")
    reader = tokenizer_and_limit(Pretrained(model="sandbox/encoder"))
    assert reader is not None
    texts = [text for row in GOLD.splitlines() for text in row.split("\t")[:2]]
    lengths = [len(tokens) for tokens in reader[0](texts)["input_ids"]]
    assert figures["num_truncated"] == sum(length > 3 for length in lengths) > 0


def test_a_missing_base_is_named_unless_the_count_is_cached(plan: Plan, store: Store, tmp_path: Path) -> None:
    base = tmp_path / "base"
    shutil.copytree(local("sandbox/encoder"), base)
    counted = checked_as_trained(plan, store, str(base))
    base.rename(tmp_path / "gone")
    assert checked_as_trained(plan, store, str(base)) == counted
    shutil.rmtree(store.root / FOLDER)
    figures, notes = checked_as_trained(plan, store, str(base))
    assert "num_truncated" not in figures
    worded(notes, "What a training cuts of its data was not counted", str(base))
