"""Every file of a trained model is that of an undisturbed training, also after a kill with no step left."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from toy_training import TRAINERS, context_in, spearman, toy_pairs

from synthbench.models.interfaces import PairScorer
from synthbench.plugins import TrainingContext
from synthbench.training import loop

Select = Callable[[PairScorer], float]
DEV = toy_pairs(6, seed=1)


def _files(output: Path) -> dict[str, bytes]:
    model = output / "model"
    return {str(file.relative_to(model)): file.read_bytes() for file in model.rglob("*") if file.is_file()}


def _train(kind: str, bert: Path, context: TrainingContext) -> dict[str, bytes]:
    trainer = TRAINERS[kind](
        base={"model": str(bert)}, max_steps=2, batch_size=4, max_length=6, evaluations=1
    )
    trainer.train([toy_pairs(12)], context)
    return _files(context.output)


@pytest.mark.parametrize("select", [lambda scorer: spearman(scorer, DEV), None], ids=["scored", "unscored"])
@pytest.mark.parametrize("kind", TRAINERS)
def test_a_resumption_without_steps_saves_the_same_files(
    kind: str, select: Select | None, bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loop, "SECONDS_BETWEEN_CHECKPOINTS", 0.0)
    context = context_in(tmp_path, select=select)
    undisturbed = _train(kind, bert, context)
    again = replace(context, output=tmp_path / "again")
    again.output.mkdir()
    assert _train(kind, bert, again) == undisturbed

    # The state is that in which the last call of a training leaves the tokenizer by itself.
    monkeypatch.setattr(loop, "read_once", lambda model, **_: None)
    assert _train(kind, bert, context_in(tmp_path / "bare", select=select)) == undisturbed
