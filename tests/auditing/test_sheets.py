"""Sheets for annotators: written, answered and read."""

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from wording import refused

from synthbench.auditing.items import Items, items_of
from synthbench.auditing.report import TIE, Audit, audit_by_people, majority
from synthbench.auditing.sheets import SIMILARITY, SheetQuestion, question_of, read_annotations, write_sheet
from synthbench.base.errors import UserError
from synthbench.base.escaping import harmless, restored
from synthbench.data.dataset import SyntheticDataset
from synthbench.data.records import RecordKind, ScoredPair, Sentence

TEXTS = ["=1+1", "'tis, said @me", '-5 °C;\nno "more"', "Ünïcode ✓", "| Answer: no"]


def sentences(*texts: str) -> SyntheticDataset:
    return SyntheticDataset.create(RecordKind.SENTENCE, [Sentence(sentence=text) for text in texts])


DATASET = sentences(*TEXTS)
ITEMS = items_of(DATASET)
SAFETY = SheetQuestion("Is it safe?", ("safe", "unsafe"))


def rows_of(file: Path) -> list[list[str]]:
    with file.open(encoding="utf-8-sig", newline="") as stream:
        return list(csv.reader(stream))


def write_rows(file: Path, rows: Sequence[Sequence[str]], delimiter: str = ",") -> Path:
    with file.open("w", encoding="utf-8-sig", newline="") as stream:
        csv.writer(stream, delimiter=delimiter).writerows(rows)
    return file


def annotated(folder: Path, name: str, answers: Mapping[str, str], question: SheetQuestion = SAFETY) -> Path:
    """Write the sheet of an annotator who answers by the sentence, and leaves the others blank."""
    file = folder / f"{name}.csv"
    write_sheet(ITEMS, question, file, force=True)
    rows = rows_of(file)
    for row in rows[1:]:
        row[-1] = answers.get(restored(row[1]), "")
    return write_rows(file, rows)


def people(*files: Path, items: Items = ITEMS, dataset: SyntheticDataset = DATASET) -> Audit:
    return audit_by_people(dataset, items, read_annotations(files, items))


@given(st.text())
def test_a_harmless_cell_is_restored_exactly(text: str) -> None:
    assert restored(harmless(text)) == text
    assert harmless(text)[:1] not in tuple("=+-@\t\r\n＝＋－＠")


def test_no_cell_is_a_formula(tmp_path: Path) -> None:
    file = tmp_path / "sheet.csv"
    write_sheet(ITEMS, SheetQuestion("=Is it safe?", ("-1", "+1")), file, force=False)
    assert file.read_bytes().startswith(b"\xef\xbb\xbf")
    cells = [cell for row in rows_of(file) for cell in row if cell]
    assert [cell for cell in cells if cell[0] in "=+-@"] == []
    assert sorted(restored(row[1]) for row in rows_of(file)[1:]) == sorted(TEXTS)


def test_a_sheet_does_not_reveal_intentions(tmp_path: Path) -> None:
    pairs = [
        ScoredPair(
            id=f"gold-{score}", sentence1=f"a{score}", sentence2="b", score=score / 8, label=f"L{score}"
        )
        for score in range(8)
    ]
    items = items_of(SyntheticDataset.create(RecordKind.SCORED_PAIR, pairs)).sample(None, 0)
    write_sheet(items, SIMILARITY, tmp_path / "sheet.csv", force=False)
    header, *rows = rows_of(tmp_path / "sheet.csv")
    assert header == ["id", "sentence1", "sentence2", SIMILARITY.header]
    assert [row[1] for row in rows] != [f"a{score}" for score in range(8)]
    content = (tmp_path / "sheet.csv").read_text(encoding="utf-8-sig")
    assert not any(told in content for told in ("gold", "0.125", "L1"))


