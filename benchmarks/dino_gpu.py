"""Computed time of the paper's job (GPT2-XL, 10,500 x1, 3 labels, 2 samples) on an H200, without a GPU.

Run: [SYNTHBENCH_DATA=...] python benchmarks/dino_gpu.py [--x1 10500] [--sequences 2048]

The engine's own scheduling runs with a model that only records requests: steps, rows, widths of attention,
bytes held and moved. The GPU's seconds follow from its bandwidth and multiply-adds per second; the host's are
measured, since each step waits for it. Exit code 1 if the total exceeds 120 s.
"""

import argparse
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from dino_setting import (
    COUNTERLABELS,
    STEPS,
    VOCABULARY,
    Setting,
    prompts,
    real_or_sandbox_sentences,
    save_model,
    setting,
)
from measure import one_thread
from transformers import AutoTokenizer, PreTrainedTokenizerBase

from synthbench.generation import batch
from synthbench.generation.arrangement import Parts
from synthbench.generation.cuda_graphs import WIDER
from synthbench.generation.decoding import LOGIT_COPIES, Network, rounded
from synthbench.generation.jobs import Amounts, Job, WritingTask
from synthbench.generation.sampling import Sampling
from synthbench.generation.writer import Input, LabelState, Scheduler, Tools

LAYERS, HEADS, SIZE, WEIGHTS = 48, 25, 64, 1.56e9
OF_TOKEN = 2 * LAYERS * HEADS * SIZE * 2
"""Bytes of a token's keys and values in bf16."""
PRODUCTS, BANDWIDTH, MEMORY = 790e12 / 2, 4.3e12, 141e9
"""An H200's maximum of multiply-adds and bytes per second, and its bytes of memory."""
REACHED = 0.5
"""The assumed share of both rates."""
RECORDING = 0.15
"""Seconds to record a step as a CUDA graph, as long as three steps without one."""
TRIES = 5
GOAL = 120.0


@dataclass
class Work:
    """The recorded work of the GPU."""

    steps: int = 0
    lines: int = 0
    attended: int = 0
    needed: int = 0
    read: int = 0
    moved: int = 0
    held: Counter[int] = field(default_factory=Counter)
    most_held: int = 0
    recordings: dict[int, list[tuple[int, ...]]] = field(default_factory=dict)

    def hold(self, of: int, tokens: int) -> None:
        """Record the number of tokens whose keys and values cache `of` holds."""
        self.held[of] = tokens
        self.most_held = max(self.most_held, sum(self.held.values()))


class NotedKeyValues:
    """A key-value cache with a size but no contents."""

    def __init__(self, work: Work, num_sequences: int, length: int) -> None:
        self.work, self.num_sequences, self.length = work, num_sequences, length
        work.hold(id(self), num_sequences * length)

    def __del__(self) -> None:
        """Free the cache's memory."""
        self.work.held.pop(id(self), None)

    def part(self, start: int, end: int) -> "NotedKeyValues":
        """Return itself: parts hold no memory of their own."""
        return self

    def grow(self, length: int) -> None:
        """Record the growth, which copies the contents."""
        self.work.moved += 2 * self.num_sequences * self.length
        self.length = length
        self.work.hold(id(self), self.num_sequences * length)

    def copy_from(self, other: object, targets: Sequence[int], origins: Sequence[int], length: int) -> None:
        """Record the copy: read, write aside, read again, write."""
        self.work.moved += 4 * len(targets) * length


class NotedNetwork:
    """Replaces GPT2-XL's network, and records its work."""

    def __init__(self, work: Work) -> None:
        self.work = work
        self._logits = torch.zeros(1)

    def key_values(self, num_sequences: int, length: int) -> NotedKeyValues:
        """Return a key-value cache without contents."""
        return NotedKeyValues(self.work, num_sequences, rounded(length))

    def read(self, cache: object, tokens: torch.Tensor, starts: torch.Tensor, width: int) -> None:
        """Record the prompts' tokens, including padding."""
        self.work.read += tokens.numel()

    def padded(self, num_sequences: int, most: int) -> int:
        """Return the padded number of rows of a step on a GPU."""
        return Network.padded(SimpleNamespace(_is_recorded=True), num_sequences, most)  # type: ignore[arg-type]

    def next_logits(
        self, cache: object, tokens: torch.Tensor, starts: torch.Tensor, parts: Parts
    ) -> torch.Tensor:
        """Record a decoding step, and the capture of a CUDA graph if there is none yet."""
        work, lines = self.work, len(tokens)
        known = work.recordings.setdefault(lines, [])
        enough = [
            widths
            for widths in known
            if all(has >= needs for has, needs in zip(widths, parts.widths, strict=True))
            and sum(widths) <= WIDER * sum(parts.widths)
        ]
        widths = min(enough, key=sum, default=parts.widths)
        if not enough:
            known.append(widths)
        sizes = [min(parts.size, lines - number * parts.size) for number in range(len(widths))]
        work.steps += 1
        work.lines += lines
        work.attended += sum(size * width for size, width in zip(sizes, widths, strict=True))
        work.needed += int((starts + 1).sum())
        return self._logits


