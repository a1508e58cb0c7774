"""Synthetic dev sets of a study without gold pairs: an LLM grades held-out pairs or writes questions."""

import filecmp
import random
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from synthbench.base.durability import write_atomically
from synthbench.base.errors import UserError
from synthbench.base.yaml_loading import load_yaml
from synthbench.bm25 import nearest_by_words
from synthbench.data.beir import write_retrieval_task
from synthbench.data.dataset import SyntheticDataset
from synthbench.data.languages import language_of
from synthbench.recommending.phases import DEV, Contest
from synthbench.reporting.model.sections import CsvTable
from synthbench.reporting.render.csv_files import csv_text
from synthbench.words import lack_spaces
from synthbench.words.scripts import pairs_of_letters, words_between_spaces

_FILE = Path(__file__).with_name("synthetic.yaml")
SYNTHETIC = "synthetic"
HELD_OUT = {"train": 0.8, "dev": 0.2}
"""Shares of the study's texts: recipes learn from train, the synthetic dev set is made of dev."""
MOST_ANCHORS = 150
MOST_PASSAGES = 300
FEWEST = 50
"""With fewer graded pairs or questions a dev set tells nothing."""
PROMPTED = ("de", "zh")
"""Languages that `gpl-queries` has prompts in, beside English."""
UNKNOWN = "Its agreement with people is unknown, and it may favour recipes whose data the same LLM writes."


@dataclass(frozen=True)
class GradedPairs:
    """Pairs of the study's own held-out sentences, which the LLM grades from 0 to 5."""

    study: Path
    sentences: Sequence[str]
    columns: ClassVar[tuple[str, ...]] = ("sentence1", "sentence2", "score")

    @property
    def file(self) -> Path:
        """The CSV file of the graded pairs."""
        return self.study.with_name(f"{self.study.stem}.dev.csv")

    def document(self, contest: Contest) -> dict[str, Any]:
        """Write the pairs without scores to a CSV file, and return the experiment that grades them."""
        pairs = self.study.with_name(f"{self.study.stem}.dev-pairs.csv")
        _place(pairs, CsvTable(self.columns[:2], pairs_of(self.sentences)), may_replace=True)
        columns = {"anchor": "sentence1", "positive": "sentence2"}
        sources = {"pairs": {"file": pairs.name, "kind": "pair", "columns": columns}}
        return contest.making(DEV, sources, {"graded": {"data": _data("graded-pairs")}})

    def why_useless(self, made: SyntheticDataset) -> str:
        """Return why the grades are useless (too few, or all alike), "" if they are useful."""
        number = len(made)
        if number < FEWEST:
            return f"the LLM graded {number} pairs; at least {FEWEST} are needed"
        return "" if len({*made.column("score")}) > 1 else f"the LLM gave all {number} pairs the same grade"

    def use(self, made: SyntheticDataset, contest: Contest) -> Contest:
        """Write the graded pairs to `file` and return the study with them as a further dev set.

        Raises UserError if `file` exists with other content.
        """
        rows = list(zip(*map(made.column, self.columns), strict=True))
        _place(self.file, CsvTable(self.columns, rows))
        source = {"file": self.file.name, "kind": "scored_pair"}
        return contest.with_dev({SYNTHETIC: source}, {SYNTHETIC: "sts"})

    def said(self, made: SyntheticDataset) -> str:
        """Return a note for the page: what the set is, and that its agreement with people is unknown."""
        return (
            f"Recipes were also compared on a synthetic dev set, {self.file.name}: the LLM graded"
            f" {len(made):,} pairs of your sentences. {UNKNOWN} If people correct the grades, name the file"
            " as `dev` in `sources`."
        )


