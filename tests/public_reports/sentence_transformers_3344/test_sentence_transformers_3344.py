"""huggingface/sentence-transformers #3344: of the best checkpoint the transformer alone comes back.

The model that is kept is the one that had the best dev score, with all of its modules: a layer behind the
pooling is that of the best step, too.
"""

from pathlib import Path

import torch
from fakes import Lines
from hub_cache import SENTENCES, tiny_bert
from safetensors.torch import load_file
from torch import Tensor

from synthbench.base.runtime import Runtime
from synthbench.data.dataset import SyntheticDataset
from synthbench.data.records import Pair, RecordKind
from synthbench.models.interfaces import PairScorer
from synthbench.plugins.model_contracts import TrainingContext
from synthbench.training.simcse import SimCSE

PAIRS = [Pair(anchor=SENTENCES[n], positive=SENTENCES[-n], id=str(n)) for n in range(1, 9)]


class Selection:
    """Prefers the first of two evaluations, and remembers the weights that it saw."""

    def __init__(self) -> None:
        self.seen: list[dict[str, Tensor]] = []

    def __call__(self, scorer: PairScorer) -> float:
        model = scorer._encoder.model  # type: ignore[attr-defined]
        self.seen.append({name: weight.clone() for name, weight in model.state_dict().items()})
        return 0.9 - len(self.seen) / 10


def test_every_module_of_the_saved_model_comes_from_the_best_step(tmp_path: Path) -> None:
    for name in ("bert", "checkpoints", "output"):
        (tmp_path / name).mkdir()
    tiny_bert(tmp_path / "bert")
    context = TrainingContext(
        seed=0,
        checkpoints=tmp_path / "checkpoints",
        output=tmp_path / "output",
        runtime=Runtime(device="cpu", threads=1),
        progress=Lines(),
        select=(selection := Selection()),
    )
    trainer = SimCSE.model_validate(
        {
            "base": {"model": str(tmp_path / "bert")},
            "learns_from": "pair",
            "mlp": "kept",
            "max_steps": 2,
            "batch_size": 4,
            "evaluations": 2,
            "learning_rate": 1e-2,
        }
    )
    trainer.train([SyntheticDataset.create(RecordKind.PAIR, PAIRS)], context)
    best, last = selection.seen
    (head,) = (tmp_path / "output").rglob("*Dense/model.safetensors")
    kept = load_file(head)["linear.weight"]
    (name,) = (name for name in best if name.endswith("linear.weight"))
    assert torch.equal(kept, best[name])
    assert not torch.equal(best[name], last[name])
