"""Duplicate questions of forums: ids of pairs beside a corpus of titles."""

import gzip
from pathlib import Path

import pytest

from synthbench.base.errors import UserError
from synthbench.data.dataset import SyntheticDataset
from synthbench.sources.description import Roots
from synthbench.sources.models import TaskSource

CORPUS = (
    "7\thow  to mount a disk ?\tI have a disk .\n12\tmounting disks\t\n9\twhat is a shell\n3\t \ta body\n"
)


@pytest.fixture
def forum(tmp_path: Path) -> Path:
    folder = tmp_path / "askubuntu"
    folder.mkdir()
    (folder / "corpus.tsv.gz").write_bytes(gzip.compress(CORPUS.encode()))
    (folder / "train.pos.txt").write_text("7 12\n", encoding="utf-8")
    (folder / "train.neg.txt").write_text("7\t9\n9 12\n", encoding="utf-8")
    return folder


def load(forum: Path, size: int | None = 0) -> SyntheticDataset:
    return TaskSource(task="AskUbuntuPairs", split="train", expected_size=size).load(Roots(data=forum.parent))


def fault(forum: Path, size: int | None = 0) -> str:
    with pytest.raises(UserError) as caught:
        load(forum, size)
    return "\n".join(caught.value.messages)


def test_pairs_consist_of_titles_and_have_score_1_or_0(forum: Path) -> None:
    data = load(forum, 3)
    texts = list(zip(data.column("sentence1"), data.column("sentence2"), strict=True))
    assert texts == [
        ("how to mount a disk ?", "mounting disks"),
        ("how to mount a disk ?", "what is a shell"),
        ("what is a shell", "mounting disks"),
    ]
    assert data.column("score") == [1.0, 0.0, 0.0]
    assert data.column("label") == ["duplicate", "different", "different"]
    assert data.column("id")[1] == "AskUbuntuPairs/train/neg/000001"
    assert data.column("split") == ["train"] * 3


def test_a_question_without_a_title_is_counted_and_its_pairs_left_out(forum: Path) -> None:
    (forum / "train.neg.txt").write_text("7 9\n3 9\n", encoding="utf-8")
    data = load(forum, 3)
    assert data.column("score") == [1.0, 0.0]
    assert data.manifest.dropped == {"a question without a title": 1}


def test_every_fault_is_reported_with_its_line(forum: Path) -> None:
    (forum / "train.neg.txt").write_text("7 9\n9\n7 8\n", encoding="utf-8")
    (forum / "corpus.tsv.gz").write_bytes(gzip.compress(CORPUS.encode() + b"no tab\n"))
    told = fault(forum)
    assert "corpus.tsv.gz:5: no tab; a line is id, title and body" in told
    assert "train.neg.txt:2: 1 ids, 2 expected" in told
    assert "train.neg.txt:3: corpus.tsv.gz has no question '8'" in told


def test_a_size_that_differs_from_the_published_one_is_an_error(forum: Path) -> None:
    assert "3 scored pairs, 919706 published (AskUbuntuPairs train)" in fault(forum, None)


def test_missing_and_non_gzip_files_are_reported(forum: Path) -> None:
    (forum / "corpus.tsv.gz").write_text(CORPUS, encoding="utf-8")
    assert "corpus.tsv.gz: its name ends in .gz, but it is not compressed by gzip" in fault(forum)
    (forum / "train.neg.txt").unlink()
    told = fault(forum)
    assert "lacks train.neg.txt; how to get it: docs/augsbert.md, Data of the paper" in told
