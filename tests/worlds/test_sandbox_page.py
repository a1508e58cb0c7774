"""docs/sandbox.md agrees with the code: its pairs and its figures are the package's."""

import json
import re
from pathlib import Path

from world_size import content_words

from synthbench.worlds.sandbox import shipped
from synthbench.worlds.sandbox.cli.figures import Figures
from synthbench.worlds.sandbox.events import WEIGHTS, similarity
from synthbench.worlds.sandbox.parsing import parse
from synthbench.worlds.sandbox.vocabulary import domain_names

PAGE = (Path(__file__).parents[2] / "docs" / "sandbox.md").read_text(encoding="utf-8")
IN_ONE_LINE = " ".join(PAGE.split())


def test_the_pairs_on_the_page_have_their_similarities() -> None:
    rows = re.findall(r"^\| ([A-Z].*?) \| ([A-Z].*?) \| [a-z ]+ \| ([\d.]+) \|$", PAGE, re.MULTILINE)
    assert len(rows) == 5
    for first, second, printed in rows:
        events = parse(first), parse(second)
        assert events[0] is not None and events[1] is not None
        assert f"{similarity(events[0], events[1]):.2f}" == printed


def test_the_page_has_the_checkpoint_figures_printed_by_their_build() -> None:
    text = (shipped.CHECKPOINTS / "figures.json").read_text(encoding="utf-8")
    figures = Figures.model_validate(json.loads(text))
    assert f"Spearman {figures.encoder_spearman:.3f} on 1,000 test pairs" in IN_ONE_LINE
    for row, cells in figures.lm_confusion.cells.items():
        printed = " | ".join(f"{cells[column].percent:.1f}%" for column in figures.lm_confusion.columns)
        assert f"| {row} | {printed} |" in IN_ONE_LINE


def test_the_worlds_size_and_weights_are_as_documented() -> None:
    assert f"{len(domain_names())} domains" in IN_ONE_LINE
    assert f"{len(content_words()):,} content words" in IN_ONE_LINE
    for slot, weight in WEIGHTS.items():
        assert f"{slot} {weight:.2f}".replace(" 0.", " .") in IN_ONE_LINE
