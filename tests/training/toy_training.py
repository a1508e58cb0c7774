"""A world small enough to be learned in a second: a random BERT and pairs of sentences about five topics."""

import random
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from synthbench.base.runtime import Runtime
from synthbench.data.dataset import SyntheticDataset
from synthbench.data.records import RecordKind, ScoredPair
from synthbench.models.interfaces import PairScorer
from synthbench.plugins.model_contracts import Trainer, TrainingContext, TrainingSummary
from synthbench.training.bi_encoder import BiEncoder
from synthbench.training.cross_encoder import CrossEncoder
from synthbench.training.simcse import SimCSE

TOPICS = [[f"{topic}{number}" for number in range(6)] for topic in ("fish", "ship", "star", "bird", "song")]
TRAINERS: dict[str, Callable[..., Trainer]] = {
    "bi-encoder": BiEncoder,
    "bi-encoder in fp16": partial(BiEncoder, precision="fp16"),
    "cross-encoder": CrossEncoder,
    "simcse": partial(SimCSE, learns_from="pair", chunk_size=3, no_duplicates=True),
    "unsupervised simcse": partial(SimCSE, learns_from="sentence", mlm_weight=0.1),
}


def write_tiny_bert(folder: Path) -> Path:
    """Write a random two-layer BERT with dropout, as an ordinary checkpoint."""
    import torch
    from transformers import BertConfig, BertModel, BertTokenizerFast

    folder.mkdir()
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *(word for topic in TOPICS for word in topic)]
    (folder / "vocab.txt").write_text("\n".join(words) + "\n", encoding="utf-8")
    tokenizer = BertTokenizerFast(vocab=str(folder / "vocab.txt"), model_max_length=32)
    config = BertConfig(
        vocab_size=len(words), hidden_size=16, num_hidden_layers=2, num_attention_heads=2,
        intermediate_size=32, max_position_embeddings=32,
    )  # fmt: skip
    with torch.random.fork_rng():
        torch.manual_seed(0)
        BertModel(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def toy_pairs(num_pairs: int, seed: int = 0, **fields: str) -> SyntheticDataset:
    """Return pairs of four-word sentences: score 1 for one topic, 0.5 for half of it, else 0."""
    draw = random.Random(seed)
    records = []
    for number in range(num_pairs):
        score = (0.0, 0.5, 1.0)[number % 3]
        first, second = draw.sample(TOPICS, 2)
        sentence1 = " ".join(draw.choices(first, k=4))
        words = draw.choices(first, k=round(4 * score)) + draw.choices(second, k=round(4 * (1 - score)))
        records.append(ScoredPair(sentence1=sentence1, sentence2=" ".join(words), score=score, **fields))
    return SyntheticDataset.create(RecordKind.SCORED_PAIR, records)


def spearman(scorer: PairScorer, data: SyntheticDataset) -> float:
    from scipy.stats import spearmanr

    pairs = list(zip(data.column("sentence1"), data.column("sentence2"), strict=True))
    return float(spearmanr(scorer.score(pairs), data.column("score")).statistic)


@dataclass
class RecordedProgress:
    """Progress that records its messages."""

    total: int = 0
    done: int = 0
    said: list[str] = field(default_factory=list)

    @contextmanager
    def task(self, description: str, total: int) -> Iterator["RecordedProgress"]:
        self.total = total
        yield self

    def advance(self, amount: int = 1) -> None:
        self.done += amount

    def say(self, message: str) -> None:
        self.said.append(message)


def context_in(
    folder: Path,
    seed: int = 0,
    select: Callable[[PairScorer], float] | None = None,
    runtime: Mapping[str, Any] | None = None,
) -> TrainingContext:
    """Return a training context whose folders lie in `folder`."""
    for name in ("checkpoints", "output"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    return TrainingContext(
        seed=seed,
        checkpoints=folder / "checkpoints",
        output=folder / "output",
        runtime=Runtime(device="cpu") if runtime is None else Runtime(**runtime),
        progress=RecordedProgress(),
        select=select,
    )


def weights(folder: Path) -> dict[str, Any]:
    """Return the weights that a trainer has saved under `folder`."""
    from safetensors.torch import load_file

    found: dict[str, Any] = {}
    for file in sorted((folder / "output").rglob("*.safetensors")):
        found |= {f"{file.parent.name}/{name}": tensor for name, tensor in load_file(file).items()}
    assert found
    return found


def largest_difference(first: Path, second: Path) -> float:
    """Return the largest difference between two saved models."""
    left, right = weights(first), weights(second)
    assert left.keys() == right.keys()
    return max(float((left[name].double() - right[name].double()).abs().max()) for name in left)


def train_to_be_killed(kind: str, bert: Path, folder: Path) -> TrainingSummary:
    """The training of the kill test: two epochs with dropout and three evaluations."""
    trainer = TRAINERS[kind](
        **{
            "base": {"model": str(bert)},
            "epochs": 2,
            "learning_rate": 1e-3,
            "evaluations": 5,
            "batch_size": 8,
        }
    )
    dev = toy_pairs(30, seed=1)
    return trainer.train([toy_pairs(100)], context_in(folder, select=lambda scorer: spearman(scorer, dev)))


def die_while_saving(number: int) -> None:
    """Let the process be killed just before it completes its checkpoint of that number."""
    import os
    import signal

    from synthbench.training.checkpoints import Checkpoints

    complete = Checkpoints.complete
    left = iter(range(number - 1))

    def complete_or_die(self: Checkpoints, step: int) -> None:
        if next(left, None) is None:
            os.kill(os.getpid(), signal.SIGKILL)
        complete(self, step)

    Checkpoints.complete = complete_or_die  # type: ignore[method-assign]


if __name__ == "__main__":
    die_while_saving(int(sys.argv[4]))
    train_to_be_killed(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]))
