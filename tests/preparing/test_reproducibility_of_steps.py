"""Prepare steps give the same bytes in every process, and the same records in whatever order they come."""

import os
import subprocess
import sys
from pathlib import Path

PROGRAM = """
import json, random, sys
from pathlib import Path
from dino_steps import dino_pairs, dino_recipe
from synthbench.data.dataset import SyntheticDataset
from applying import apply_steps
from synthbench.preparing.drops import DropRefusals
from synthbench.preparing.drops import DropDuplicates
from synthbench.preparing.sampling import Sample
order, folder = int(sys.argv[1]), Path(sys.argv[2])
rows = [(f"x{n // 9}", f"y{n // 2}" if n % 9 else f"x{n // 9}", ("0", "0.5", "1")[n % 3]) for n in range(450)]
records = dino_pairs(rows)
random.Random(order).shuffle(records) if order else None
# The order decides which duplicate stays; no two records are equal in their label, too.
start = [DropDuplicates(same_label=True), DropRefusals()]
steps = [*start, *dino_recipe(3, grouped_by="sentence1")[1:], Sample(fraction=0.9, seed=5)]
result = apply_steps(SyntheticDataset.create("scored_pair", records), steps)
folder.mkdir()
result.write(folder)
rows = sorted(json.dumps(record.values(), sort_keys=True) for record in result)
(folder / "sorted.jsonl").write_text("\\n".join(rows))
"""


def made(folder: Path, hash_seed: str, order: int = 0) -> dict[str, bytes]:
    """Return the files that a new process writes: name -> bytes."""
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-c", PROGRAM, str(order), str(folder)], env=environment, check=True)
    return {file.name: file.read_bytes() for file in sorted(folder.iterdir())}


def test_steps_depend_on_neither_the_process_nor_the_order(tmp_path: Path) -> None:
    first = made(tmp_path / "first", "1")
    assert made(tmp_path / "second", "2") == first
    assert len(first) == 4
    assert first["sorted.jsonl"].count(b"\n") > 300
    assert made(tmp_path / "third", "3", order=1)["sorted.jsonl"] == first["sorted.jsonl"]
