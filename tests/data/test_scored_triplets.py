"""Triplets with a teacher's scores: storage, exchange, labelling and sampling."""

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from applying import Sources, apply_steps
from wording import refused

from synthbench.data.conversions import convert
from synthbench.data.dataset import SyntheticDataset
from synthbench.data.exchange import ExportFormat, export_dataset
from synthbench.data.importing import import_file
from synthbench.data.inspect import describe
from synthbench.data.records import RecordKind, Triplet
from synthbench.preparing.labelled import ScoreTriplets
from synthbench.preparing.mining import DrawNegatives
from synthbench.sources.files import FileColumns, known_fields, read_file

SCORED = Triplet(
    id="s", anchor="a", positive="p", negative="n", further_negatives=("m",), scores=(7.5, -2, 0.25)
)
PLAIN = Triplet(id="t", anchor="a", positive="q", negative="n")


def made(*records: Triplet) -> SyntheticDataset:
    return SyntheticDataset.create(RecordKind.TRIPLET, records)


def test_scores_survive_a_folder_and_are_no_sentences(tmp_path: Path) -> None:
    data = made(SCORED, PLAIN)
    data.write(tmp_path)
    assert list(SyntheticDataset.read(tmp_path)) == [SCORED, PLAIN]
    assert SCORED.scores == (7.5, -2.0, 0.25)
    assert data.texts == ("a", "p", "n", "m", "q")
    data = made(PLAIN, SCORED)
    assert list(data.text_rows())[1] == ("a", "p", "n", "m")


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"scores": ()},
        {"further_negatives": (), "scores": (7.5, -2)},
        {"further_negatives": (), "scores": ()},
    ],
)
def test_any_of_the_optional_columns_may_be_missing_in_a_folder(
    tmp_path: Path, changes: dict[str, Any]
) -> None:
    one = replace(SCORED, **changes)
    made(one).write(tmp_path)
    assert list(SyntheticDataset.read(tmp_path)) == [one]


def test_triplets_without_scores_keep_their_hashes() -> None:
    assert not {"scores", "further_negatives"} & {*made(PLAIN).table.column_names}
    assert Triplet(anchor="a", positive="q", negative="n").content_id() == "f9f5061e1915902cd615"


@pytest.mark.parametrize(
    ("scores", "said"),
    [((1.0, 2.0), "2 scores, 1 positive and 2 negatives"), ((1.0, math.nan, 2.0), "not finite")],
)
def test_scores_that_do_not_match_the_sentences_are_refused(scores: tuple[float, ...], said: str) -> None:
    with refused("record s", said):
        made(Triplet(id="s", anchor="a", positive="p", negative="n", further_negatives=("m",), scores=scores))


@pytest.mark.parametrize("ending", [ExportFormat.JSONL, ExportFormat.CSV])
def test_scores_are_exported_and_imported(tmp_path: Path, ending: ExportFormat) -> None:
    file = tmp_path / f"out.{ending}"
    export_dataset(made(SCORED, PLAIN), file, ending)
    assert list(import_file(file)) == [SCORED, PLAIN]
    absent = ("subset", "label", "former_positive")
    names = {name: name for name in known_fields(RecordKind.TRIPLET) if name not in absent}
    read = read_file(file, FileColumns(RecordKind.TRIPLET, names, (0.0, 1.0), "train")).records
    assert [one.scores for one in read if isinstance(one, Triplet)] == [SCORED.scores, ()]


@pytest.mark.parametrize(
    ("scores", "said"),
    [
        ("[1, 2, 3]", "3 scores, but 1 positive and 1 negatives"),
        ('[1, "x"]', "score 2 'x' is not a number"),
        ("[1, Infinity]", "score 2 is infinite"),
        ("1", "scores is not a list like [7.5, -2.1]: 1"),
    ],
)
def test_a_files_faulty_scores_are_named_by_line(tmp_path: Path, scores: str, said: str) -> None:
    file = tmp_path / "data.jsonl"
    file.write_text(f'{{"anchor": "a", "positive": "p", "negative": "n", "scores": {scores}}}\n')
    with refused("data.jsonl:1", said):
        import_file(file)


def test_scores_are_described_and_conversions_report_their_loss() -> None:
    assert describe(made(SCORED)).scores == {"-2": 1, "0.25": 1, "7.5": 1}
    note = convert(made(SCORED), RecordKind.SCORED_PAIR).manifest.notes[-1]
    assert note.endswith("positives score 1, negatives 0; lost: a teacher's scores")


class Lengths:
    """Scores a pair by a table, and is not symmetric."""

    def score(self, pairs: Sequence[tuple[str, str]]) -> np.ndarray[Any, Any]:
        table = {"p": 0.9, "n": 0.5, "m": 0.0, "q": 4.0}
        return np.array([table[second] for _, second in pairs])


@pytest.fixture
def teacher(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Sources, "pair_scorer", lambda self, need: Lengths(), raising=False)


def scored(data: SyntheticDataset, **options: Any) -> list[Triplet]:
    labeller = {"ready_cross_encoder": {"base": {"model": "any"}}, "both_orders": False}
    step = ScoreTriplets.model_validate({"labeller": labeller, **options})
    return list(apply_steps(data, [step]))


@pytest.mark.usefixtures("teacher")
def test_a_labellers_own_scores_are_unchanged() -> None:
    assert [one.scores for one in scored(made(SCORED, PLAIN))] == [(0.9, 0.5, 0.0), (4.0, 0.5)]


@pytest.mark.usefixtures("teacher")
def test_logits_are_bounded_and_follow_from_scores_in_0_to_1() -> None:
    (one,) = scored(made(SCORED), scale="logit")
    assert one.scores == pytest.approx((math.log(9), 0.0, math.log(1e-4 / (1 - 1e-4))))


@pytest.mark.usefixtures("teacher")
def test_logits_need_scores_in_0_to_1() -> None:
    with refused("gives scores from 0.50 to 4.00", "from 0 to 1"):
        scored(made(PLAIN), scale="logit")


def test_negatives_are_drawn_without_repetition_and_keep_their_scores() -> None:
    further = tuple(f"n{number}" for number in range(1, 8))
    record = Triplet(
        id="r",
        anchor="a",
        positive="p",
        negative="n0",
        further_negatives=further,
        scores=(9.0, *map(float, range(8))),
    )
    found = apply_steps(made(record, PLAIN), [DrawNegatives(number=3, seed=1)])
    drawn: list[Triplet] = [one for one in found if one.positive == "p"]
    assert len({one.negative for one in drawn}) == 3
    for one in drawn:
        number = int(one.negative.removeprefix("n"))
        assert (one.id, one.scores) == (f"r/negative{number + 1}", (9.0, float(number)))
    assert [one.negative for one in found if one.positive == "q"] == ["n"]
    assert any("2 fewer than wanted" in note for note in found.manifest.notes)
    backwards = apply_steps(made(PLAIN, record), [DrawNegatives(number=3, seed=1)])
    assert {one.id for one in backwards} == {one.id for one in found}
    assert {one.id for one in apply_steps(made(record), [DrawNegatives(number=3, seed=2)])} != {
        one.id for one in drawn
    }
