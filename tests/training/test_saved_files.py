"""Every file of a trained model is that of an undisturbed training, also after a kill with no step left."""

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from toy_training import TRAINERS, context_in, spearman, toy_pairs

from synthbench.models.interfaces import PairScorer
from synthbench.plugins.model_contracts import TrainingContext
from synthbench.training import course, loop

Select = Callable[[PairScorer], float]
DEV = toy_pairs(6, seed=1)


def by_spearman(scorer: PairScorer) -> float:
    return spearman(scorer, DEV)


def _files(output: Path) -> dict[str, bytes]:
    model = output / "model"
    return {str(file.relative_to(model)): file.read_bytes() for file in model.rglob("*") if file.is_file()}


def _train(kind: str, bert: Path, context: TrainingContext) -> dict[str, bytes]:
    trainer = TRAINERS[kind](
        base={"model": str(bert)}, max_steps=2, batch_size=4, max_length=6, evaluations=1
    )
    trainer.train([toy_pairs(12)], context)
    return _files(context.output)


@pytest.mark.parametrize(
    ("kind", "select"),
    [
        ("bi-encoder", by_spearman),
        ("cross-encoder", by_spearman),
        ("cross-encoder", None),
        ("simcse", None),
        ("unsupervised simcse", by_spearman),
    ],
    ids=lambda value: value if isinstance(value, str) else "unscored" if value is None else "scored",
)
def test_a_resumption_without_steps_saves_the_same_files(
    kind: str, select: Select | None, bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(course, "SECONDS_BETWEEN_CHECKPOINTS", 0.0)
    context = context_in(tmp_path, select=select)
    undisturbed = _train(kind, bert, context)
    again = replace(context, output=tmp_path / "again")
    again.output.mkdir()
    assert _train(kind, bert, again) == undisturbed

    # Without `read_once`, training itself leaves the tokenizer in the same state.
    monkeypatch.setattr(loop, "read_once", lambda model, **_: None)
    assert _train(kind, bert, context_in(tmp_path / "bare", select=select)) == undisturbed


@pytest.mark.parametrize("kind", ["bi-encoder", "cross-encoder"])
def test_a_resumption_without_steps_of_a_chat_model_saves_the_same_files(
    kind: str, bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A chat model's tokenizer has a chat template, and another padding token than the configuration."""
    chat = tmp_path / "chat"
    shutil.copytree(bert, chat)
    (chat / "chat_template.jinja").write_text("{% for each in messages %}{{ each['content'] }}{% endfor %}")
    config = json.loads((chat / "config.json").read_text())
    (chat / "config.json").write_text(json.dumps({**config, "pad_token_id": 3}))
    monkeypatch.setattr(course, "SECONDS_BETWEEN_CHECKPOINTS", 0.0)
    context = context_in(tmp_path)
    undisturbed = _train(kind, chat, context)
    again = replace(context, output=tmp_path / "again")
    again.output.mkdir()
    assert _train(kind, chat, again) == undisturbed
