"""Choices among trained models by their dev scores."""

import json
import math
from pathlib import Path

import pytest
from fakes import Lines

from synthbench.base.runtime import Runtime
from synthbench.engine.artifacts import CHOICE_FILE, read_json
from synthbench.engine.workspace import Workspace
from synthbench.stages.training import SUMMARY_FILE, Select


@pytest.mark.parametrize(
    ("scores", "winner"),
    [((0.3, 0.5, 0.5), 1), ((math.nan, 0.5, 0.3), 1), ((0.3, math.nan, 0.5), 2), ((math.nan, math.nan), 0)],
)
def test_the_first_of_the_highest_dev_scores_wins_and_nan_is_lowest(
    tmp_path: Path, scores: tuple[float, ...], winner: int
) -> None:
    inputs = {f"candidate:{index}": tmp_path / str(index) for index in range(len(scores))}
    for folder, score in zip(inputs.values(), scores, strict=True):
        folder.mkdir()
        (folder / SUMMARY_FILE).write_text(json.dumps({"seed": 0, "dev_score": score}), encoding="utf-8")
    work = Workspace(tmp_path / "choice", Runtime(device="cpu"), Lines())
    work.output.mkdir(parents=True)
    Select(tuple({"seed": index} for index in range(len(scores)))).run(inputs, work)
    assert read_json(work.output / CHOICE_FILE)["winner"] == f"candidate:{winner}"
