"""Sources as sections of experiment files."""

import json
from pathlib import Path
from typing import Any, get_args

import pytest
from pydantic import TypeAdapter, ValidationError
from wording import refused

from synthbench.sources.description import Roots
from synthbench.sources.models import SOURCE_TYPES, FileSource, Source, TaskSource
from synthbench.sources.tasks import TASKS, TaskName


def parse(**description: Any) -> TaskSource | FileSource:
    (key,) = SOURCE_TYPES.keys() & description.keys()
    return SOURCE_TYPES[key].model_validate_json(json.dumps(description))


def complaint(**description: Any) -> str:
    with pytest.raises(ValidationError) as caught:
        parse(**description)
    return "; ".join(error["msg"] for error in caught.value.errors())


@pytest.fixture
def sentences(tmp_path: Path) -> Roots:
    (tmp_path / "own.txt").write_text("".join(f"Sentence {number}.\n" for number in range(100)))
    return Roots(base=tmp_path)


@pytest.mark.parametrize(
    ("given", "meant"),
    [("STSbenchmark", "STSb"), ("stsb", "STSb"), ("SICK", "SICK-R"), ("sts12-sts", "STS12")],
)
def test_a_task_s_name_elsewhere_gets_its_name_here(given: str, meant: str) -> None:
    assert f"did you mean '{meant}'?" in complaint(task=given)


def test_the_key_distinguishes_a_task_from_a_file() -> None:
    assert parse(task="STSb", split="dev", sample={"size": 1000, "seed": 1}).model_dump()["split"] == "dev"
    columns = {"sentence1": 0, "sentence2": 1, "score": 2}
    source = parse(file="gold.tsv", kind="scored_pair", score_range=[0, 5], columns=columns)
    assert isinstance(source, FileSource)
    assert TypeAdapter(Source).validate_json(source.model_dump_json()) == source


def test_every_task_has_a_description() -> None:
    assert set(TASKS) == set(get_args(TaskName))
    assert all(len(task.hub_revision) == 40 * bool(task.hub_id) for task in TASKS.values())


@pytest.mark.parametrize(
    ("description", "expected"),
    [
        ({"task": "STS-b"}, "Input should be 'STS12'"),
        ({"task": "STS12", "split": "train"}, "STS12 has no split 'train', only test"),
        ({"task": "STSb", "origin": "web"}, "Input should be 'folder' or 'hub'"),
        ({"task": "STSb", "sample": {"size": 0}}, "greater than or equal to 1"),
        ({"task": "STSb", "sampel": {}}, "Extra inputs are not permitted"),
        ({"file": "own.xlsx", "kind": "pair"}, "own.xlsx: the name must end in .tsv, .csv"),
        ({"file": "own.tsv"}, "kind is missing: what is a row of own.tsv?"),
        ({"file": "own.txt", "kind": "pair"}, "own.txt can't hold pair records"),
        ({"file": "own.tsv", "kind": "failure"}, "own.tsv can't hold failure records"),
        ({"file": "own.txt", "columns": {"sentence": "x"}}, "a .txt file has no columns"),
        ({"file": "own.tsv", "kind": "pair", "score_range": [1, 1]}, "score_range must be [lowest, highest]"),
        (
            {"file": "own.tsv", "kind": "pair", "columns": {"anchr": "a"}},
            "pair records have no field 'anchr'; did you mean 'anchor'?",
        ),
        (
            {"file": "own.jsonl", "kind": "pair", "columns": {"anchor": 0}},
            "columns.anchor: columns of a .jsonl file have names, no numbers",
        ),
    ],
)
def test_a_wrong_description_is_refused_before_reading(description: dict[str, Any], expected: str) -> None:
    assert expected in complaint(**description)


def test_a_sample_is_reproducible_ordered_and_part_of_a_larger_one(sentences: Roots) -> None:
    def drawn(size: int, seed: int = 0) -> list[str]:
        source = parse(file="own.txt", sample={"size": size, "seed": seed})
        return source.load(sentences).column("sentence")

    whole = parse(file="own.txt").load(sentences).column("sentence")
    small, large = drawn(10), drawn(40)
    assert small == drawn(10)
    assert small == [sentence for sentence in whole if sentence in set(small)]
    assert len(set(small)) == 10
    assert set(small) < set(large) < set(whole)
    assert set(drawn(10, seed=1)) != set(small)
    assert drawn(100) == whole


def test_a_sample_is_noted_in_the_manifest(sentences: Roots) -> None:
    manifest = parse(file="own.txt", sample={"size": 10, "seed": 3}).load(sentences).manifest
    assert manifest.notes == ["10 of 100 records, drawn with seed 3"]
    assert manifest.config["sample"] == {"size": 10, "seed": 3}


def test_a_sample_larger_than_its_source_is_refused(sentences: Roots) -> None:
    with refused("own.txt", "101", "100"):
        parse(file="own.txt", sample={"size": 101}).load(sentences)


CLASSES = {"file": "pairs.tsv", "kind": "scored_pair"}


@pytest.fixture
def pairs(tmp_path: Path) -> Roots:
    """Ten duplicates and thirty other pairs, about two topics."""
    lines = ["sentence1\tsentence2\tscore\ttopic"]
    lines += [
        f"one {row}\tother {row}\t{int(row < 10)}\t{'cloning' if row % 2 else 'guns'}" for row in range(40)
    ]
    (tmp_path / "pairs.tsv").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return Roots(base=tmp_path)


def test_a_balanced_sample_has_equally_many_records_of_each_class(pairs: Roots) -> None:
    drawn = {
        size: parse(**CLASSES, sample={"size": size, "balanced": True}).load(pairs) for size in (6, 9, 20)
    }
    counts = {
        size: [data.column("score").count(score) for score in (0.0, 1.0)] for size, data in drawn.items()
    }
    assert counts == {6: [3, 3], 9: [5, 4], 20: [10, 10]}
    assert set(drawn[6].column("id")) < set(drawn[20].column("id"))
    assert drawn[20].column("id") == sorted(drawn[20].column("id"))
    assert drawn[6].manifest.notes == ["6 of 40 records, drawn with seed 0, as many of each class"]
    with refused("pairs.tsv", "22", "10", "'1.0'", "11"):
        parse(**CLASSES, sample={"size": 22, "balanced": True}).load(pairs)


def test_a_source_may_be_limited_to_some_subsets(pairs: Roots) -> None:
    columns = {"subset": "topic"}
    data = parse(**CLASSES, columns=columns, subsets=["guns"], sample={"size": 5}).load(pairs)
    assert data.column("subset") == ["guns"] * 5
    assert data.manifest.notes[0] == "20 of 40 records: of the subsets guns"
    with refused("'gun'", "'guns'"):
        parse(**CLASSES, columns=columns, subsets=["gun"]).load(pairs)


def test_newer_unset_keys_are_left_out_of_identities(pairs: Roots) -> None:
    config = parse(**CLASSES, sample={"size": 3}).load(pairs).manifest.config
    assert not {"subsets", "part", "skip_blank"} & config.keys()
    assert config["sample"] == {"size": 3, "seed": 0}


def test_rows_with_a_blank_text_are_left_out_and_counted_on_request(pairs: Roots) -> None:
    file = pairs.base / "pairs.tsv"
    file.write_text(file.read_text(encoding="utf-8") + "alone\t \t0\tguns\n", encoding="utf-8")
    with refused("pairs.tsv:42", "sentence2"):
        parse(**CLASSES).load(pairs)
    data = parse(**CLASSES, skip_blank=True).load(pairs)
    assert len(data) == 40
    assert data.manifest.dropped == {"blank text": 1}
