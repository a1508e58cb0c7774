"""DINO's generation against `generate`, the authors' loop and the model's own batched forward.

Run: OMP_NUM_THREADS=1 [SYNTHBENCH_DATA=...] python benchmarks/dino.py [--rounds 3]
On a GPU: python benchmarks/dino.py --device cuda --model-size xl --x1 1050 --samples 2 --rounds 1 --paper

A random GPT-2 (6 layers of 384, 50,257 tokens) writes for sentences x 3 labels x 2, 5 and 10 samples; more
samples mean fewer sentences. It never closes a quotation, so closing steps are drawn from the token lengths
of real sentences, and a fifth never close. On a CPU: CPU seconds of one thread, alternating. On a GPU: wall
seconds. `--paper` also runs the paper's job whole: STSb's first texts, five tries for each of two samples.

`generate` has one vectorised processor over all sentences of a label, and a stopping criterion: the strongest
simple peer. The loop writes for one sentence and label at a time, as the paper's code does.

Row-tokens count tokens decoded after regular and counter prompts. The goal is a share of the rate of
transformers' forward. Also printed, without goals: a forward whose linear layers use the engine's library
(oneDNN where faster), and one that also reads the prompts, once each, without their common beginning, as
every engine must. Exit code 1 if a goal is missed.
"""

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import torch
from dino_peer import ByGenerate, PlainForward, PlainLoop, PlainReading
from dino_setting import (
    COUNTERLABELS,
    DECAY,
    DTYPE_OF,
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
from measure import Timing, interleave, one_thread, print_ratio, wall_times

from synthbench.base.runtime import Runtime
from synthbench.generation.jobs import Amounts, Job, WritingTask, Written
from synthbench.generation.language_model import CausalModel, LanguageModel
from synthbench.generation.sampling import Sampling
from synthbench.generation.writer import Writer

GENERATE_GOAL, LOOP_GOAL, FORWARD_GOAL = 4.0, 10.0, 0.95
GENERATE, LOOP = "generate", "loop"
FORWARD, AS_ENGINE = "forward", "forward by the engine's library"
SAMPLES = 2, 5, 10
PAPER_TRIES = 5
BATCHES = {"cpu": (48, 96, 192), "cuda": (256, 1024)}
AT_ONCE = {"cpu": 1_000_000, "cuda": 340}
"""Texts of a label in one call of `generate`; with two counter prompts each, a GPU holds 1,020 rows."""


@dataclass(frozen=True)
class Sizes:
    """Samples per sentence and label, numbers of sentences, and of sentences for the plain loop."""

    samples: int
    x1: int
    peer_x1: int


class Benchmark:
    """The benchmark's variants, all on the same sentences."""

    def __init__(self, causal: CausalModel, work: Setting, sequences: int, sizes: Sizes) -> None:
        self._causal, self._work, self._sizes = causal, work, sizes
        samples = sizes.samples
        # As many tries as samples, so that every variant writes the same number of texts.
        self._writer = Writer(
            causal,
            WritingTask(
                COUNTERLABELS,
                Sampling(decay=DECAY, top_k=TOP_K, top_p=TOP_P, max_new_tokens=STEPS),
                Amounts(samples=samples, tries=samples),
                seed=0,
            ),
            sequences=sequences,
            endings=work,
        )
        self._loop = PlainLoop(causal.model, causal.tokenizer, samples)
        self._generate = ByGenerate(causal.model, causal.tokenizer, samples)

    def engine(self) -> list[Written]:
        """Write for all sentences with the engine."""
        jobs = [
            Job(key=text, prompts=prompts(text), unwanted=frozenset({text})) for text in self._work.sentences
        ]
        return list(self._writer.write(jobs))

    def generate(self) -> None:
        """Write for all sentences with `generate`, a label at a time, as many as fit at once."""
        samples, at_once = self._sizes.samples, AT_ONCE[self._causal.model.device.type] // self._sizes.samples
        for start in range(0, len(self._work.sentences), at_once):
            texts = self._work.sentences[start : start + at_once]
            for label in COUNTERLABELS:

                def is_closed(row: int, steps: int, label: str = label, texts: Any = texts) -> bool:  # noqa: ANN401
                    step = self._work.closing_step(texts[row // samples], label, row % samples)
                    return step is not None and steps >= step

                self._generate.write_all([prompts(text) for text in texts], label, is_closed)

    def loop(self) -> None:
        """Write for the first few sentences with the plain loop, whose calls all take the same time."""
        for sentence in self._work.sentences[: self._sizes.peer_x1]:
            for label in COUNTERLABELS:
                self._loop.write(prompts(sentence), label)

    def forwards(self, batches: Sequence[int]) -> dict[str, PlainForward]:
        """Return plain forwards for these batch sizes (rows), at the mean length of the cache."""
        steps = self.steps()
        twice_mean_position = sum(step * step for step in steps) / sum(steps)
        prompt = round(statistics.mean(len(ids) for of_label in self._prompts() for ids in of_label))
        print(f"prompts of {prompt} tokens, texts of {statistics.mean(steps):.1f}, at most {STEPS}")
        return {
            f"{name}, {rows} rows": PlainForward(
                self._causal.model, rows, prompt, round(twice_mean_position), as_engine=as_engine
            )
            for name, as_engine in ((FORWARD, False), (AS_ENGINE, True))
            for rows in batches
        }

    def reading(self, rows: int) -> PlainReading:
        """Return a reading of `rows` prompts with mean lengths of prompt and common beginning."""
        shared, own = [], []
        for of_label in self._prompts():
            shared.append(
                next(at for at, column in enumerate(zip(*of_label, strict=False)) if len(set(column)) > 1)
            )
            own += [len(ids) - shared[-1] for ids in of_label]
        return PlainReading(
            self._causal.model, rows, round(statistics.mean(shared)), round(statistics.mean(own))
        )

    def _prompts(self) -> list[list[list[int]]]:
        """Return the token ids of every sentence's prompt, for each label."""
        texts = [prompts(sentence) for sentence in self._work.sentences]
        return [
            [self._causal.tokenizer(text[label])["input_ids"] for text in texts] for label in COUNTERLABELS
        ]

    def steps(self) -> list[int]:
        """Return the number of tokens of each attempt."""
        return [steps for _, steps in self._attempts()]

    def row_tokens(self) -> int:
        """Return the number of tokens that the engine decodes, including counter prompts."""
        return sum(steps * (1 + len(COUNTERLABELS[label])) for label, steps in self._attempts())

    def _attempts(self) -> list[tuple[str, int]]:
        return [
            (label, self._work.closing_step(text, label, number) or STEPS)
            for text in self._work.sentences
            for label in COUNTERLABELS
            for number in range(self._sizes.samples)
        ]


def report(
    benchmark: Benchmark, timings: dict[str, Timing], forwards: dict[str, PlainForward], sizes: Sizes
) -> bool:
    """Print pairs and row-tokens per second, both ratios and goals; return whether a goal is missed."""
    written = timings["engine"].result
    pairs = sizes.x1 * len(COUNTERLABELS) * sizes.samples
    assert sum(len(one.attempts) for one in written) == pairs
    decoded = benchmark.row_tokens()
    rates = {name: one.row_tokens / timings[name].seconds for name, one in forwards.items()}
    rates["engine"] = decoded / timings["engine"].seconds
    for name in (LOOP, GENERATE, "engine"):
        print(f"{name}: {pairs / timings[name].seconds:.2f} pairs/s")
    for name, rate in rates.items():
        print(f"{name}: {rate:,.0f} row-tokens/s")
    missed = print_ratio(timings, "engine", GENERATE, GENERATE_GOAL) < GENERATE_GOAL
    missed |= print_ratio(timings, "engine", LOOP, LOOP_GOAL) < LOOP_GOAL
    share, plain = _share_of_best(rates, FORWARD)
    verdict = "reached" if share >= FORWARD_GOAL else "MISSED"
    print(f"engine: {share:.0%} of the row-tokens/s of {plain}, goal {FORWARD_GOAL:.0%} {verdict}")
    of_library, best = _share_of_best(rates, AS_ENGINE)
    with_reading = decoded / (decoded / rates[best] + timings["reading"].seconds)
    print(
        f"engine: {of_library:.0%} of {best}; {rates['engine'] / with_reading:.0%} of {with_reading:,.0f}"
        " row-tokens/s, of one that reads the prompts, too"
    )
    return missed or share < FORWARD_GOAL


def _share_of_best(rates: dict[str, float], kind: str) -> tuple[float, str]:
    """Return the engine's share of the fastest forward's rate, and that forward's name."""
    best = max((name for name in rates if name.startswith(f"{kind},")), key=lambda name: rates[name])
    return rates["engine"] / rates[best], best


def fewer(x1: int, samples: int) -> int:
    """Return the number of sentences that gives about as many texts as `x1` sentences with two samples."""
    return max(1, x1 * SAMPLES[0] // samples)


def compare(causal: CausalModel, sizes: Sizes, sentences: list[str], given: argparse.Namespace) -> bool:
    """Measure and print for one number of samples; return whether a goal is missed."""
    print(f"{sizes.x1} sentences, {sizes.samples} samples of each label")
    work = setting(causal.tokenizer, sentences, sizes.x1)
    runtime = Runtime(device=given.device, sequences=given.sequences)
    benchmark = Benchmark(causal, work, runtime.num_sequences(given.device), sizes)
    forwards = benchmark.forwards(BATCHES[given.device])
    reading = benchmark.reading(BATCHES[given.device][0])
    variants: dict[str, Callable[[], Any]] = {LOOP: benchmark.loop, GENERATE: benchmark.generate}
    variants |= {"engine": benchmark.engine, "reading": reading.read}
    variants |= {name: forward.decode for name, forward in forwards.items()}
    timings = (interleave if given.device == "cpu" else wall_times)(variants, given.rounds)
    whole = {LOOP: sizes.x1 / sizes.peer_x1, "reading": sizes.x1 * len(COUNTERLABELS) / reading.rows}
    timings |= {name: Timing(timings[name].seconds * scale, None) for name, scale in whole.items()}
    return report(benchmark, timings, forwards, sizes)


class ClosingTokenizer:
    """A tokenizer whose texts are distinct, and closed unless they have all tokens."""

    def __init__(self, tokenizer: Any) -> None:  # noqa: ANN401 - transformers is untyped
        self._tokenizer, self._numbers = tokenizer, count()

    def __call__(self, texts: list[str]) -> Any:  # noqa: ANN401
        """Return the tokens of prompts."""
        return self._tokenizer(texts)

    def decode(self, tokens: Sequence[int], **_: object) -> str:
        """Return a distinct text."""
        return f"text {next(self._numbers)}" + ('"' if len(tokens) < STEPS else "")


def papers_job(causal: CausalModel, sentences: list[str], given: argparse.Namespace) -> None:
    """Write for all sentences with five tries, and print seconds and memory."""
    work = setting(causal.tokenizer, sentences, len(sentences))
    closing = CausalModel(causal.model, ClosingTokenizer(causal.tokenizer), causal.device)  # type: ignore[arg-type]
    sampling = Sampling(decay=DECAY, top_k=TOP_K, top_p=TOP_P, max_new_tokens=STEPS)
    task = WritingTask(COUNTERLABELS, sampling, Amounts(SAMPLES[0], PAPER_TRIES), seed=0)
    runtime = Runtime(device=given.device, sequences=given.sequences)
    sequences = runtime.num_sequences(given.device)
    writer = Writer(closing, task, sequences=sequences, endings=work, say=print)
    jobs = (Job(key=text, prompts=prompts(text)) for text in work.sentences)
    started = time.perf_counter()
    written = list(writer.write(jobs))
    seconds = time.perf_counter() - started
    tries = sum(len(one.attempts) for one in written)
    memory = torch.cuda.max_memory_allocated() / 1e9 if given.device == "cuda" else 0.0
    print(
        f"the paper's job, {len(work.sentences):,} x1: {tries:,} tries in {seconds:,.0f} s,"
        f" {tries / seconds:,.0f} a second, at most {memory:.1f} GB"
    )


def main() -> int:
    """Measure and print; return 1 if a goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--model-size", choices=SIZES, default="small")
    parser.add_argument("--device", choices=BATCHES, default="cpu")
    parser.add_argument("--samples", type=int, nargs="+", default=SAMPLES, help="per sentence and label")
    parser.add_argument("--x1", type=int, default=48, help="number of sentences, for two samples each")
    parser.add_argument("--peer-x1", type=int, default=4, help="number of them for the plain loop")
    parser.add_argument("--sequences", type=int, help="sequences decoded at once, as in experiments")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--paper", action="store_true", help="also the paper's whole job")
    given = parser.parse_args()
    one_thread()
    sentences = real_or_sandbox_sentences()
    runtime = Runtime(device=given.device, sequences=given.sequences)
    with tempfile.TemporaryDirectory() as folder:
        save_model(Path(folder), given.model_size, sentences, given.device)
        language_model = LanguageModel(model=folder, dtype=DTYPE_OF[given.model_size])
        causal = language_model.load(runtime)
    if given.paper:
        papers_job(causal, sentences, given)
    missed = [
        compare(causal, sizes, sentences, given)
        for samples in given.samples
        for sizes in [Sizes(samples, fewer(given.x1, samples), fewer(given.peer_x1, samples))]
    ]
    return int(any(missed))


if __name__ == "__main__":
    sys.exit(main())