@dataclass(frozen=True)
class WrittenQuestions:
    """Questions that the LLM writes for held-out passages, half for dev, half for the test set."""

    study: Path
    passages: SyntheticDataset
    held_out: Mapping[str, Any]
    """The source of the held-out passages."""

    @cached_property
    def language(self) -> str | None:
        """The language of the passages, as an ISO 639-1 code; None if it is uncertain."""
        return language_of(text for record in self.passages for text in record.texts())

    @property
    def file(self) -> Path:
        """The folder of the set, in BEIR's layout."""
        return self.study.with_name(f"{self.study.stem}.dev")

    def document(self, contest: Contest) -> dict[str, Any]:
        """Return the experiment that writes the questions."""
        data = _data("written-questions")
        if self.language in PROMPTED:
            data[SYNTHETIC] |= {"prompts": self.language}
        return contest.making(DEV, {"held-out": self.held_out}, {"written": {"data": data}})

    def why_useless(self, made: SyntheticDataset) -> str:
        """Return why the questions are useless (too few), "" if they are useful."""
        number = len(made)
        return "" if number >= FEWEST else f"the LLM wrote {number} questions; at least {FEWEST} are needed"

    def use(self, made: SyntheticDataset, contest: Contest) -> Contest:
        """Write the questions with all passages to `file`; return the study with them as dev and test sets.

        Raises UserError if `file` exists with other content.
        """
        with tempfile.TemporaryDirectory(
            dir=self.study.resolve().parent, prefix=f".{self.file.name}-"
        ) as new:
            written = Path(new) / self.file.name
            write_retrieval_task(made, self.passages, written)
            if not self.file.exists():
                shutil.move(written, self.file)
            elif not _are_equal(written, self.file):
                raise _changed(self.file, f"{{corpus: {self.file.name}, split: dev}}")
        own = {"corpus": self.file.name}
        devs = {DEV: {**own, "split": "dev"}}
        return contest.with_test(own, "retrieval").with_dev(devs, {DEV: "retrieval"})

    def said(self, made: SyntheticDataset) -> str:
        """Return a note for the page: what the set is, and that its agreement with people is unknown."""
        is_asked_so = self.language in (None, "en", *PROMPTED)
        asked = "" if is_asked_so else f", which are in {self.language}; it was asked in English"
        return (
            f"Recipes were compared and tested on a synthetic set, {self.file.name}: the LLM wrote"
            f" {len(made):,} questions about your passages{asked}. {UNKNOWN} If people correct them, name the"
            " folder as `dev` and `test` in `sources`."
        )


SyntheticSet = GradedPairs | WrittenQuestions
"""A dev set that the study's LLM makes in an experiment of its own."""


def _data(name: str) -> dict[str, Any]:
    return dict(load_yaml(_FILE.read_text(encoding="utf-8"), _FILE.name)[name])


def pairs_of(sentences: Sequence[str]) -> list[tuple[str, str]]:
    """Return up to MOST_ANCHORS sentences, each paired with its nearest by BM25 and with a random sentence.

    No pair occurs twice.
    """
    texts = list(dict.fromkeys(sentences))
    draw = random.Random(0)
    anchors = draw.sample(texts, min(MOST_ANCHORS, len(texts)))
    split = pairs_of_letters if lack_spaces(texts) else words_between_spaces
    near = nearest_by_words(texts, min(2, len(texts)), anchors, split).indices
    found: dict[frozenset[str], tuple[str, str]] = {}
    for anchor, ids in zip(anchors, near, strict=True):
        for other in (*(texts[each] for each in ids), draw.choice(texts)):
            if other != anchor:
                found.setdefault(frozenset((anchor, other)), (anchor, other))
    return list(found.values())


def _place(file: Path, table: CsvTable, *, may_replace: bool = False) -> None:
    """Write a table to a CSV file; raises UserError if the file exists with other content.

    With `may_replace`, a file with the same header is replaced.
    """
    new = csv_text(table).encode()
    try:
        there = file.read_bytes() if file.exists() else new
        header = new.partition(b"\n")[0]
        if there != new and not (may_replace and there.partition(b"\n")[0] == header):
            raise _changed(file, file.name)
        write_atomically(file, new)
    except OSError as error:
        raise UserError(f"{file}: can't be written: {error.strerror or error}") from error


def _changed(file: Path, source: str) -> UserError:
    return UserError(
        f"{file}: differs from what recommend would write here; if it is your dev set, name it in the study"
        f" (`dev: {source}` in `sources`), else move it"
    )


def _are_equal(one: Path, other: Path) -> bool:
    names = [str(file.relative_to(one)) for file in one.rglob("*") if file.suffix in (".jsonl", ".tsv")]
    same, _, _ = filecmp.cmpfiles(one, other, names, shallow=False)
    return sorted(same) == sorted(names)
