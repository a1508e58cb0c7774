import json
import os
import subprocess
import sys
from collections import Counter
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from synthbench.data.records import RecordKind
from synthbench.sources.description import Roots
from synthbench.sources.models import SOURCE_TYPES, Source, WorldSource
from synthbench.worlds.sandbox import VERSION
from synthbench.worlds.sandbox.parsing import parse

HERE = Roots()
SETS = {
    "pairs": RecordKind.SCORED_PAIR,
    "sentences": RecordKind.SENTENCE,
    "triplets": RecordKind.TRIPLET,
    "rankings": RecordKind.RANKING,
    "duplicates": RecordKind.SCORED_PAIR,
    "two-classes": RecordKind.SENTENCE,
    "six-classes": RecordKind.SENTENCE,
}
GOLDEN_SCRIPT = """
import json, sys
from synthbench.sources.description import Roots
from synthbench.sources.models import WorldSource
for name in json.loads(sys.argv[1]):
    description = {"sandbox": name, "split": "test", "size": 40, "seed": 3}
    print(WorldSource.model_validate(description).load(Roots()).manifest.content_hash)
"""
GOLDEN_SHA256 = {
    "pairs": "4a6f54880b0ef6df85b0381ba0b5340cd20036906ee718d19cc4a97f5a3bda42",
    "sentences": "e50224eb83c2d013f203d518828a444c4a27f8e9b37bac102831fbd8e1fa7aaa",
    "triplets": "f90711f7e29d3acbc9450582865e0e40723095c2b96e01be30244fcfde4c8d5b",
    "rankings": "80653d8c5d13bbd2bc431113e0a8d8304dcc25da6faead31c44495b2f9680e98",
    "duplicates": "45848877bcb6436f5a855b51e3679201541630e636d4a207ccf7bea1ee7bf5ff",
    "two-classes": "2095f4d2ba348c0d58bb937d37af1d9945c675f94814782ec52e066e660108cd",
    "six-classes": "1cc77701460fa7622d2bc4b2f8df9a9e36fab7112105664d8ab701d7f31c38a0",
}


def described(**description: Any) -> WorldSource:
    return WorldSource.model_validate_json(json.dumps(description))


def rows(**description: Any) -> list[tuple[Any, ...]]:
    data = described(**description).load(HERE)
    return list(zip(*(data.column(name) for name in ("id", "sentence1", "sentence2", "score")), strict=True))


def texts(split: str, sandbox: str = "sentences", size: int = 300, **more: Any) -> set[str]:
    data = described(sandbox=sandbox, split=split, size=size, **more).load(HERE)
    return set(data.texts)


def test_the_sandbox_is_an_ordinary_source() -> None:
    source = described(sandbox="pairs", split="dev", size=10)
    assert SOURCE_TYPES["sandbox"] is WorldSource
    assert TypeAdapter(Source).validate_json(source.model_dump_json()) == source
    assert source.fingerprint(HERE) == {"sandbox": str(VERSION)}
    assert source.load(HERE).manifest.revisions == {"sandbox": str(VERSION)}


def test_pairs_have_scores_relations_and_registers() -> None:
    data = described(sandbox="pairs", split="test", size=50).load(HERE)
    assert data.kind == RecordKind.SCORED_PAIR
    assert len(set(data.column("id"))) == 50
    assert set(data.column("split")) == {"test"}
    assert set(data.column("subset")) == {"captions", "headlines"}
    labels = data.column("label")
    shares = {"paraphrase": 10, "hard negative": 15, "related": 15, "unrelated": 10}
    assert {label: labels.count(label) for label in labels} == shares
    for label, score in zip(labels, data.column("score"), strict=True):
        assert 0 <= score <= 1
        # A related event, another variation of a story, may happen to be the same one.
        assert (score == 1) == (label == "paraphrase") or label == "related"


@pytest.mark.parametrize("name", ["sentences", "two-classes", "six-classes"])
def test_sentences_are_distinct(name: str) -> None:
    assert len(texts("train", name, 100)) == 100


@pytest.mark.parametrize(("name", "kind"), SETS.items())
def test_every_set_has_the_requested_size_split_and_seed_and_unique_ids(name: str, kind: RecordKind) -> None:
    source = described(sandbox=name, split="dev", size=30, seed=5)
    data = source.load(HERE)
    assert source.record_kind == data.kind == kind
    assert len(set(data.column("id"))) == 30
    assert (set(data.column("split")), set(data.column("seed"))) == ({"dev"}, {5})
    assert list(described(sandbox=name, split="dev", size=20, seed=5).load(HERE)) == list(data)[:20]


def test_duplicates_have_score_label_and_topic() -> None:
    data = described(sandbox="duplicates", split="test", size=40, domains=["science"]).load(HERE)
    labelled = zip(data.column("label"), data.column("score"), strict=True)
    assert Counter(labelled) == {("duplicate", 1.0): 20, ("different", 0.0): 20}
    assert set(data.column("subset")) == {"science/a comet", "science/a telescope"}


