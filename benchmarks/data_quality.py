"""Search a million sentences for test sentences, and inspect a million rows: CPU seconds of one thread.

    python benchmarks/data_quality.py [--sentences N]

Texts are DINO's released files and SNLI from the folder in SYNTHBENCH_DATA, repeated with words and numbers
added so that all are distinct. Tests are all STS sets in it. The peer is datasketch, if installed: MinHash of
the same 5-grams for some of the sentences, extrapolated. Exit code 1 if a goal is missed.
"""

import argparse
import os
import random
import resource
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

os.environ.update(dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "RAYON_NUM_THREADS"), "1"))

from measure import data_folder, exit_with, one_thread

from synthbench.cli.dataset import encoder_name, loaded_encoder
from synthbench.data.contamination import TestIndex, search
from synthbench.data.dataset import SyntheticDataset
from synthbench.data.inspect import describe
from synthbench.data.likeness import bare
from synthbench.data.near_duplicates import NUM_PERMUTATIONS
from synthbench.data.quality import examine
from synthbench.data.records import RecordKind, ScoredPair
from synthbench.data.streaming import AT_ONCE, text_batches
from synthbench.suites.known import find_tasks

if TYPE_CHECKING:
    from synthbench.data.likeness import Encode

GOALS = {"search": 600, "inspect": 60}
PEER_SENTENCES = 2_000
WITH_EMBEDDINGS = 50_000
MILLION, FEWER = 1_000_000, 4


def real_texts(data: Path) -> list[str]:
    """Return the distinct second texts of DINO's released files, and SNLI's sentences."""
    from synthbench.api import ImportOptions
    from synthbench_dino.files import DINOFile

    dino, options = DINOFile(), ImportOptions()
    files = sorted((data / "synthetic" / "dino-gpt2xl").glob("sts-*.jsonl"))
    contents = (dino.read(file, RecordKind.SCORED_PAIR, options) for file in files)
    texts = [pair.texts()[1] for content in contents for pair in content.records]
    lines = (data / "unlabelled" / "snli_dev_test_sentences.txt").read_text(encoding="utf-8").split("\n")
    return list(dict.fromkeys(text.strip() for text in (*texts, *lines) if text.strip()))


def many(texts: Sequence[str], number: int) -> Iterator[str]:
    """Yield the texts, then repeat them with a number and a word of another text."""
    draw = random.Random(0)
    for place in range(number):
        text = texts[place % len(texts)]
        yield text if place < len(texts) else f"{text} {draw.choice(texts).split()[0]} {place // len(texts)}"


def written(texts: Sequence[str], number: int, folder: Path) -> None:
    """Write a data set of `number` neighbouring pairs, a tenth of them dev."""
    pairs = zip(many(texts, number), islice(many(texts, number + 1), 1, None), strict=True)
    records = (
        ScoredPair(
            sentence1=first, sentence2=second, score=place % 3 / 2, split="train" if place % 10 else "dev"
        )
        for place, (first, second) in enumerate(pairs)
    )
    SyntheticDataset.create(RecordKind.SCORED_PAIR, records).write(folder)


def timed(call: Callable[[], object]) -> float:
    """Return the CPU seconds of a call."""
    start = time.process_time()
    call()
    return time.process_time() - start


def memory() -> str:
    """Return this process's peak memory so far, in words."""
    return f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024:,} MB at most so far"


def batches(texts: Iterator[str]) -> Iterator[list[tuple[str]]]:
    """Yield batches of records of one sentence."""
    while rows := [(text,) for text in islice(texts, AT_ONCE)]:
        yield rows


def compare_with_datasketch(texts: Sequence[str], seconds: float) -> None:
    """Print the time that datasketch would need for its sketches alone."""
    if find_spec("datasketch") is None:
        print("datasketch is not installed: no peer")
        return
    from datasketch import MinHash

    def sketch() -> None:
        for text in map(bare, texts[:PEER_SENTENCES]):
            shingles = {text[start : start + 5].encode() for start in range(max(1, len(text) - 4))}
            MinHash(NUM_PERMUTATIONS).update_batch(shingles)

    peer = timed(sketch) / PEER_SENTENCES * 1e6
    print(f"datasketch, the sketches alone: {peer:.0f} s a million; {peer / seconds:.1f}x of all of ours")


def inspection(folder: Path, number: int, encode: "Encode") -> float:
    """Print and return the seconds of inspecting the data set in a folder."""
    dataset = SyntheticDataset.read(folder)
    whole = timed(lambda: describe(dataset))
    sampled = timed(lambda: examine(dataset, encode, encoder_name(None)))
    print(f"inspect {number:,} pairs: {whole + sampled:.1f} s, {sampled:.1f} of them samples; {memory()}")
    return whole + sampled


def at_a_million(number: int, seconds: float, of_fewer: float) -> float:
    """Print and return the seconds for a million pairs, extrapolated from two smaller numbers.

    Part of the time is constant, since the samples have a fixed size.
    """
    slope = (seconds - of_fewer) / (number - number // FEWER)
    estimate = seconds + slope * (MILLION - number)
    print(f"inspect {MILLION:,} pairs: {estimate:.1f} s, extrapolated")
    return estimate


def main() -> int:
    """Measure and print."""
    options = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    options.add_argument(
        "--sentences", type=int, default=1_000_000, help="at least 100,000, to fill the samples"
    )
    number = options.parse_args().sentences
    one_thread()
    data = data_folder()
    texts = real_texts(data)
    tests, _ = find_tasks("sts", data)
    rows = {name: list(task.text_rows()) for name, task in tests.items()}
    start = time.process_time()
    index = TestIndex(rows)
    print(
        f"{len(index.sentences):,} test sentences indexed in {time.process_time() - start:.1f} s; {memory()}"
    )
    seconds = timed(lambda: search(batches(many(texts, number)), index))
    a_million = seconds * 1e6 / number
    print(f"searched in {number:,} sentences: {seconds:.1f} s, {a_million:.0f} s a million; {memory()}")
    compare_with_datasketch(texts, a_million)
    encode = loaded_encoder(None).encode
    near = TestIndex(rows, checks=(), encode=encode)
    some = min(number, WITH_EMBEDDINGS)
    embedding = timed(lambda: search(batches(many(texts, some)), near)) * 1e6 / some
    print(f"by embedding alone, from {some:,}: {embedding:.0f} s a million")
    with tempfile.TemporaryDirectory() as folder:
        written(texts, number, Path(folder))
        streamed = timed(lambda: search(text_batches(Path(folder)), index))
        print(f"searched in the pairs of a folder: {streamed:.1f} s; {memory()} (writing it among that)")
        inspected = inspection(Path(folder), number, encode)
    if number < MILLION:
        with tempfile.TemporaryDirectory() as folder:
            written(texts, number // FEWER, Path(folder))
            inspected = at_a_million(number, inspected, inspection(Path(folder), number // FEWER, encode))
    met = a_million <= GOALS["search"] and inspected <= GOALS["inspect"]
    return 0 if met else 1


if __name__ == "__main__":
    exit_with(main)
