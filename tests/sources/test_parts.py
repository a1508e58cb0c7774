"""Parts of a source: records that stay together, balance, and omitted records."""

import itertools
import json
import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from wording import refused

from synthbench.config.documents import Document
from synthbench.config.problems import Problems
from synthbench.config.profiles import substitute_tasks
from synthbench.data.records import ScoredPair
from synthbench.sources.description import Roots
from synthbench.sources.models import FileSource
from synthbench.sources.parts import SourcePart, divide

SENTENCES = st.integers(0, 12).map("sentence {}".format)
PAIRS = st.lists(
    st.builds(
        ScoredPair,
        sentence1=SENTENCES,
        sentence2=SENTENCES,
        score=st.sampled_from([0.0, 1.0]),
        subset=st.sampled_from(["a", "b", "c"]),
    ),
    min_size=1,
    max_size=30,
)
RULES = st.sampled_from(["sentence", "record", "subset"])
quick = settings(max_examples=50)


def part(**given: Any) -> SourcePart:
    return SourcePart.model_validate({"take": "train", **given})


def distinct(size: int, positive: int) -> list[ScoredPair]:
    """Return pairs without common sentences; the first `num_positive` are positive."""
    return [
        ScoredPair(
            sentence1=f"{row} one", sentence2=f"{row} two", score=float(row < positive), subset=str(row % 3)
        )
        for row in range(size)
    ]


@quick
@given(PAIRS, RULES, st.integers(0, 3))
def test_connected_records_are_in_one_part(pairs: Sequence[ScoredPair], rule: str, seed: int) -> None:
    found = divide(pairs, part(by=rule, seed=seed))
    parts: dict[object, set[object]] = {}
    for pair, split in zip(pairs, found, strict=True):
        keys = {"sentence": pair.texts(), "record": [frozenset(pair.texts())], "subset": [pair.subset]}
        for key in keys[rule] if split else ():
            parts.setdefault(key, set()).add(split)
    assert all(len(splits) == 1 for splits in parts.values())
    assert rule == "sentence" or None not in found


@quick
@given(PAIRS, RULES, st.randoms(use_true_random=False))
def test_the_order_of_the_records_does_not_matter(
    pairs: Sequence[ScoredPair], rule: str, draw: random.Random
) -> None:
    rows = list(range(len(pairs)))
    draw.shuffle(rows)
    shuffled = divide([pairs[row] for row in rows], part(by=rule))
    found = Counter(zip(pairs, divide(pairs, part(by=rule)), strict=True))
    assert Counter(zip((pairs[row] for row in rows), shuffled, strict=True)) == found


def test_the_order_does_not_matter_even_if_connected_records_are_separated() -> None:
    edges = [(0, 2), (0, 2), (0, 2), (0, 2), (0, 10), (1, 2), (0, 1), (0, 1), (1, 0)]
    pairs = [ScoredPair(sentence1=f"s {one}", sentence2=f"s {two}", score=0.0) for one, two in edges]
    found = {
        tuple(sorted(zip((pair.texts() for pair in order), map(str, divide(order, part())), strict=True)))
        for order in itertools.permutations(pairs[-5:])
    }
    assert len(found) == 1


@quick
@given(st.integers(20, 120), st.data(), st.sampled_from(["sentence", "record"]))
def test_unconnected_records_give_exact_shares_and_classes(size: int, data: st.DataObject, rule: str) -> None:
    positive = data.draw(st.integers(0, size))
    pairs = distinct(size, positive)
    shares = {"train": 0.6, "dev": 0.15, "test": 0.25}
    found = divide(pairs, part(by=rule, shares=shares))
    for split, share in shares.items():
        scores = [pair.score for pair, each in zip(pairs, found, strict=True) if each == split]
        assert len(scores) == pytest.approx(share * size, abs=2)
        assert sum(scores) == pytest.approx(share * positive, abs=2)


def test_each_subset_is_divided_by_record_in_the_same_shares() -> None:
    pairs = distinct(300, 150)
    found = divide(pairs, part(by="record"))
    numbers = Counter((pair.subset, split) for pair, split in zip(pairs, found, strict=True))
    for subset in "012":
        assert numbers[subset, "test"] == pytest.approx(20, abs=2)


