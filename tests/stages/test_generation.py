import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import fakes
import pytest
from disks import flip
from fake_stages import RUNTIME, Data, in_process, run_job
from fakes import FakeMethod, Lines, work_done
from shared_stores import on_machine
from wording import refused, worded

from synthbench.api import GenerationContext, Record, Unit, UserError
from synthbench.data.dataset import SyntheticDataset
from synthbench.data.records import RecordKind, ScoredPair, Sentence
from synthbench.engine.jobs import JobOutcome, StageJob
from synthbench.engine.stage import Stage
from synthbench.engine.store import Store
from synthbench.engine.workspace import Journal
from synthbench.stages.generation import Generate

GOLD = Stage(Data())
PAIR = ScoredPair(sentence1="a", sentence2="b", score=0.5)


def generate_stage(**settings: object) -> Stage:
    return Stage(Generate("fake", FakeMethod.model_validate(settings)), {"source:gold": GOLD}, "silver")


def generate(store: Store, stage: Stage) -> JobOutcome:
    run_job(store, GOLD)
    return run_job(store, stage)


def generate_with_words(store: Store, stage: Stage) -> list[str]:
    """Generate, and return the messages."""
    run_job(store, GOLD)
    lines = Lines()
    assert StageJob(store, [stage], RUNTIME, lines).run().executed == (stage.identity,)
    return lines.said


def generate_elsewhere(root: Path, size: int) -> None:
    generate(Store(root), generate_stage(size=size))


def folder_of(store: Store, stage: Stage) -> Path:
    return store.folder(stage.identity) / "dataset"


def generated(store: Store, **settings: object) -> SyntheticDataset:
    stage = generate_stage(**settings)
    outcome = generate(store, stage)
    assert outcome.executed == (stage.identity,), outcome.error
    return SyntheticDataset.read(folder_of(store, stage))


def fault(store: Store, **settings: object) -> str:
    outcome = generate(store, generate_stage(**settings))
    assert outcome.is_user_error, outcome.error
    (message,) = outcome.error
    return message


def test_records_follow_the_order_of_their_units_not_of_generation(store: Store, work_log: Path) -> None:
    dataset = generated(store, size=4)
    assert dataset.column("sentence1") == ["first 0", "first 1", "first 2", "first 3"]
    assert work_done(work_log) == [f"generate unit {index}" for index in (3, 2, 1, 0)]


def test_units_of_equal_position_are_ordered_by_key(store: Store) -> None:
    dataset = generated(store, size=3, position="same")
    assert dataset.column("sentence1") == ["first 0", "first 1", "first 2"]


def test_failures_are_stored_separately_and_counted_as_dropped(store: Store) -> None:
    dataset = generated(store, size=4)
    assert [getattr(failure, "raw_text", "") for failure in dataset.failures()] == ["answer 2"]
    assert dataset.manifest.num_failures == 1
    assert dataset.manifest.num_records == 4
    assert dataset.manifest.dropped == {"too short": 2}


def test_the_manifest_states_the_origin_of_the_data(store: Store) -> None:
    manifest = generated(store, size=1).manifest
    gold = SyntheticDataset.read(folder_of(store, GOLD))
    assert (manifest.kind, manifest.method, manifest.version) == (RecordKind.SCORED_PAIR, "fake", 1)
    assert manifest.sources == {"gold": gold.manifest.content_hash}
    assert manifest.config["size"] == 1


class Measuring(FakeMethod):
    """Finds a number on its way."""

    found: float = 0.25

    def generate(
        self, sources: Mapping[str, SyntheticDataset], context: GenerationContext
    ) -> Iterator[Record | Unit]:
        context.measure("share of the rare", self.found)
        return super().generate(sources, context)


class Picky(FakeMethod):
    """A method that needs more gold than there is."""

    def check_data(self, sources: Mapping[str, SyntheticDataset]) -> None:
        raise UserError(f"{len(sources['gold'])} gold pairs are too few")


def test_a_method_may_check_its_sources_before_its_dependencies_are_computed(store: Store) -> None:
    run_job(store, GOLD)
    with refused("3", "gold", "pairs"):
        Generate("fake", Picky()).check({"source:gold": store.folder(GOLD.identity)})


def test_sources_of_a_method_without_a_check_are_not_read_early(tmp_path: Path) -> None:
    Generate("fake", FakeMethod()).check({"source:gold": tmp_path / "missing"})


def test_a_methods_measurements_are_stored_with_its_data(store: Store) -> None:
    stage = Stage(Generate("fake", Measuring(size=1)), {"source:gold": GOLD}, "silver")
    generate(store, stage)
    assert SyntheticDataset.read(folder_of(store, stage)).manifest.measured == {"share of the rare": 0.25}


