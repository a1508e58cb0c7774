"""SentEval's transfer tasks in its folders."""

from pathlib import Path

import pytest
from pydantic import ValidationError
from wording import refused

from synthbench.base.errors import UserError
from synthbench.data.records import RecordKind
from synthbench.sources.description import Roots
from synthbench.sources.models import TaskSource
from synthbench.sources.tasks import TASKS, Split, TaskName

MRPC_HEADER = "Quality\t#1 ID\t#2 ID\t#1 String\t#2 String"


def write(path: Path, *lines: str, encoding: str = "utf-8") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes("".join(f"{line}\n" for line in lines).encode(encoding))


def fault(data: Path, task: TaskName, split: Split = "test", size: int | None = 0) -> str:
    with pytest.raises(UserError) as caught:
        TaskSource(task=task, split=split, expected_size=size).load(Roots(data=data))
    return "\n".join(caught.value.messages)


@pytest.mark.parametrize(
    ("task", "first", "second"),
    [
        ("MR", "rt-polarity.pos", "rt-polarity.neg"),
        ("CR", "custrev.pos", "custrev.neg"),
        ("MPQA", "mpqa.pos", "mpqa.neg"),
        ("SUBJ", "subj.objective", "subj.subjective"),
    ],
)
def test_each_file_holds_the_sentences_of_one_class(
    tmp_path: Path, task: TaskName, first: str, second: str
) -> None:
    write(tmp_path / task / first, "a fine  thing . ", "two")
    write(tmp_path / task / second, "three")
    data = TaskSource(task=task, expected_size=3).load(Roots(data=tmp_path))
    assert data.kind == RecordKind.SENTENCE
    assert data.column("sentence") == ["a fine thing .", "two", "three"]
    labels = [first.partition(".")[2]] * 2 + [second.partition(".")[2]]
    assert data.column("label") == labels
    assert data.column("id")[1:] == [f"{task}/test/{labels[1]}/0002", f"{task}/test/{labels[2]}/0001"]


def test_trec_labels_are_the_coarse_classes(tmp_path: Path) -> None:
    write(tmp_path / "TREC" / "TREC_10.label", "NUM:dist How far is it ?", "LOC:city Which county : this ?")
    data = TaskSource(task="TREC", expected_size=2).load(Roots(data=tmp_path))
    assert data.column("label") == ["NUM", "LOC"]
    assert data.column("sentence") == ["How far is it ?", "Which county : this ?"]


def test_sst2_has_three_splits_in_its_folder_for_two_classes(tmp_path: Path) -> None:
    for split in ("train", "dev", "test"):
        write(tmp_path / "SST" / "binary" / f"sentiment-{split}", f"a {split}\t1", "dull\t0")
    for split in TASKS["SST2"].parts:
        data = TaskSource(task="SST2", split=split, expected_size=2).load(Roots(data=tmp_path))
        assert (data.column("sentence")[0], data.column("label")) == (f"a {split}", ["1", "0"])


def test_mrpc_gives_scored_pairs(tmp_path: Path) -> None:
    write(
        tmp_path / "MRPC" / "msr_paraphrase_train.txt",
        MRPC_HEADER,
        '1\t7\t8\tSaid "yes\tYes',
        "0\t1\t2\ta\tb",
    )
    data = TaskSource(task="MRPC", split="train", expected_size=2).load(Roots(data=tmp_path))
    assert data.kind == RecordKind.SCORED_PAIR
    assert data.column("score") == [1.0, 0.0]
    assert data.column("sentence1")[0] == 'Said "yes'


def test_a_file_that_is_not_utf_8_is_read_as_latin_1_like_senteval(tmp_path: Path) -> None:
    write(tmp_path / "MR" / "rt-polarity.pos", "très bien", encoding="latin-1")
    write(tmp_path / "MR" / "rt-polarity.neg", "déjà vu")
    data = TaskSource(task="MR", expected_size=2).load(Roots(data=tmp_path))
    assert data.column("sentence") == ["très bien", "déjà vu"]
    assert data.manifest.notes == ["rt-polarity.pos is not UTF-8: read as latin-1"]


def test_an_empty_sentence_counts_and_becomes_a_full_stop_as_in_senteval(tmp_path: Path) -> None:
    write(tmp_path / "CR" / "custrev.pos", "good", "", " ")
    write(tmp_path / "CR" / "custrev.neg", "bad")
    data = TaskSource(task="CR", expected_size=4).load(Roots(data=tmp_path))
    assert data.column("sentence") == ["good", ".", ".", "bad"]
    assert data.manifest.notes == ["custrev.pos: 2 empty sentences are '.', as SentEval encodes them"]


@pytest.mark.parametrize(
    ("task", "file", "lines", "expected"),
    [
        ("TREC", "TREC/TREC_10.label", ["How far ?"], "begins with 'How', not with a class (ABBR, DESC,"),
        ("TREC", "TREC/TREC_10.label", ["NUM:dist "], "the sentence is empty"),
        ("SST2", "SST/binary/sentiment-test", ["fine"], "1 tab-separated columns, 2 expected"),
        ("SST2", "SST/binary/sentiment-test", ["fine\t3"], "class '3' is neither 0 nor 1"),
        (
            "MRPC",
            "MRPC/msr_paraphrase_test.txt",
            ["1\t7\t8\ta\tb"],
            "the header is 1, 7, 8, a, b; it must be",
        ),
    ],
)
def test_a_faulty_line_is_named(
    tmp_path: Path, task: TaskName, file: str, lines: list[str], expected: str
) -> None:
    write(tmp_path / file, *lines)
    assert fault(tmp_path, task).startswith(f"{tmp_path / file}:1: {expected}")


def test_the_published_sizes_are_checked(tmp_path: Path) -> None:
    write(tmp_path / "TREC" / "TREC_10.label", "NUM:dist How far ?")
    assert "TREC_10.label: 1 sentences, 500 published (TREC test)" in fault(tmp_path, "TREC", size=None)


def test_transfer_tasks_have_no_hub_data_set(tmp_path: Path) -> None:
    with refused("TREC", "SentEval", kind=ValidationError):
        TaskSource(task="TREC", origin="hub")
    with refused("SST2", "test", "SST/binary"):
        TaskSource(task="SST2").fingerprint(Roots(origin="hub"))
    assert fault(tmp_path, "TREC").endswith("the SentEval toolkit's download script (get_transfer_data.bash)")
