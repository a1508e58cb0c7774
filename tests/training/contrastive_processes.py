"""One of the processes that share a batch; leaves the gradients that its model ends up with.

python contrastive_processes.py BERT FOLDER RANK NUM_PROCESSES
"""

import sys
from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor, distributed

from synthbench.data.records import RecordKind
from synthbench.models.building import build_encoder
from synthbench.models.pretrained import Pretrained
from synthbench.training.objectives import contrastive

BATCH = (
    ["fish0", "ship1 ship2", "star3 star4 star5", "bird0 bird1"],
    ["fish1 fish2", "ship3", "star1", "bird2 bird3 bird4"],
    ["ship0 fish0", "star2", "bird5 song1 song2", "song3"],
)

CHUNK_SIZES = (None, 1)


def gradients(
    bert: Path, chunk_size: int | None, rank: int = 0, num_processes: int = 1
) -> Mapping[str, Tensor]:
    """Return the gradients of this process's share of the batch, averaged with the other processes'."""
    model = build_encoder(Pretrained(model=str(bert)), 0, "cpu").eval()
    for name, parameter in model.named_parameters():
        parameter.requires_grad_("pooler" not in name)
    loss = contrastive(RecordKind.TRIPLET, 0.05, 0.7, chunk_size).loss(model)
    if num_processes > 1:
        loss.model = torch.nn.parallel.DistributedDataParallel(model)
    share = len(BATCH[0]) // num_processes
    columns = [column[rank * share : (rank + 1) * share] for column in BATCH]
    loss([model.preprocess(column) for column in columns], None).backward()
    return {name: value.grad for name, value in model.named_parameters() if value.grad is not None}


def main() -> None:
    bert, folder = Path(sys.argv[1]), Path(sys.argv[2])
    rank, num_processes = map(int, sys.argv[3:])
    torch.set_num_threads(1)
    distributed.init_process_group(
        "gloo", init_method=(folder / "meeting").as_uri(), rank=rank, world_size=num_processes
    )
    for chunk_size in CHUNK_SIZES:
        torch.save(gradients(bert, chunk_size, rank, num_processes), folder / f"{rank} {chunk_size}.pt")
    distributed.destroy_process_group()


if __name__ == "__main__":
    main()
