"""Number of DINO's texts that change with the batch size, by precision.

Run: OMP_NUM_THREADS=1 [SYNTHBENCH_DATA=...] python benchmarks/dino_precision.py [--x1 50]
With a trained model: python benchmarks/dino_precision.py --model sandbox/lm

The model writes texts for the same sentences in batches of 1, 8 and 64 rows of three sequences. Prints how
many texts differ from those of the smallest batch.
"""

import argparse
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from dino_setting import (
    COUNTERLABELS,
    DECAY,
    SIZES,
    STEPS,
    TOP_K,
    TOP_P,
    Setting,
    prompts,
    real_or_sandbox_sentences,
    save_model,
    setting,
)
from measure import one_thread

from synthbench.base.runtime import Runtime
from synthbench.generation.jobs import Amounts, Job, WritingTask
from synthbench.generation.language_model import LanguageModel
from synthbench.generation.sampling import Sampling
from synthbench.generation.writer import Writer

Precision = Literal["fp32", "bf16", "fp16"]
PRECISIONS: tuple[Precision, ...] = ("fp32", "bf16", "fp16")
BATCHES = (1, 8, 64)
SAMPLES = 2
Texts = Mapping[tuple[str, str, int], tuple[int, ...]]


def written(model: LanguageModel, work: Setting, rows: int, *, closes: bool, device: str) -> Texts:
    """Return the tokens of every attempt in batches of `rows` rows."""
    causal = model.load(Runtime(device=device))
    task = WritingTask(
        COUNTERLABELS,
        Sampling(decay=DECAY, top_k=TOP_K, top_p=TOP_P, max_new_tokens=STEPS),
        Amounts(samples=SAMPLES, tries=SAMPLES),
        seed=0,
    )
    writer = Writer(causal, task, sequences=3 * rows, endings=None if closes else work)
    jobs = (Job(key=text, prompts=prompts(text)) for text in work.sentences)
    return {
        (one.job.key, attempt.label, attempt.number): attempt.tokens
        for one in writer.write(jobs)
        for attempt in one.attempts
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--x1", type=int, default=50, help="number of sentences")
    parser.add_argument("--model-size", choices=SIZES, default="small")
    parser.add_argument("--model", help="trained model [GPT-2 with random weights]")
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()
    one_thread()
    sentences = real_or_sandbox_sentences()
    with tempfile.TemporaryDirectory() as folder:
        if options.model is None:
            save_model(Path(folder), options.model_size, sentences, "cpu")
        name = options.model or folder
        work = setting(LanguageModel(model=name).load(Runtime(device="cpu")).tokenizer, sentences, options.x1)
        for dtype in PRECISIONS:
            model = LanguageModel(model=name, dtype=dtype)
            first, *others = (
                written(model, work, rows, closes=options.model is not None, device=options.device)
                for rows in BATCHES
            )
            counts = [sum(one[key] != first[key] for key in first) for one in others]
            told = ", ".join(f"{count} with {rows}" for count, rows in zip(counts, BATCHES[1:], strict=True))
            print(f"{dtype}: of {len(first)} texts written {BATCHES[0]} at a time differ {told}", flush=True)


if __name__ == "__main__":
    main()
