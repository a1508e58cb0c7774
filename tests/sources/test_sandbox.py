import json
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from synthbench.data.records import RecordKind
from synthbench.sandbox import VERSION
from synthbench.sandbox.parsing import parse
from synthbench.sources.models import SOURCE_TYPES, Source
from synthbench.sources.places import Places
from synthbench.sources.sandbox import SandboxSource

HERE = Places()


def described(**description: Any) -> SandboxSource:
    return SandboxSource.model_validate_json(json.dumps(description))


def rows(**description: Any) -> list[tuple[Any, ...]]:
    data = described(**description).load(HERE)
    return list(zip(*(data.column(name) for name in ("id", "sentence1", "sentence2", "score")), strict=True))


def texts(split: str, sandbox: str = "sentences", size: int = 300, **more: Any) -> set[str]:
    data = described(sandbox=sandbox, split=split, size=size, **more).load(HERE)
    columns = ("sentence",) if sandbox == "sentences" else ("sentence1", "sentence2")
    return {text for column in columns for text in data.column(column)}


def test_it_is_a_source_like_any_other() -> None:
    source = described(sandbox="pairs", split="dev", size=10)
    assert SOURCE_TYPES["sandbox"] is SandboxSource
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
        assert (score == 1) == (label == "paraphrase")


def test_sentences_are_unlabelled_and_distinct() -> None:
    data = described(sandbox="sentences", split="train", size=100).load(HERE)
    assert data.kind == RecordKind.SENTENCE
    assert len(set(data.column("sentence"))) == 100


def test_the_same_description_gives_the_same_records_and_a_larger_size_only_more_of_them() -> None:
    small = rows(sandbox="pairs", split="train", size=40)
    assert small == rows(sandbox="pairs", split="train", size=80)[:40]
    assert small != rows(sandbox="pairs", split="train", size=40, seed=1)


def test_the_order_in_which_names_are_listed_changes_nothing() -> None:
    assert rows(sandbox="pairs", split="dev", size=20, domains=["music", "sea"]) == rows(
        sandbox="pairs", split="dev", size=20, domains=["sea", "music"]
    )


def test_no_sentence_stands_in_two_splits() -> None:
    found = {split: texts(split) | texts(split, "pairs") for split in ("train", "dev", "test")}
    assert not found["train"] & found["dev"]
    assert not found["train"] & found["test"]
    assert not found["dev"] & found["test"]


def test_domains_and_registers_are_kept_to() -> None:
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
        ({"sandbox": "triplets"}, "Input should be 'pairs' or 'sentences'"),
        ({"split": "validation"}, "Input should be 'train', 'dev' or 'test'"),
        ({"size": 0}, "greater than or equal to 1"),
        ({"seeds": 1}, "Extra inputs are not permitted"),
        ({"size": 5, "sample": {"size": 6}}, "a sample of 6 from 5 records"),
    ],
)
def test_a_wrong_description_is_refused(description: dict[str, Any], expected: str) -> None:
    with pytest.raises(ValidationError, match=expected.replace("?", r"\?")):
        described(**{"sandbox": "pairs", "split": "dev", "size": 10, **description})
