"""Validity and equality of records."""

from dataclasses import FrozenInstanceError, replace

import pytest

from synthbench.data.records import RECORD_TYPES, Failure, Pair, RecordKind, ScoredPair, Sentence, Triplet

TRIPLET = Triplet(anchor="a", positive="p", negative="n")


def test_every_kind_has_one_record_type() -> None:
    assert set(RECORD_TYPES) == set(RecordKind)
    assert all(record_type.kind == kind for kind, record_type in RECORD_TYPES.items())


def test_texts_are_the_sentences_in_column_order() -> None:
    assert TRIPLET.texts() == ("a", "p", "n")
    assert ScoredPair(sentence1="x", sentence2="y", score=0.5).texts() == ("x", "y")
    assert Sentence(sentence="s").texts() == ("s",)
    assert Failure(reason="refused", raw_text="I can't").texts() == ()


def test_records_cannot_be_changed() -> None:
    with pytest.raises(FrozenInstanceError):
        TRIPLET.anchor = "b"  # type: ignore[misc]


def test_content_id_depends_on_everything_but_the_id() -> None:
    assert replace(TRIPLET, id="mine").content_id() == TRIPLET.content_id()
    changes = ({"anchor": "b"}, {"split": "dev"}, {"seed": 1}, {"generator": "gpt2"}, {"source_id": "7"})
    others = {replace(TRIPLET, **change).content_id() for change in changes}
    assert len(others | {TRIPLET.content_id()}) == len(changes) + 1


def test_kinds_with_the_same_text_have_different_ids() -> None:
    pair = Pair(anchor="a", positive="b")
    assert pair.content_id() != replace(TRIPLET, anchor="a", positive="b", negative="").content_id()


def test_content_id_is_the_same_in_every_release() -> None:
    assert Sentence(sentence="A man is playing.").content_id() == "9dc1d1b24ab5258a6c08"
