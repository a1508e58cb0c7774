"""Sources as they stand in experiment files."""

import json
from pathlib import Path
from typing import Any, get_args

import pytest
from pydantic import TypeAdapter, ValidationError

from synthbench.errors import UserError
from synthbench.sources.models import SOURCE_TYPES, FileSource, Source, TaskSource
from synthbench.sources.places import Places
from synthbench.sources.tasks import TASKS, TaskName


def parse(**description: Any) -> TaskSource | FileSource:
    (key,) = SOURCE_TYPES.keys() & description.keys()
    return SOURCE_TYPES[key].model_validate_json(json.dumps(description))


def complaint(**description: Any) -> str:
    with pytest.raises(ValidationError) as caught:
        parse(**description)
    return "; ".join(error["msg"] for error in caught.value.errors())


@pytest.fixture
def sentences(tmp_path: Path) -> Places:
    (tmp_path / "own.txt").write_text("".join(f"Sentence {number}.\n" for number in range(100)))
    return Places(base=tmp_path)


def test_the_key_tells_a_task_from_a_file() -> None:
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
def test_a_wrong_description_is_told_before_anything_is_read(
    description: dict[str, Any], expected: str
) -> None:
    assert expected in complaint(**description)


def test_a_sample_is_reproducible_in_order_and_part_of_a_larger_one(sentences: Places) -> None:
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


def test_a_sample_is_told_in_the_manifest(sentences: Places) -> None:
    manifest = parse(file="own.txt", sample={"size": 10, "seed": 3}).load(sentences).manifest
    assert manifest.notes == ["10 of 100 records, drawn with seed 3"]
    assert manifest.config["sample"] == {"size": 10, "seed": 3}


def test_a_sample_larger_than_its_source_is_refused(sentences: Places) -> None:
    with pytest.raises(UserError, match=r"own\.txt: a sample of 101 from 100 records"):
        parse(file="own.txt", sample={"size": 101}).load(sentences)
