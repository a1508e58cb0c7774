"""PostHog/posthog #54162: cells of an exported table that begin as a formula are run by spreadsheets.

No text in a report or a sheet, which people open, is a formula; numbers stay numbers. Exported data are
exact, for programs read them: the command counts the texts that a spreadsheet would compute.
"""

import csv
import io
from pathlib import Path

from synthbench.base.escaping import restored
from synthbench.data.dataset import SyntheticDataset
from synthbench.data.exchange import ExportFormat, export_dataset, num_formulas, open_dataset
from synthbench.data.records import RecordKind, Sentence
from synthbench.reporting.model.sections import CsvTable
from synthbench.reporting.render.csv_files import csv_text

FORMULAS = ["=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "\t=1", " =1", "'=1", "＝1"]


def test_no_cell_of_a_report_is_a_formula_and_numbers_stay_numbers() -> None:
    text = csv_text(CsvTable(("row", "mean"), [[name, "-0.25"] for name in FORMULAS]))
    rows = list(csv.reader(io.StringIO(text, newline="")))[1:]
    assert [name[0] for name, _ in rows] == ["'"] * len(FORMULAS)
    assert [restored(name) for name, _ in rows] == FORMULAS
    assert {number for _, number in rows} == {"-0.25"}


def test_exported_data_are_exact_and_their_formulas_are_counted(tmp_path: Path) -> None:
    sentences = [Sentence(sentence=text, id=str(number)) for number, text in enumerate([*FORMULAS, "A dog."])]
    data = SyntheticDataset.create(RecordKind.SENTENCE, sentences)
    export_dataset(data, tmp_path / "out.csv", ExportFormat.CSV)
    assert open_dataset(tmp_path / "out.csv").column("sentence") == [*FORMULAS, "A dog."]
    assert num_formulas(data) == len(FORMULAS)