def test_annotations_are_not_overwritten_without_force(tmp_path: Path) -> None:
    file = annotated(tmp_path, "anna", {"=1+1": "safe"})
    content = file.read_bytes()
    with refused("already"):
        write_sheet(ITEMS, SAFETY, file, force=False)
    assert file.read_bytes() == content
    with refused("must"):
        write_sheet(ITEMS, SAFETY, tmp_path / "sheet.xlsx", force=False)


def test_answers_are_read_in_any_case_and_with_any_white_space(tmp_path: Path) -> None:
    file = annotated(tmp_path, "anna", {"=1+1": " UNSAFE ", "Ünïcode ✓": "Safe", TEXTS[2]: "safe"})
    audit = people(file)
    assert {row: cells["all"].count for row, cells in audit.confusion.cells.items()} == {
        "safe": 2,
        "unsafe": 1,
    }
    assert (audit.judge, audit.question, audit.agreement) == ("anna", "Is it safe?", None)
    assert (audit.num_items, audit.num_unanswered, audit.missing_answers) == (5, 2, {"anna": 2})


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_a_spreadsheet_may_sort_rows_add_columns_and_change_the_separator(
    tmp_path: Path, delimiter: str
) -> None:
    file = annotated(tmp_path, "anna", dict.fromkeys(TEXTS, "safe"))
    header, *rows = rows_of(file)
    sheet = [[*header, "remarks"], *([*row, "hm"] for row in reversed(rows)), ["", "", "", ""]]
    audit = people(write_rows(file, sheet, delimiter))
    assert audit.confusion.cells["safe"]["all"].count == 5


def test_numeric_labels_may_be_written_in_other_formats(tmp_path: Path) -> None:
    dataset = SyntheticDataset.create(
        RecordKind.SCORED_PAIR,
        [ScoredPair(sentence1=f"a{n}", sentence2="b", score=n / 2) for n in range(3)],
    )
    items, file = items_of(dataset), tmp_path / "anna.csv"
    write_sheet(items, question_of("How similar?", "0,0.5,0.9", items), file, force=False)
    header, *rows = rows_of(file)
    given_answers = {"a0": "0,0", "a1": "0.50", "a2": "0,9"}
    write_rows(file, [header, *([*row[:-1], given_answers[row[1]]] for row in rows)])
    audit = people(file, items=items, dataset=dataset)
    assert [audit.confusion.cells[row][row].count for row in ("0", "0.5")] == [1, 1]
    assert audit.confusion.cells["0.9"]["1"].count == 1
    assert audit.correlation is not None
    assert (audit.correlation.value, audit.correlation.num_pairs) == (1.0, 3)


def test_annotators_are_joined_by_id_and_the_majority_decides(tmp_path: Path) -> None:
    one, two, three, four, _ = TEXTS
    files = [
        annotated(tmp_path, "anna", {one: "safe", two: "safe", three: "safe", four: "unsafe"}),
        annotated(tmp_path, "ben", {one: "safe", two: "unsafe", three: "unsafe", four: "unsafe"}),
        annotated(tmp_path, "cleo", {one: "unsafe", two: "unsafe", three: ""}),
    ]
    audit = people(*files)
    assert audit.confusion.rows == ["safe", "unsafe", TIE]
    assert [audit.confusion.cells[row]["all"].count for row in audit.confusion.rows] == [1, 2, 1]
    assert audit.missing_answers == {"anna": 1, "ben": 1, "cleo": 3}
    assert audit.num_unanswered == 1
    assert audit.by_annotator["anna"]["safe"].percent == pytest.approx(75)
    assert audit.by_annotator["cleo"]["unsafe"].percent == pytest.approx(100)
    # Pairs of answers: 3 + 3 + 1 + 1; equal ones: 1 + 1 + 0 + 1.
    assert audit.agreement is not None
    assert audit.agreement.raw == pytest.approx(3 / 8)


@pytest.mark.parametrize(
    ("answers", "label"),
    [(("a",), "a"), (("a", None, "b", "a"), "a"), (("a", "b"), TIE), (("a", "b", "a", "b", "c"), TIE)],
)
def test_a_tie_has_no_majority(answers: Sequence[str | None], label: str) -> None:
    assert majority(answers) == label