def test_the_seed_determines_the_parts() -> None:
    pairs = distinct(50, 25)
    assert divide(pairs, part()) == divide(pairs, part())
    assert divide(pairs, part()) != divide(pairs, part(seed=1))


def test_a_large_connected_group_loses_only_records_between_parts() -> None:
    chain = [ScoredPair(sentence1=f"s{n}", sentence2=f"s{n + 1}", score=0.5) for n in range(100)]
    found = divide(chain, part())
    assert 1 <= found.count(None) <= 8
    assert Counter(found)["train"] == pytest.approx(70, abs=8)
    assert Counter(found)["test"] >= 10


@pytest.mark.parametrize(
    ("given", "fault"),
    [
        ({"shares": {"train": 0.7, "dev": 0.1}}, "shares: their sum is 0.8, not 1"),
        ({"shares": {"dev": 0.5, "test": 0.5}}, "take: shares has no 'train', only dev, test"),
        ({"by": "topic"}, "Input should be 'sentence', 'record' or 'subset'"),
    ],
)
def test_an_impossible_rule_is_refused(given: dict[str, Any], fault: str) -> None:
    with pytest.raises(ValidationError, match=fault):
        part(**given)


def source(**given: Any) -> FileSource:
    description = {"file": "pairs.tsv", "kind": "scored_pair", **given}
    return FileSource.model_validate_json(json.dumps(description))


@pytest.fixture
def roots(tmp_path: Path) -> Roots:
    rows = [f"{pair.sentence1}\t{pair.sentence2}\t{pair.score:g}\n" for pair in distinct(40, 20)]
    (tmp_path / "pairs.tsv").write_text("sentence1\tsentence2\tscore\n" + "".join(rows))
    return Roots(base=tmp_path)


def test_a_source_reads_one_part_and_records_it_in_the_manifest(roots: Roots) -> None:
    taken = {split: source(part={"take": split}) for split in ("train", "dev", "test")}
    data = {split: each.load(roots) for split, each in taken.items()}
    assert {split: len(each) for split, each in data.items()} == {"train": 28, "dev": 4, "test": 8}
    assert len({key for each in data.values() for key in each.column("id")}) == 40
    assert set(data["dev"].column("split")) == {"dev"}
    assert taken["dev"].final_split == "dev"
    note = "part dev by sentence, with seed 0, of 40 records: 28 in train, 4 in dev, 8 in test"
    assert data["dev"].manifest.notes == [note]
    assert "part" not in source().model_dump()


def test_sampling_and_conversion_apply_to_the_part(roots: Roots) -> None:
    drawn = source(part={"take": "test"}, sample={"size": 10}, **{"as": "sentence"}).load(roots)
    whole = source(part={"take": "test"}, **{"as": "sentence"}).load(roots)
    assert (len(drawn), len(whole)) == (10, 16)
    assert {*drawn.texts} < {*whole.texts}


def test_a_rule_by_subset_needs_subsets(roots: Roots) -> None:
    with refused("pairs.tsv", "part.by", "pairs.tsv/0002"):
        source(part={"take": "test", "by": "subset"}).load(roots)


def test_a_profile_replaces_a_part_with_the_same_split() -> None:
    hub = {"hub": "org/name", "file": "pairs.tsv", "kind": "scored_pair", "part": {"take": "dev"}}
    table = {"org/*": {"sandbox": "pairs", "size": 10}}
    replaced = substitute_tasks(Document({"sources": {"gold": hub}}, {}), table, Problems())
    assert replaced.data["sources"]["gold"] == {"split": "dev", "sandbox": "pairs", "size": 10}


def test_a_profile_may_replace_a_file_of_the_data_folder_and_otherwise_leaves_it() -> None:
    bws = {"file": "data:bws.csv", "kind": "scored_pair", "subsets": ["Cloning"], "sample": {"size": 5}}
    table = {"data:bws*": {"sandbox": "pairs", "size": 10}}
    problems = Problems()
    sources = {"bws": bws, "other": {**bws, "file": "data:other.csv"}, "own": {**bws, "file": "bws.csv"}}
    replaced = substitute_tasks(Document({"sources": sources}, {}), table, problems).data["sources"]
    assert replaced["bws"] == {"split": "train", "sandbox": "pairs", "size": 10, "sample": {"size": 5}}
    assert (replaced["other"], replaced["own"]) == (sources["other"], sources["own"])
    problems.raise_if_any()
