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
rows = [(f"x{n // 9}", f"y{n // 2}" if n % 9 else f"x{n // 9}", ("0", "0.5", "1")[n % 3]) for n in range(450)]
# The order decides which duplicate stays; no two records are equal in their label, too.
start = [DropDuplicates(same_label=True), DropRefusals()]
steps = [*start, *dino_recipe(3, grouped_by="sentence1")[1:], Sample(fraction=0.9, seed=5)]
for order, folder in enumerate(map(Path, sys.argv[1:])):
    records = dino_pairs(rows)
    random.Random(order).shuffle(records) if order else None
    result = apply_steps(SyntheticDataset.create("scored_pair", records), steps)
    folder.mkdir()
    result.write(folder)
    written = sorted(json.dumps(record.values(), sort_keys=True) for record in result)
    (folder / "sorted.jsonl").write_text("\\n".join(written))
"""


def made(hash_seed: str, *folders: Path) -> list[dict[str, bytes]]:
    """Return the files that a new process writes into each folder, from records in an order of its own."""
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-c", PROGRAM, *map(str, folders)], env=environment, check=True)
    return [{file.name: file.read_bytes() for file in sorted(folder.iterdir())} for folder in folders]


def test_steps_depend_on_neither_the_process_nor_the_order(tmp_path: Path) -> None:
    (first,) = made("1", tmp_path / "first")
    second, shuffled = made("2", tmp_path / "second", tmp_path / "shuffled")
    assert second == first
    assert len(first) == 4
    assert first["sorted.jsonl"].count(b"\n") > 300
    assert shuffled["sorted.jsonl"] == first["sorted.jsonl"]