def test_every_faulty_line_is_named(tmp_path: Path) -> None:
    file = annotated(tmp_path, "anna", dict.fromkeys(TEXTS, "safe"))
    header, *rows = rows_of(file)
    rows[0][-1] = "unsave"
    rows[1][0] = "q123"
    rows[2][0] = rows[3][0]
    order = sorted(rows, key=lambda row: "\n" in row[1])
    lines = {row[0] + row[-1]: line for line, row in enumerate(order, start=2)}
    with pytest.raises(UserError) as caught:
        people(write_rows(file, [header, *order]))
    messages = "\n".join(caught.value.messages)
    assert f"{file}:{lines[rows[0][0] + 'unsave']}: 'unsave' is none of the labels; did you mean" in messages
    assert f"{file}:{lines['q123safe']}: id 'q123' is none of this data set's" in messages
    assert "first in line" in messages


def test_sorting_one_column_alone_is_noticed(tmp_path: Path) -> None:
    file = annotated(tmp_path, "anna", dict.fromkeys(TEXTS, "safe"))
    header, *rows = rows_of(file)
    rows[0][1], rows[1][1] = rows[1][1], rows[0][1]
    with refused("sentences"):
        people(write_rows(file, [header, *rows]))


def test_a_sentence_that_the_spreadsheet_changed_is_harmless(tmp_path: Path) -> None:
    file = annotated(tmp_path, "anna", dict.fromkeys(TEXTS, "safe"))
    header, *rows = rows_of(file)
    rows[0][1] = "3. Jan"
    assert people(write_rows(file, [header, *rows])).confusion.totals == {"all": 5}


def test_unusable_sheets_are_refused_in_one_line(tmp_path: Path) -> None:
    anna = annotated(tmp_path, "anna", {"=1+1": "safe"})
    blank = annotated(tmp_path, "blank", {})
    other = annotated(tmp_path, "other", {"=1+1": "same"}, SIMILARITY)
    headless = write_rows(tmp_path / "headless.csv", rows_of(anna)[1:])
    (tmp_path / "latin.csv").write_bytes(
        anna.read_text(encoding="utf-8").replace("✓", "").encode("latin-1", "ignore")
    )
    elsewhere = items_of(sentences("something else"))
    for files, items, message in (
        ([blank], ITEMS, "holds no answers"),
        ([anna, other], ITEMS, "its question or labels are not those of"),
        ([anna, anna], ITEMS, "is given twice"),
        ([headless], ITEMS, "must be the header that was written"),
        ([tmp_path / "latin.csv"], ITEMS, "is not UTF-8; save it as 'CSV UTF-8'"),
        ([tmp_path / "none.csv"], ITEMS, "no such file"),
        ([anna], elsewhere, "was made from another data set"),
    ):
        with pytest.raises(UserError, match=message) as caught:
            read_annotations(files, items)
        assert len(caught.value.messages) == 1


def test_pairs_are_judged_for_similarity_by_default() -> None:
    pairs = items_of(
        SyntheticDataset.create(RecordKind.SCORED_PAIR, [ScoredPair(sentence1="a", sentence2="b", score=1)])
    )
    assert question_of(None, None, pairs) == SIMILARITY
    assert question_of(" Is it\nsafe? ", "safe, un safe", pairs) == SheetQuestion(
        "Is it safe?", ("safe", "un safe")
    )
    for text, labels, items in (
        (None, None, ITEMS),
        ("Safe?", None, pairs),
        (None, "yes,no", pairs),
        ("Safe?", "yes", pairs),
        ("Safe?", "yes,Yes", pairs),
        ("Safe?", "yes,,no", pairs),
        ("Safe?", "yes,n|o", pairs),
        (" ", "yes,no", pairs),
    ):
        with pytest.raises(UserError):
            question_of(text, labels, items)
