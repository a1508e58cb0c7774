"""huggingface/transformers #11323: a resumed training ends otherwise than an undisturbed one.

Order of the data, dropout, optimizer and schedule go on where they were: after an interruption the weights
are the same to rounding, and so are the curve and the best step.
"""

from pathlib import Path

import pytest
from fakes import Lines
from hub_cache import SENTENCES, tiny_bert
from safetensors.torch import load_file

from synthbench.base.runtime import Runtime
from synthbench.data.dataset import SyntheticDataset
from synthbench.data.records import RecordKind, ScoredPair
from synthbench.models.interfaces import PairScorer
from synthbench.plugins.model_contracts import TrainingContext, TrainingSummary
from synthbench.training.bi_encoder import BiEncoder

PAIRS = [
    ScoredPair(sentence1=SENTENCES[n], sentence2=SENTENCES[-n], score=n % 3 / 2, id=str(n))
    for n in range(1, 15)
]


class Selection:
    """Prefers the last of three evaluations, and is interrupted once before the one with a number."""

    def __init__(self, interrupted_at: int | None) -> None:
        self.scores = iter([0.1, 0.3, 0.9])
        self.left = interrupted_at

    def __call__(self, scorer: PairScorer) -> float:
        if self.left == 0:
            self.left = None
            raise KeyboardInterrupt
        self.left = None if self.left is None else self.left - 1
        return next(self.scores)


def train(bert: Path, folder: Path, chosen: Selection) -> TrainingSummary:
    for name in ("checkpoints", "output"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    context = TrainingContext(
        seed=3,
        checkpoints=folder / "checkpoints",
        output=folder / "output",
        runtime=Runtime(device="cpu", threads=1),
        progress=Lines(),
        select=chosen,
    )
    trainer = BiEncoder.model_validate(
        {
            "base": {"model": str(bert)},
            "max_steps": 6,
            "batch_size": 4,
            "evaluations": 3,
            "learning_rate": 1e-3,
        }
    )
    return trainer.train([SyntheticDataset.create(RecordKind.SCORED_PAIR, PAIRS)], context)


def test_an_interrupted_training_ends_with_the_same_weights(tmp_path: Path) -> None:
    (tmp_path / "bert").mkdir()
    tiny_bert(tmp_path / "bert")
    undisturbed = train(tmp_path / "bert", tmp_path / "once", Selection(None))
    interrupted = Selection(1)
    with pytest.raises(KeyboardInterrupt):
        train(tmp_path / "bert", tmp_path / "twice", interrupted)
    resumed = train(tmp_path / "bert", tmp_path / "twice", interrupted)
    assert resumed == undisturbed
    assert resumed.best_step == 6
    once, twice = (
        load_file(next((tmp_path / name / "output").rglob("model.safetensors"))) for name in ("once", "twice")
    )
    assert once.keys() == twice.keys()
    assert max(float((once[name] - twice[name]).abs().max()) for name in once) < 1e-6
