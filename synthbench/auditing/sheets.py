"""Sheets for people to annotate: a CSV file that opens in any spreadsheet and tells no intention.

The columns are the item's id, its sentences, and the answer, whose header holds the question and the labels:
`Is it safe? Answer: safe | unsafe`. Answers are typed into that column; columns that people add are ignored.
"""

from dataclasses import dataclass
from pathlib import Path

from synthbench.auditing.items import Items
from synthbench.data.exchange import replacing
from synthbench.errors import UserError, did_you_mean
from synthbench.escaping import CsvWriter

ID = "id"
ANSWER = " Answer: "
SEPARATOR = " | "


@dataclass(frozen=True)
class Question:
    """What annotators are asked, and the labels that they choose from, in the order of a table's rows."""

    text: str
    labels: tuple[str, ...]

    @property
    def header(self) -> str:
        """Question and labels in one cell."""
        return f"{self.text}{ANSWER}{SEPARATOR.join(self.labels)}"

    @classmethod
    def from_header(cls, cell: str) -> "Question | None":
        """Return the question of such a cell; None if it is none."""
        text, found, labels = cell.rpartition(ANSWER)
        return cls(text, tuple(labels.split(SEPARATOR))) if found else None

    def label(self, answer: str) -> str:
        """Return the label that an answer means, whatever its case; numbers may have a decimal comma.

        Raises ValueError with what is wrong if there is none.
        """
        for label in self.labels:
            if label.casefold() == answer.casefold() or _number(label) == _number(answer) is not None:
                return label
        near = did_you_mean(answer.casefold(), [label.casefold() for label in self.labels])
        raise ValueError(f"'{answer}' is none of the labels{near}")


SIMILARITY = Question(
    "How similar are the two sentences in meaning? same: they say (almost) the same; similar: the same "
    "situation, something important differs; a little: another situation, some aspect in common; "
    "different: nothing in common.",
    ("different", "a little", "similar", "same"),
)


def question_of(text: str | None, labels: str | None, items: Items) -> Question:
    """Return the question to ask; pairs have `SIMILARITY` if nothing is given.

    `labels` have commas between them. Raises UserError if only one of both is given, there is nothing to
    fall back to, or the labels are fewer than two, repeated or not fit for a header.
    """
    if text is None and labels is None and len(items.text_names) == 2:
        return SIMILARITY
    if text is None or labels is None:
        raise UserError(
            "say what to ask and what may be answered: "
            '--question "Is the text safe?" --labels safe,unsafe (pairs are asked for similarity if not)'
        )
    names = tuple(" ".join(name.split()) for name in labels.split(","))
    faulty = "" in names or len(names) < 2 or len({name.casefold() for name in names}) < len(names)
    if faulty or any("|" in name or "Answer:" in name for name in names):
        raise UserError(f"--labels {labels}: must be two or more different labels with commas between them")
    question = " ".join(text.split())
    if not question:
        raise UserError("--question: is empty")
    return Question(question, names)


def write_sheet(items: Items, question: Question, file: Path, *, force: bool) -> None:
    """Write a sheet; raises UserError if the file exists (unless `force`) or can't be written."""
    if file.suffix != ".csv":
        raise UserError(f"{file}: the name must end in .csv")
    # Spreadsheets take a file for UTF-8 only if it begins with the mark.
    with (
        replacing(file, force=force) as temporary,
        temporary.open("w", encoding="utf-8-sig", newline="") as stream,
    ):
        rows = CsvWriter(stream, "\r\n")
        rows.writerow((ID, *items.text_names, question.header))
        rows.writerows((item.id, *item.texts, "") for item in items.items)


def _number(text: str) -> float | None:
    try:
        return float(text.replace(",", "."))
    except ValueError:
        return None
