"""CLHAIF's released triplets: five columns by their order, whatever their names."""

from pathlib import Path

import pytest
from wording import refused

from synthbench.api import ImportOptions, Triplet
from synthbench_claif.files import CLHAIFFile

HEADER = "a,b,c,d,e\n"


def write(folder: Path, *rows: str, header: str = HEADER) -> Path:
    file = folder / "nli.csv"
    file.write_text(header + "".join(f"{row}\n" for row in rows), encoding="utf-8")
    return file


def test_a_row_is_a_triplet_with_both_scores(tmp_path: Path) -> None:
    file = write(tmp_path, '"He runs, fast.",He moves.,He sleeps.,0.9,0.1')
    content = CLHAIFFile().read(file, None, ImportOptions())
    assert content.records == [
        Triplet(
            id="nli.csv/0002",
            anchor="He runs, fast.",
            positive="He moves.",
            negative="He sleeps.",
            scores=(0.9, 0.1),
        )
    ]


def test_rows_with_a_blank_text_are_dropped_and_counted(tmp_path: Path) -> None:
    content = CLHAIFFile().read(write(tmp_path, "x, ,z,1,0", "x,y,z,1,0"), None, ImportOptions())
    assert (len(content.records), content.dropped) == (1, {"blank text": 1})


@pytest.mark.parametrize(
    ("row", "facts"),
    [
        ("x,y,z,1", ("nli.csv", "4 columns instead of 5")),
        ("x,y,z,high,0", ("nli.csv", "high")),
        ("", ("nli.csv", "no triplets")),
    ],
)
def test_a_faulty_file_is_refused(row: str, facts: tuple[str, ...], tmp_path: Path) -> None:
    with refused(*facts):
        CLHAIFFile().read(write(tmp_path, *filter(None, [row])), None, ImportOptions())
