"""Samples of records stored in results, so that reports can show them without the store."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from synthbench.data.dataset import SyntheticDataset
from synthbench.data.records import Failure, Ranking, Record, RecordKind, ScoredPair, Triplet
from synthbench.engine.artifacts import DATASET_FOLDER, Artifacts
from synthbench.engine.store import Store
from synthbench.reporting.results import DatasetSummary, RecordExcerpt, RunResult
from synthbench.results.samples import TEXT_LENGTH, Samples

OURS, THEIRS, GOLD, SECOND_SEED = (str(number) * 64 for number in range(4))


def pair(sentence2: str, score: float, sentence1: str = "A dog runs.", method: str = "") -> ScoredPair:
    return ScoredPair(sentence1=sentence1, sentence2=sentence2, score=score, method=method)


def put(
    store: Store, stage: str, records: Sequence[Record], kind: RecordKind = RecordKind.SCORED_PAIR
) -> None:
    folder = store.workspace(stage) / "output" / DATASET_FOLDER
    folder.mkdir()
    failures = [Failure(id=str(number), reason="refusal") for number in range(2)]
    SyntheticDataset.create(kind, records, failures=failures, revisions={"llm": "abc"}).write(folder)
    store.commit(stage, {})


def run(variant: str, seed: int, *stages: str) -> RunResult:
    datasets = tuple(
        DatasetSummary(part=f"part{n}", kind="scored_pair", num_records=1, content_hash="h", stage=stage)
        for n, stage in enumerate(stages)
    )
    return RunResult(variant=variant, seed=seed, identity=f"{variant}{seed}", scores=(), datasets=datasets)


@pytest.fixture
def filled(store: Store) -> Store:
    put(store, OURS, [pair("A dog is running.", 1.0, method="dino"), pair("Hi.", 0.0)])
    put(store, THEIRS, [pair("A hound runs.", 1.0), pair("It rains.", 0.5, sentence1="Alone.")])
    put(store, SECOND_SEED, [pair("Never seen.", 0.1)])
    return store


def test_each_data_set_of_a_rows_first_seed_has_records_with_their_origin(filled: Store) -> None:
    excerpts = Samples(
        [run("ours", 0, OURS), run("ours", 1, SECOND_SEED), run("both", 0, OURS)], Artifacts(filled)
    )
    (excerpt,) = excerpts.of_each()
    assert excerpt.stage == OURS
    assert excerpt.failures == (("refusal", 2),)
    assert excerpt.revisions == (("llm", "abc"),)
    shown = {record.texts[1][1]: record for record in excerpt.records}
    assert set(shown) == {"A dog is running.", "Hi."}
    dog = shown["A dog is running."]
    assert dog.texts[0] == ("sentence1", "A dog runs.")
    assert dog.score == 1.0
    assert dict(dog.origin) | {"id": ""} == {"method": "dino", "id": ""}


def test_records_of_data_sets_for_one_sentence_are_side_by_side(filled: Store) -> None:
    (shared,) = Samples([run("ours", 0, OURS), run("theirs", 0, THEIRS)], Artifacts(filled)).side_by_side()
    assert shared.sentence == "A dog runs."
    found = {each.stages: [record.texts[1][1] for record in each.records] for each in shared.found}
    assert found == {(OURS,): ["A dog is running.", "Hi."], (THEIRS,): ["A hound runs."]}


def test_data_sets_with_equal_records_for_a_sentence_share_an_entry(filled: Store) -> None:
    put(filled, GOLD, [pair("A hound runs.", 1.0), pair("Else.", 0.3, sentence1="Other.")])
    runs = [run("ours", 0, OURS), run("theirs", 0, THEIRS, GOLD)]
    (shared,) = Samples(runs, Artifacts(filled)).side_by_side()
    assert [each.stages for each in shared.found] == [(OURS,), (THEIRS, GOLD)]


def test_data_sets_with_unequal_numbers_of_records_for_a_sentence_share_no_entry(store: Store) -> None:
    four = [pair("highest", 1.0), *(pair(f"lower{number}", 0.1) for number in range(3))]
    put(store, OURS, four)
    put(store, THEIRS, [*four, *(pair(f"lower{number}", 0.1) for number in range(3))])
    put(store, GOLD, [pair("t", 0.5)])

    runs = [run("a", 0, OURS), run("b", 0, THEIRS), run("c", 0, GOLD)]
    (shared,) = Samples(runs, Artifacts(store)).side_by_side()
    assert {each.stages: each.num_records for each in shared.found} == {(OURS,): 4, (THEIRS,): 7, (GOLD,): 1}


def test_sentences_with_equal_records_everywhere_are_not_shown(filled: Store) -> None:
    put(filled, GOLD, [pair("A dog is running.", 1.0), pair("Hi.", 0.0)])
    assert [*Samples([run("ours", 0, OURS, GOLD)], Artifacts(filled)).side_by_side()] == []


def test_of_a_sentences_many_records_a_few_with_distinct_scores_are_shown(store: Store) -> None:
    many = [pair(f"s{score}{n}", score) for score in (0.0, 0.5, 1.0) for n in range(9)]
    put(store, OURS, many)
    put(store, THEIRS, [pair("t", 1.0)])
    (shared,) = Samples([run("a", 0, OURS), run("b", 0, THEIRS)], Artifacts(store)).side_by_side()
    assert [record.score for record in shared.found[0].records] == [1.0, 1.0, 0.5, 0.0]
    assert shared.found[0].num_records == 27


def test_long_texts_are_truncated_and_candidates_counted(store: Store) -> None:
    grades = [0.0] * 8 + [1.0]
    query = Ranking(query="q" * 999, candidates=tuple(map(str, range(9))), grades=tuple(grades))
    put(store, OURS, [query], RecordKind.RANKING)
    (excerpt,) = Samples([run("a", 0, OURS)], Artifacts(store)).of_each()
    texts = excerpt.records[0].texts
    assert texts[0] == ("query", "q" * (TEXT_LENGTH - 1) + "…")
    assert texts[1:] == (
        ("of grade 1", "8"),
        *(("of grade 0", str(number)) for number in range(4)),
        ("and", "4 further candidates"),
    )


def test_every_negative_of_a_triplet_is_shown(store: Store) -> None:
    triplet = Triplet(anchor="a b", positive="c d", negative="e f", further_negatives=("g h", "i j"))
    put(store, OURS, [triplet], RecordKind.TRIPLET)
    (excerpt,) = Samples([run("ours", 0, OURS)], Artifacts(store)).of_each()
    assert excerpt.records[0].texts[2:] == (("negative", "e f"), ("negative2", "g h"), ("negative3", "i j"))


def test_samples_are_cached_and_missing_data_left_out(filled: Store, tmp_path: Path) -> None:
    runs = [run("ours", 0, OURS), run("theirs", 0, THEIRS)]
    before = (
        [*Samples(runs, Artifacts(filled)).of_each()],
        [*Samples(runs, Artifacts(filled)).side_by_side()],
    )
    filled.folder(OURS).rename(tmp_path / "gone")
    assert (
        [*Samples(runs, Artifacts(filled)).of_each()],
        [*Samples(runs, Artifacts(filled)).side_by_side()],
    ) == before
    assert [*Samples([run("x", 0, "9" * 64)], Artifacts(filled)).of_each()] == []


def test_an_excerpt_is_read_back_unchanged(filled: Store) -> None:
    (excerpt,) = Samples([run("ours", 0, OURS)], Artifacts(filled)).of_each()
    record = excerpt.records[0]
    assert RecordExcerpt.model_validate_json(record.model_dump_json()) == record
