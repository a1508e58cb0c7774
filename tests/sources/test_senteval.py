"""Similarity tasks read from SentEval's folders."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from wording import refused, worded

from synthbench.base.errors import UserError
from synthbench.data.records import ScoredPair
from synthbench.sources.description import Roots
from synthbench.sources.models import TaskSource
from synthbench.sources.tasks import TASKS, Split, TaskName

SICK_HEADER = "pair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment"
STS12_PARTS = ("MSRpar", "MSRvid", "SMTeuroparl", "surprise.OnWN", "surprise.SMTnews")


def write(path: Path, *lines: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8", newline="\n")
    return path


@pytest.fixture
def sts12(tmp_path: Path) -> Path:
    """A small STS12: two scored pairs in each of the five parts."""
    folder = tmp_path / "STS" / "STS12-en-test"
    for part in STS12_PARTS:
        write(folder / f"STS.input.{part}.txt", f"{part} one\ttwo", f"{part} three\tfour")
        write(folder / f"STS.gs.{part}.txt", "4.400", "0")
    return folder


def read(
    data: Path, task: TaskName = "STS12", split: Split = "test", size: int | None = 0
) -> list[ScoredPair]:
    return list(TaskSource(task=task, split=split, expected_size=size).load(Roots(data=data)))


def fault(data: Path, task: TaskName = "STS12", split: Split = "test", size: int | None = 0) -> str:
    with pytest.raises(UserError) as caught:
        read(data, task, split, size)
    return "\n".join(caught.value.messages)


def test_a_pair_has_a_stable_id_its_part_as_subset_and_its_score_in_0_to_1(sts12: Path) -> None:
    pair = read(sts12.parents[1])[1]
    assert (pair.id, pair.split, pair.subset) == ("STS12/test/MSRpar/0002", "test", "MSRpar")
    assert (pair.sentence1, pair.sentence2, pair.score) == ("MSRpar three", "four", 0.0)
    assert read(sts12.parents[1])[0].score == pytest.approx(0.88)


@pytest.mark.parametrize("place", ["senteval/STS", "senteval", "STS", "", "downstream/STS", "downstream"])
def test_a_standard_folder_is_found_in_each_toolkits_layout(sts12: Path, tmp_path: Path, place: str) -> None:
    data = tmp_path / "elsewhere"
    (data / place).mkdir(parents=True)
    sts12.rename(data / place / sts12.name)
    assert len(read(data)) == 10
    assert len(read(data / place / sts12.name)) == 10


def test_a_row_with_a_blank_gold_line_is_left_out_and_counted(sts12: Path) -> None:
    write(sts12 / "STS.gs.MSRpar.txt", "", "3")
    write(sts12 / "STS.gs.MSRvid.txt", "  ", "")
    dataset = TaskSource(task="STS12", expected_size=7).load(Roots(data=sts12.parents[1]))
    assert len(dataset) == 7
    assert dataset.manifest.dropped == {"no gold score": 3}
    assert next(iter(dataset)).id == "STS12/test/MSRpar/0002"


def test_only_newlines_end_a_line_and_carriage_returns_are_dropped(sts12: Path) -> None:
    path = sts12 / "STS.input.MSRpar.txt"
    path.write_bytes("a\u2028b\x0cc\x85d\te\r\nf\tg\r\n".encode())
    assert [pair.sentence1 for pair in read(sts12.parents[1])[:2]] == ["a\u2028b\x0cc\x85d", "f"]


def test_a_byte_order_mark_is_not_part_of_the_first_sentence(sts12: Path) -> None:
    path = sts12 / "STS.input.MSRpar.txt"
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert read(sts12.parents[1])[0].sentence1 == "MSRpar one"


def test_sts13_is_scored_without_smt(tmp_path: Path) -> None:
    folder = tmp_path / "STS13-en-test"
    for part in ("FNWN", "headlines", "OnWN", "SMT"):
        write(folder / f"STS.input.{part}.txt", "one\ttwo")
        write(folder / f"STS.gs.{part}.txt", "5")
    dataset = TaskSource(task="STS13", expected_size=3).load(Roots(data=tmp_path))
    assert set(dataset.column("subset")) == {"FNWN", "headlines", "OnWN"}
    assert dataset.manifest.notes == ["STS.input.SMT.txt is left out: STS13 is scored without SMT"]


def test_sts16_may_name_the_sources_of_its_sentences(tmp_path: Path) -> None:
    for part in TASKS["STS16"].parts["test"]:
        write(tmp_path / "STS16-en-test" / f"STS.input.{part}.txt", "one\ttwo\thttp://a\thttp://b")
        write(tmp_path / "STS16-en-test" / f"STS.gs.{part}.txt", "2.5")
    assert {pair.score for pair in read(tmp_path, "STS16")} == {0.5}


def test_stsb_is_read_without_quoting_and_its_source_file_is_the_subset(tmp_path: Path) -> None:
    line = 'main-news\theadlines\t2014\t0007\t4.000\t"Yes, said he\tHe said "yes"\tLDC\tGigaword'
    write(tmp_path / "STSBenchmark" / "sts-dev.csv", line)
    (pair,) = read(tmp_path, "STSb", "dev")
    assert (pair.id, pair.split, pair.subset) == ("STSb/dev/0001", "dev", "headlines")
    assert (pair.sentence1, pair.sentence2, pair.score) == ('"Yes, said he', 'He said "yes"', 0.8)


@pytest.fixture
def sick(tmp_path: Path) -> Path:
    write(tmp_path / "SICK" / "SICK_train.txt", SICK_HEADER, "1\ta\tb\t1\tNEUTRAL")
    write(tmp_path / "SICK" / "SICK_trial.txt", SICK_HEADER, "4\tc\td\t3.6\tENTAILMENT")
    write(
        tmp_path / "SICK" / "SICK_test_annotated.txt",
        SICK_HEADER,
        "6\te\tf\t5\tNEUTRAL",
        "7\tg\th\t3\tNEUTRAL",
    )
    return tmp_path


def test_sick_scores_go_from_1_to_5(sick: Path) -> None:
    assert [pair.score for pair in read(sick, "SICK-R", "test")] == [1.0, 0.5]
    assert [pair.score for pair in read(sick, "SICK-R", "train")] == [0.0]
    assert read(sick, "SICK-R", "dev")[0].score == pytest.approx(0.65)


def test_sick_test_and_all_of_sick_are_two_tasks(sick: Path) -> None:
    assert [pair.id for pair in read(sick, "SICK-R")] == ["SICK-R/test/0002", "SICK-R/test/0003"]
    everything = read(sick, "SICK-R-all")
    assert [pair.id.split("/")[2] for pair in everything] == ["train", "trial", *["test_annotated"] * 2]
    assert {pair.split for pair in everything} == {"test"}


def test_the_fingerprint_depends_on_each_files_standard_path_and_content(sts12: Path) -> None:
    source, roots = TaskSource(task="STS12"), Roots(data=sts12.parents[1])
    before = source.fingerprint(roots)
    assert len(before) == 10
    assert "STS12-en-test/STS.gs.MSRvid.txt" in before
    write(sts12 / "STS.gs.MSRvid.txt", "4.400", "1")
    after = source.fingerprint(roots)
    assert {name for name in before if before[name] != after[name]} == {"STS12-en-test/STS.gs.MSRvid.txt"}


def test_without_a_data_folder_a_task_comes_from_the_hub_unless_a_folder_is_asked_for() -> None:
    source = TaskSource(task="STS12")
    assert source.is_on_hub(Roots())
    assert not source.is_on_hub(Roots(data=Path("somewhere")))
    assert not TaskSource(task="MR").is_on_hub(Roots())
    with refused("STS12", "test", "--data"):
        source.fingerprint(Roots(origin="folder"))


def test_a_missing_folder_is_named_with_its_files_and_how_to_get_them(tmp_path: Path) -> None:
    message = fault(tmp_path, "STS13")
    assert str(tmp_path) in message
    assert "STS13-en-test/ with STS.input.X.txt and STS.gs.X.txt for X = FNWN, headlines, OnWN" in message
    assert "get_transfer_data.bash" in message
    assert "mteb/sts13-sts" in message
    assert "\n" not in message


def test_every_missing_file_is_named(sts12: Path) -> None:
    (sts12 / "STS.gs.MSRpar.txt").unlink()
    (sts12 / "STS.input.MSRvid.txt").unlink()
    message = fault(sts12.parents[1])
    assert "lacks STS.gs.MSRpar.txt, STS.input.MSRvid.txt" in message


Break = Callable[[Path], object]
BROKEN: Mapping[str, tuple[Break, str]] = {
    "gold one line short": (
        lambda folder: write(folder / "STS.gs.MSRpar.txt", "4.4"),
        "{0}/STS.input.MSRpar.txt has 2 lines, {0}/STS.gs.MSRpar.txt has 1: every pair needs its gold line,"
        " a blank one if it has no score",
    ),
    "score out of range": (
        lambda folder: write(folder / "STS.gs.MSRpar.txt", "4.4", "5.2"),
        "{0}/STS.gs.MSRpar.txt:2: score 5.2 is outside 0 to 5",
    ),
    "negative score": (
        lambda folder: write(folder / "STS.gs.MSRpar.txt", "-0.1", "5"),
        "{0}/STS.gs.MSRpar.txt:1: score -0.1 is outside 0 to 5",
    ),
    "NaN": (
        lambda folder: write(folder / "STS.gs.MSRpar.txt", "4.4", "nan"),
        "{0}/STS.gs.MSRpar.txt:2: score is NaN; a number from 0 to 5 is needed",
    ),
    "no number": (
        lambda folder: write(folder / "STS.gs.MSRpar.txt", "4.4", "four"),
        "{0}/STS.gs.MSRpar.txt:2: score 'four' is not a number",
    ),
    "empty sentence": (
        lambda folder: write(folder / "STS.input.MSRpar.txt", "a\tb", "a\t "),
        "{0}/STS.input.MSRpar.txt:2: the second sentence is empty",
    ),
    "too many columns": (
        lambda folder: write(folder / "STS.input.MSRpar.txt", "a\tb\tc", "a\tb"),
        "{0}/STS.input.MSRpar.txt:1: 3 tab-separated columns, 2 expected",
    ),
    "not UTF-8": (
        lambda folder: (folder / "STS.input.MSRpar.txt").write_bytes(b"a\tb\ncaf\xe9\td\n"),
        "{0}/STS.input.MSRpar.txt:2: not UTF-8 (byte 0xE9 at position 4 of the line); "
        "convert the file to UTF-8",
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_each_fault_is_reported_in_one_line_with_file_and_line(sts12: Path, name: str) -> None:
    break_it, expected = BROKEN[name]
    break_it(sts12)
    assert fault(sts12.parents[1]) == expected.format(sts12)


def test_the_first_ten_faults_are_reported_and_the_others_counted(sts12: Path) -> None:
    for part in STS12_PARTS:
        write(sts12 / f"STS.gs.{part}.txt", *["9"] * 2)
    write(sts12 / "STS.gs.MSRvid.txt", "1")
    write(sts12 / "STS.input.surprise.SMTnews.txt", *["a\tb"] * 5)
    write(sts12 / "STS.gs.surprise.SMTnews.txt", *["7"] * 5)
    lines = fault(sts12.parents[1]).split("\n")
    assert len(lines) == 11
    assert lines[-1] == "... and 2 more"


def test_a_wrong_header_is_named(sick: Path) -> None:
    write(sick / "SICK" / "SICK_trial.txt", "id\ta\tb\tscore\tlabel", "4\tc\td\t3.6\tENTAILMENT")
    assert f"{sick}/SICK/SICK_trial.txt:1: the header is id, a, b, score, label" in fault(
        sick, "SICK-R", "dev"
    )


def test_each_part_whose_size_differs_from_the_published_one_is_named(sts12: Path) -> None:
    lines = fault(sts12.parents[1], size=None).split("\n")
    assert len(lines) == 5
    assert lines[0] == (
        f"{sts12}/STS.input.MSRpar.txt and {sts12}/STS.gs.MSRpar.txt: "
        "2 scored pairs, 750 published (STS12 test)"
    )


def test_a_size_that_differs_from_the_requested_one_is_named(sts12: Path) -> None:
    worded(fault(sts12.parents[1], size=11), str(sts12), "pairs", "STS12", "test")
    assert len(read(sts12.parents[1], size=10)) == 10


PUBLISHED: Mapping[tuple[TaskName, Split], int] = {
    ("STS12", "test"): 3108,
    ("STS13", "test"): 1500,
    ("STS14", "test"): 3750,
    ("STS15", "test"): 3000,
    ("STS16", "test"): 1186,
    ("STSb", "train"): 5749,
    ("STSb", "dev"): 1500,
    ("STSb", "test"): 1379,
    ("SICK-R", "train"): 4500,
    ("SICK-R", "dev"): 500,
    ("SICK-R", "test"): 4927,
    ("SICK-R-all", "test"): 9927,
    ("BIOSSES", "test"): 100,
    ("STS17-en-en", "test"): 250,
    ("STS17-ar-ar", "test"): 250,
    ("STS17-es-es", "test"): 250,
    ("STS17-en-ar", "test"): 250,
    ("STS17-es-en", "test"): 250,
    ("STS17-en-tr", "test"): 250,
    ("STS17-en-de", "test"): 250,
    ("STS17-fr-en", "test"): 250,
    ("STS17-it-en", "test"): 250,
    ("STS17-nl-en", "test"): 250,
    ("STS17-ko-ko", "test"): 2846,
    ("STS14-15-es", "train"): 1620,
    ("AskUbuntuDupQuestions", "test"): 375,
    ("MindSmallReranking", "test"): 0,
    ("SciDocsRR", "test"): 3978,
    ("StackOverflowDupQuestions", "test"): 2992,
    ("MR", "test"): 10662,
    ("CR", "test"): 3775,
    ("SUBJ", "test"): 10000,
    ("MPQA", "test"): 10606,
    ("SST2", "train"): 67349,
    ("SST2", "dev"): 872,
    ("SST2", "test"): 1821,
    ("TREC", "train"): 5452,
    ("TREC", "test"): 500,
    ("MRPC", "train"): 4076,
    ("MRPC", "test"): 1725,
    ("MRPC-all", "test"): 5801,
    ("AskUbuntuPairs", "train"): 919706,
    ("AskUbuntuPairs", "dev"): 101000,
    ("AskUbuntuPairs", "test"): 101000,
    ("QuoraPairs", "train"): 254142,
    ("QuoraPairs", "dev"): 10000,
    ("QuoraPairs", "test"): 10000,
    ("SprintPairs", "train"): 919100,
    ("SprintPairs", "dev"): 101000,
    ("SprintPairs", "test"): 101000,
    ("SuperUserPairs", "train"): 919706,
    ("SuperUserPairs", "dev"): 101000,
    ("SuperUserPairs", "test"): 101000,
}


def test_a_track_of_sts17_is_read_from_the_organisers_files(tmp_path: Path) -> None:
    folder = tmp_path / "STS17-test"
    folder.mkdir()
    for track, score in (("track4a.es-en", "5"), ("track4b.es-en", "1")):
        (folder / f"STS.input.{track}.txt").write_text("una frase\ta sentence\n", encoding="utf-8")
        (folder / f"STS.gs.{track}.txt").write_text(f"{score}\n", encoding="utf-8")
    dataset = TaskSource(task="STS17-es-en", expected_size=1).load(Roots(data=tmp_path))
    assert [pair.score for pair in dataset] == [1.0]
    note = "STS.input.track4b.es-en.txt is left out: STS17-es-en is scored without track4b.es-en"
    assert dataset.manifest.notes == [note]
    assert "take mteb/biosses-sts from the hub" in fault(tmp_path, "BIOSSES")


def track6(data: Path, num_lines: int, num_gold: int) -> Path:
    lines = [f"bir cumle {number}\ta sentence {number}" for number in range(num_lines)]
    write(data / "STS17-test" / "STS.input.track6.tr-en.txt", *lines)
    write(data / "STS17-test" / "STS.gs.track6.tr-en.txt", *["2.5"] * num_gold)
    return data


def test_the_gold_of_track_6_of_sts17_belongs_to_the_first_half_of_its_input(tmp_path: Path) -> None:
    dataset = TaskSource(task="STS17-en-tr").load(Roots(data=track6(tmp_path, 500, 250)))
    assert dataset.column("sentence2") == [f"a sentence {number}" for number in range(250)]
    assert dataset.manifest.dropped == {"no gold score": 250}
    assert dataset.manifest.notes == ["STS.input.track6.tr-en.txt: only the first 250 lines are scored"]
    assert len(read(track6(tmp_path, 250, 250), "STS17-en-tr", size=None)) == 250


@pytest.mark.parametrize(("num_lines", "num_gold"), [(500, 249), (499, 250), (250, 500)])
def test_other_gold_files_may_not_be_shorter_than_their_input(
    tmp_path: Path, num_lines: int, num_gold: int
) -> None:
    message = fault(track6(tmp_path, num_lines, num_gold), "STS17-en-tr", size=None)
    assert f"has {num_lines} lines" in message
    assert "every pair needs its gold line, a blank one if it has no score" in message


def test_the_spanish_pairs_of_two_years_form_one_set_scored_from_0_to_4(tmp_path: Path) -> None:
    folder = tmp_path / "STS14-15-es"
    folder.mkdir()
    for part in TASKS["STS14-15-es"].parts["train"]:
        (folder / f"STS.input.{part}.txt").write_text("una frase\totra frase\n", encoding="utf-8")
        (folder / f"STS.gs.{part}.txt").write_text("3\n", encoding="utf-8")
    dataset = TaskSource(task="STS14-15-es", split="train", expected_size=5).load(Roots(data=tmp_path))
    assert dataset.column("score") == [0.75] * 5
    assert dataset.column("subset")[:2] == ["2014.li65", "2014.news"]
    assert "how to get it: docs/augsbert.md, Data of the paper" in fault(
        tmp_path / "none", "STS14-15-es", "train"
    )


def test_the_table_of_tasks_sums_to_the_published_sizes() -> None:
    sizes = {(name, split): task.size(split) for name, task in TASKS.items() for split in task.parts}
    assert sizes == PUBLISHED


@pytest.mark.parametrize(("task", "split"), PUBLISHED)
def test_the_real_data_has_the_published_sizes(task: TaskName, split: Split) -> None:
    if "SYNTHBENCH_DATA" not in os.environ:
        pytest.skip("SYNTHBENCH_DATA is not set to a folder with the SentEval data")
    roots = Roots(data=Path(os.environ["SYNTHBENCH_DATA"]))
    source = TaskSource(task=task, split=split)
    try:
        source.fingerprint(roots)
    except UserError:
        pytest.skip(f"SYNTHBENCH_DATA holds no {task}")
    dataset = source.load(roots)
    assert PUBLISHED[task, split] in (0, len(dataset))
    assert dataset.manifest.dropped == {}
