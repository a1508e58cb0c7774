"""Content keys of test items."""

import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from record_strategies import PROPERTY, RECORDS

from synthbench.data.dataset import SyntheticDataset
from synthbench.data.item_keys import item_keys
from synthbench.data.records import Ranking, Record, RecordKind, RetrievalText, ScoredPair, Sentence


def keys(*records: Record) -> set[int]:
    return set(map(int, item_keys(SyntheticDataset.create(records[0].kind, records))))


def pair(first: str, second: str, score: float = 0.5, **values: str) -> ScoredPair:
    return ScoredPair(sentence1=first, sentence2=second, score=score, **values)


@PROPERTY
@given(st.data(), st.sampled_from(sorted(RECORDS)), st.randoms())
def test_order_ids_and_provenance_do_not_count(
    data: st.DataObject, kind: RecordKind, draw: random.Random
) -> None:
    records = data.draw(st.lists(RECORDS[kind], min_size=1, max_size=4))
    shuffled = [replace(each, id="", method="m", seed=3, subset="s", split="dev") for each in records]
    draw.shuffle(shuffled)
    assert keys(*shuffled) == keys(*(replace(each, id="") for each in records))


@PROPERTY
@given(st.data(), st.sampled_from(sorted(RECORDS)))
def test_a_subset_has_a_subset_of_the_keys(data: st.DataObject, kind: RecordKind) -> None:
    records = [replace(each, id="") for each in data.draw(st.lists(RECORDS[kind], min_size=2, max_size=4))]
    assert keys(*records[1:]) <= keys(*records)


def test_case_punctuation_white_space_and_the_order_of_a_pair_do_not_count() -> None:
    assert keys(pair("A cat sat.", "A dog")) == keys(pair("a dog!", "a  cat sat", label="x"))


@pytest.mark.parametrize("other", [pair("a cat", "a dog", 0.51), pair("a cat", "a dig"), pair("a cat", "a")])
def test_another_text_or_gold_is_another_item(other: ScoredPair) -> None:
    assert keys(other).isdisjoint(keys(pair("a cat", "a dog")))


def test_digits_that_formats_round_do_not_count() -> None:
    assert keys(pair("a", "b", 1 / 3)) == keys(pair("a", "b", 0.333333))


def test_the_order_of_candidates_does_not_count_but_their_grades_do() -> None:
    ranking = Ranking(query="q", candidates=("a", "b"), grades=(1, 0))
    assert keys(ranking) == keys(replace(ranking, candidates=("b", "a"), grades=(0, 1)))
    assert keys(ranking) != keys(replace(ranking, grades=(0, 1)))


def test_a_query_with_its_relevant_passages_is_an_item() -> None:
    corpus = [RetrievalText(id=name, text=f"text {name}") for name in "abc"]
    query = RetrievalText(id="q", text="query", judged=("a", "b"), grades=(1, 0))
    renamed = [replace(each, id=f"p-{each.id}") for each in corpus[:2]]
    again = replace(query, id="x", judged=("p-a",), grades=(1,))
    assert keys(*corpus, query) == keys(again, *renamed)
    assert keys(*corpus, query) != keys(*corpus, replace(query, judged=("c",), grades=(1,)))


def test_the_label_of_a_sentence_is_its_gold() -> None:
    assert keys(Sentence(sentence="a", label="1")) != keys(Sentence(sentence="a", label="2"))