@pytest.mark.parametrize(("more", "number"), [({}, 20), ({"candidates": 5}, 5)])
def test_rankings_have_the_requested_number_of_candidates(more: dict[str, int], number: int) -> None:
    data = described(sandbox="rankings", split="test", size=3, **more).load(HERE)
    assert [len(record.candidates) for record in data] == [number] * 3


@pytest.mark.parametrize(("name", "classes"), [("two-classes", 2), ("six-classes", 6)])
def test_each_class_label_occurs_equally_often(name: str, classes: int) -> None:
    labels = Counter(described(sandbox=name, split="train", size=60).load(HERE).column("label"))
    assert list(labels.values()) == [60 // classes] * classes


@pytest.mark.parametrize("hash_seed", ["1", "2"])
def test_the_sets_of_this_version_are_the_same_on_every_machine(hash_seed: str) -> None:
    """Other records need another version of the sandbox: stored results name it."""
    printed = subprocess.run(
        [sys.executable, "-c", GOLDEN_SCRIPT, json.dumps(list(GOLDEN_SHA256))],
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
        capture_output=True,
        check=True,
        text=True,
    ).stdout
    assert dict(zip(GOLDEN_SHA256, printed.split(), strict=True)) == GOLDEN_SHA256


def test_a_source_without_candidates_keeps_its_identity() -> None:
    assert "candidates" not in described(sandbox="pairs", split="dev", size=10).model_dump(mode="json")
    source = described(sandbox="rankings", split="dev", size=10, candidates=5)
    assert WorldSource.model_validate_json(source.model_dump_json()) == source


@pytest.mark.parametrize(("group", "domains"), [("held-out", ("medicine",)), ("known-by-name", ("science",))])
def test_a_group_of_domains_has_a_name(group: str, domains: tuple[str, ...]) -> None:
    source = described(sandbox="pairs", split="dev", size=10, domains=group)
    assert source == described(sandbox="pairs", split="dev", size=10, domains=domains)
    rest = described(sandbox="pairs", split="dev", size=10, domains="in-domain").domains
    assert rest is not None
    assert not set(domains) & set(rest)
    assert len(rest) == 13


def test_a_description_fixes_the_records_and_a_larger_size_only_adds_some() -> None:
    small = rows(sandbox="pairs", split="train", size=40)
    assert small == rows(sandbox="pairs", split="train", size=80)[:40]
    assert small != rows(sandbox="pairs", split="train", size=40, seed=1)


def test_the_order_of_listed_names_does_not_matter() -> None:
    assert rows(sandbox="pairs", split="dev", size=20, domains=["music", "sea"]) == rows(
        sandbox="pairs", split="dev", size=20, domains=["sea", "music"]
    )


def test_no_sentence_occurs_in_two_splits() -> None:
    found = {split: texts(split) | texts(split, "pairs") for split in ("train", "dev", "test")}
    assert not found["train"] & found["dev"]
    assert not found["train"] & found["test"]
    assert not found["dev"] & found["test"]


def test_records_have_only_the_requested_domains_and_registers() -> None:
    found = texts("test", "pairs", 60, domains=["sea", "music"], registers=["captions"])
    assert all(text.endswith(".") for text in found)
    events = [parse(text) for text in found]
    assert {event.domain for event in events if event} == {"sea", "music"}
    assert None not in events


def test_one_domain_has_related_pairs_instead_of_unrelated_ones() -> None:
    data = described(sandbox="pairs", split="test", size=20, domains=["sea"]).load(HERE)
    assert data.column("label").count("related") == 10
    assert "unrelated" not in data.column("label")


@pytest.mark.parametrize(
    ("description", "expected"),
    [
        ({"domains": ["musik"]}, "the sandbox has no domain 'musik'; did you mean 'music'?"),
        ({"domains": []}, "at least 1 item"),
        ({"registers": ["caption"]}, "Input should be 'captions' or 'headlines'"),
        ({"sandbox": "quadruplets"}, "Input should be 'pairs', 'sentences', 'triplets', 'rankings', "),
        ({"domains": "sea"}, "a list, or one of in-domain, held-out, known-by-name; 'sea' is neither"),
        ({"domains": 7}, "a list, or one of in-domain, held-out, known-by-name; 7 is neither"),
        ({"candidates": 5}, "only rankings have candidates, pairs have none"),
        ({"sandbox": "rankings", "candidates": 1}, "greater than or equal to 2"),
        (
            {"sandbox": "six-classes", "domains": ["sea"]},
            "six-classes takes no domains: its classes are cooking",
        ),
        (
            {"sandbox": "two-classes", "domains": "held-out"},
            "two-classes has none of these domains, but sport, ",
        ),
        ({"split": "validation"}, "Input should be 'train', 'dev' or 'test'"),
        ({"size": 0}, "greater than or equal to 1"),
        ({"seeds": 1}, "Extra inputs are not permitted"),
        ({"size": 5, "sample": {"size": 6}}, "sample.size 6 is more than the 5 records"),
    ],
)
def test_a_wrong_description_is_refused(description: dict[str, Any], expected: str) -> None:
    with pytest.raises(ValidationError, match=expected.replace("?", r"\?")):
        described(**{"sandbox": "pairs", "split": "dev", "size": 10, **description})