def test_a_manifest_without_measurements_is_unchanged(store: Store) -> None:
    generate(store, generate_stage(size=1))
    manifest = (folder_of(store, generate_stage(size=1)) / "manifest.json").read_text(encoding="utf-8")
    assert "measured" not in manifest


def test_every_record_names_its_method(store: Store) -> None:
    assert generated(store, size=2).column("method") == ["fake", "fake"]


def test_records_without_units_keep_their_order(store: Store) -> None:
    dataset = generated(store, size=3, output="bare")
    assert dataset.column("sentence1") == ["first 2", "first 1", "first 0"]


def test_numpy_numbers_are_accepted_in_units(store: Store) -> None:
    assert generated(store, size=1, output="numpy", score=0.5).column("score") == [0.5]


def test_a_killed_generation_resumes_to_the_same_data_and_repeats_no_unit(
    tmp_path: Path, work_log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    undisturbed, disturbed = Store(tmp_path / "undisturbed"), Store(tmp_path / "disturbed")
    stage = generate_stage(size=7)
    monkeypatch.setenv(fakes.KILL_AFTER_UNITS, "2")
    for _ in range(3):
        process = in_process(generate_elsewhere, disturbed.root, 7)
        process.join()
        assert process.exitcode == -9
    assert not disturbed.has(stage.identity)
    monkeypatch.delenv(fakes.KILL_AFTER_UNITS)
    assert generate(disturbed, stage).executed
    done = work_done(work_log)
    assert sorted(done) == [f"generate unit {index}" for index in range(7)]
    assert generate(undisturbed, stage).executed
    for name in ("records.parquet", "failures.parquet", "manifest.json"):
        one, other = (folder_of(store, stage) / name for store in (undisturbed, disturbed))
        assert one.read_bytes() == other.read_bytes()


KEPT = {
    "key": "unit 2",
    "position": 2,
    "records": [{"kind": "scored_pair", "sentence1": "kept", "sentence2": "from before", "score": 0.5}],
}


def test_a_unit_truncated_by_a_kill_is_generated_again(store: Store, work_log: Path) -> None:
    stage = generate_stage(size=3)
    journal = Journal(store.workspace(stage.identity) / "journal.jsonl")
    journal.append(KEPT)
    journal.append({**KEPT, "key": "unit 1"})
    os.truncate(journal.file, journal.file.stat().st_size - 40)
    said = generate_with_words(store, stage)
    dataset = SyntheticDataset.read(folder_of(store, stage))
    assert dataset.column("sentence1") == ["first 0", "first 1", "kept"]
    assert work_done(work_log) == ["generate unit 1", "generate unit 0"]
    assert "journal" not in " ".join(said)


OTHER = {"kind": "pair", "sentence1": "a", "sentence2": "b"}
ANEW = ["first 0", "first 1", "first 2"]


@pytest.mark.parametrize(
    ("entry", "made", "is_taken"),
    [
        (KEPT, ["first 0", "first 1", "kept"], True),
        ({**KEPT, "records": [{"kind": "scored_pair", "sentence1": 1}]}, ANEW, False),
        ({"key": "unit 2"}, ANEW, False),
        ({**KEPT, "records": [OTHER]}, ANEW, False),
    ],
    ids=["its own", "wrong types", "no records", "another kind"],
)
def test_units_of_another_machine_are_taken_if_the_method_can_have_made_them(
    entry: Mapping[str, Any], made: list[str], is_taken: bool, tmp_path: Path, work_log: Path
) -> None:
    (tmp_path / "network").mkdir()
    here, there = (on_machine(str(tmp_path / "network"), tmp_path / name) for name in ("here", "there"))
    stage = generate_stage(size=3)
    folder = here.workspace(stage.identity)
    with suppress(KeyboardInterrupt), here.saving([stage.identity]):
        Journal(folder / "journal.jsonl").append(entry)
        raise KeyboardInterrupt
    said = generate_with_words(there, stage)
    assert SyntheticDataset.read(there.fetch(stage.identity) / "dataset").column("sentence1") == made
    assert any("can't be used" in line for line in said) is not is_taken
    assert len(work_done(work_log)) == 2 + (not is_taken)


def test_a_unit_damaged_before_the_resumption_is_reported_and_generated_again(
    tmp_path: Path, work_log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = generate_stage(size=7)
    undisturbed, killed = Store(tmp_path / "undisturbed"), Store(tmp_path / "killed")
    assert generate(undisturbed, stage).executed
    monkeypatch.setenv(fakes.KILL_AFTER_UNITS, "3")
    process = in_process(generate_elsewhere, killed.root, 7)
    process.join()
    monkeypatch.delenv(fakes.KILL_AFTER_UNITS)
    for share in (0.001, 0.2, 0.5, 0.8, 0.99):
        work_log.unlink()
        disturbed = Store(tmp_path / f"disturbed at {share}")
        shutil.copytree(killed.root, disturbed.root)
        flip(disturbed.root / "partial" / stage.identity / "journal.jsonl", share)
        said = generate_with_words(disturbed, stage)
        assert (
            len([line for line in said if line.startswith(f"{stage}: dropped 1 journal line, damaged")]) == 1
        )
        assert len(work_done(work_log)) == 7 - 3 + 1, "what is whole is not made again"
        for name in ("records.parquet", "failures.parquet", "manifest.json"):
            one, other = (folder_of(store, stage) / name for store in (undisturbed, disturbed))
            assert one.read_bytes() == other.read_bytes()


def test_units_of_an_earlier_version_without_checksums_are_generated_again(
    store: Store, work_log: Path
) -> None:
    stage = generate_stage(size=3)
    journal = store.workspace(stage.identity) / "journal.jsonl"
    journal.write_text(json.dumps(KEPT) + "\n", encoding="utf-8")
    assert any("of an earlier version" in line for line in generate_with_words(store, stage))
    assert len(work_done(work_log)) == 3


def test_a_forced_generation_starts_from_scratch(store: Store, work_log: Path) -> None:
    stage = generate_stage(size=2)
    run_job(store, GOLD)
    journal = Journal(store.workspace(stage.identity) / "journal.jsonl")
    journal.append({"key": "unit 0", "position": 0, "records": []})
    outcome = StageJob(store, [stage], RUNTIME, Lines(), frozenset([stage.identity])).run()
    assert outcome.executed == (stage.identity,)
    assert len(work_done(work_log)) == 2


def test_two_units_with_the_same_key_are_refused(store: Store) -> None:
    worded(fault(store, size=2, output="same key"), "'same'")


def test_a_method_that_generates_no_records_says_why(store: Store) -> None:
    worded(fault(store, size=0), "2")
    message = fault(store, size=3, output="failures")
    worded(message, "3", "2")


def test_a_lone_surrogate_is_refused_with_its_record(store: Store) -> None:
    assert "holds a lone surrogate" in fault(store, size=1, output="half character")


def test_a_method_can_not_load_a_dependency_as_another_type(
    store: Store, experiment: object, tmp_path: Path
) -> None:
    from synthbench.engine.workspace import Workspace
    from synthbench.stages.asking import Context

    (tmp_path / "model.json").write_text('{"strength": 0.25}')
    context = Context({"need:labeller": tmp_path}, Workspace(tmp_path, RUNTIME, Lines()), ())
    assert context.pair_scorer("labeller").score([("a", "b")]).tolist() == [0.25]
    with pytest.raises(TypeError, match="'labeller' is a pair scorer, not an encoder"):
        context.encoder("labeller")


@pytest.mark.parametrize(
    ("yielded", "told"),
    [
        (1, "it yielded 1 (int)"),
        (Unit, "it yielded <class 'synthbench.data.views.Unit'> (type)"),
        (Sentence(sentence="a"), "it yielded a record of kind sentence: Sentence("),
        (replace(PAIR, sentence2=None), "it yielded a scored_pair whose sentence2 is None, no text"),
        (replace(PAIR, score="high"), "it yielded a scored_pair whose score is 'high', no number"),
        (replace(PAIR, subset=3), "it yielded a scored_pair whose subset is 3, no text"),
        (Unit("a", 0, None), "it yielded the Unit 'a', whose records are None, no tuple"),
        (Unit("a", 0, PAIR), "it yielded the Unit 'a', whose records are ScoredPair("),
        (Unit("a", 0, (PAIR, "text")), "it yielded the Unit 'a' with 'text' (str)"),
        (Unit("a", 0, (Sentence(sentence="a"),)), "it yielded the Unit 'a' with a record of kind sentence"),
        (Unit("a", "first", ()), "it yielded the Unit 'a', whose position is 'first', no whole number"),
        (Unit(7, 0, ()), "it yielded the Unit 7, whose key is no text"),
    ],
)
def test_an_output_of_the_wrong_kind_is_reported_in_one_line_and_not_journalled(
    store: Store, monkeypatch: pytest.MonkeyPatch, yielded: Any, told: str
) -> None:
    monkeypatch.setattr(FakeMethod, "generate", lambda self, sources, context: iter([PAIR, yielded]))
    message = fault(store)
    assert message.startswith("fake: `generate` must yield records of kind scored_pair, Failures, or Units")
    assert told in message
    assert not store.workspace(generate_stage().identity).joinpath("journal.jsonl").exists()


def test_a_method_that_returns_none_is_reported_in_one_line(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FakeMethod, "generate", lambda self, sources, context: None)
    assert fault(store).endswith("it returned None")


def test_numpy_numbers_are_accepted_as_scores(store: Store) -> None:
    assert generated(store, output="numpy").column("score") == [0.5] * 4