class NoSampler:
    """Draws nothing: the setting decides where texts end."""

    def candidates(
        self, logits: torch.Tensor, rows: torch.Tensor, counter_rows: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return one token per row."""
        return torch.zeros((len(rows), 1), dtype=torch.long), torch.ones((len(rows), 1))

    def choose(
        self, tokens: torch.Tensor, probabilities: torch.Tensor, uniforms: torch.Tensor
    ) -> torch.Tensor:
        """Return the tokens unchanged."""
        return tokens[:, 0]


class KnownEndings:
    """Looks up the setting's endings, since drawing them is not the engine's work."""

    def __init__(self, setting: Setting, tries: int) -> None:
        self._steps = {
            (key, label, number): setting.closing_step(key, label, number) or STEPS + 1
            for key in setting.sentences
            for label in COUNTERLABELS
            for number in range(tries)
        }

    def is_end(self, key: str, label: str, number: int, tokens: Sequence[int]) -> bool:
        """Return whether this attempt ends with its latest token."""
        return len(tokens) >= self._steps[key, label, number]


class ClosingTokenizer:
    """Decodes to distinct texts, closed if shorter than the limit."""

    def __init__(self) -> None:
        self._numbers = count()

    def decode(self, tokens: Sequence[int], **_: object) -> str:
        """Return a distinct text."""
        return f"text {next(self._numbers)}" + ('"' if len(tokens) < STEPS else "")


def inputs(sentences: Sequence[str], tokenizer: PreTrainedTokenizerBase) -> list[Input]:
    """Return the inputs with tokenised prompts."""
    made = []
    for text in sentences:
        own = prompts(text)
        tokens = dict(zip(own, tokenizer(list(own.values()))["input_ids"], strict=True))
        job = Job(key=text, prompts=own, unwanted=frozenset())
        made.append(Input(job, tokens, {label: LabelState() for label in own}))
    return made


def schedule(work: Work, planned: list[Input], endings: KnownEndings, sequences: int) -> float:
    """Run the engine's scheduling for all inputs; return the host's seconds."""
    causal: Any = SimpleNamespace(device=torch.device("cpu"), tokenizer=ClosingTokenizer(), max_length=None)
    network: Any = NotedNetwork(work)
    sampling = Sampling(decay=100.0, top_k=5, top_p=0.9, max_new_tokens=STEPS)
    task = WritingTask(COUNTERLABELS, sampling, Amounts(samples=2, tries=TRIES), seed=0)
    tools = Tools(causal, network, NoSampler(), endings)  # type: ignore[arg-type]
    start = time.process_time()
    written = sum(1 for _ in Scheduler(tools, task, sequences, iter(planned)).work())
    assert written == len(planned) * len(COUNTERLABELS)
    return time.process_time() - start


def report(work: Work, host: float, sequences: int) -> float:
    """Print the job's totals; return its seconds."""
    of_logits = 4 * VOCABULARY
    num_recordings = sum(map(len, work.recordings.values()))
    held = work.most_held * (1 + 1 / LAYERS) * OF_TOKEN
    most = held + LOGIT_COPIES * of_logits * sequences + 2 * WEIGHTS
    seconds = {
        "products of steps": work.lines * WEIGHTS / PRODUCTS / REACHED,
        "products of prompts": work.read * WEIGHTS / PRODUCTS / REACHED,
        "keys and values read": work.attended * OF_TOKEN / BANDWIDTH / REACHED,
        "keys and values moved": work.moved * OF_TOKEN / BANDWIDTH / REACHED,
        "weights read": work.steps * 2 * WEIGHTS / BANDWIDTH / REACHED,
        "logits": work.lines * 2 * LOGIT_COPIES * of_logits / BANDWIDTH / REACHED,
        "recordings": num_recordings * RECORDING,
        "host": host,
    }
    print(f"most bytes held: {most / 1e9:.1f} GB of {MEMORY / 1e9:.0f}, keys and values {held / 1e9:.1f}")
    print(f"steps: {work.steps:,}; {work.lines / work.steps:,.0f} lines each; recordings: {num_recordings}")
    print(f"keys and values read: {work.attended / work.needed:.2f} times what is needed")
    print(f"host: {1000 * host / work.steps:.1f} ms a step (this machine, scheduling included)")
    for name, part in seconds.items():
        print(f"{name}: {part:.1f} s")
    total = sum(seconds.values())
    verdict = "reached" if total <= GOAL else "MISSED"
    print(f"the job: {total:.0f} s by arithmetic, goal {GOAL:.0f} s {verdict}; never run on a GPU")
    return total


def main() -> int:
    """Plan and print; return 1 if the goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--x1", type=int, default=10_500)
    parser.add_argument("--sequences", type=int, default=2048)
    parser.add_argument("--parts", type=int, default=batch.PARTS["cuda"], help="parts of a batch")
    given = parser.parse_args()
    one_thread()
    sentences = real_or_sandbox_sentences()
    with tempfile.TemporaryDirectory() as folder:
        save_model(Path(folder), "tiny", sentences, "cpu")
        tokenizer = AutoTokenizer.from_pretrained(folder)
    endings = setting(tokenizer, sentences, min(given.x1, len(sentences)))
    batch.PARTS["cpu"] = given.parts
    planned = inputs(endings.sentences, tokenizer)
    work = Work()
    host = schedule(work, planned, KnownEndings(endings, TRIES), given.sequences)
    print(f"{len(planned):,} x1, {given.sequences:,} sequences, {given.parts} parts")
    return int(report(work, host, given.sequences) > GOAL)


if __name__ == "__main__":
    sys.exit(main())
