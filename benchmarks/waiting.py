"""Two threads that wait for each other in several ways: seconds of a small training, idle and busy cores.

    python benchmarks/waiting.py

Each way of waiting trains in a process of its own, first alone, then beside as many busy processes as there
are cores. Wall seconds, since waiting is measured: the idle figures need an idle machine.
"""

import os
import subprocess
import sys

from synthbench.base.processes import SPINS

WAYS = {
    "two threads, the library's default": {"OMP_NUM_THREADS": "2"},
    f"two threads, synthbench (GOMP_SPINCOUNT={SPINS})": {"OMP_NUM_THREADS": "2", "GOMP_SPINCOUNT": SPINS},
    "two threads, OMP_WAIT_POLICY=passive": {"OMP_NUM_THREADS": "2", "OMP_WAIT_POLICY": "passive"},
    "one thread": {"OMP_NUM_THREADS": "1"},
}
TRAINING = """
import time
import torch
layer = torch.nn.TransformerEncoderLayer(384, 12, 1536, batch_first=True)
model = torch.nn.TransformerEncoder(layer, 2)
batch = torch.randn(16, 24, 384)
optimizer = torch.optim.AdamW(model.parameters())
for step in range(28):
    if step == 3:
        started = time.perf_counter()
    optimizer.zero_grad()
    model(batch).square().mean().backward()
    optimizer.step()
print(time.perf_counter() - started)
"""
ROUNDS = 3
BUSY = "while True: pass"


def seconds(variables: dict[str, str]) -> float:
    """Return the wall seconds of 25 steps, the median of several processes."""
    others = {key: value for key, value in os.environ.items() if not key.startswith(("OMP_", "GOMP_"))}
    done = subprocess.run(
        [sys.executable, "-c", TRAINING],
        env={**others, **variables},
        capture_output=True,
        text=True,
        check=True,
    )
    return float(done.stdout)


def main() -> None:
    """Print a line for each way of waiting."""
    print(f"{'25 steps of a small training':48}  idle     busy")
    idle = {way: seconds(variables) for way, variables in WAYS.items()}
    others = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(os.cpu_count() or 1)]
    try:
        busy = {way: seconds(variables) for way, variables in WAYS.items()}
    finally:
        for other in others:
            other.kill()
    for way in WAYS:
        print(f"{way:48}  {idle[way]:5.2f} s  {busy[way]:5.2f} s")


if __name__ == "__main__":
    main()
