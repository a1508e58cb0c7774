"""A million pairs, similar and dissimilar, pass every step without a model in under 2 GB of memory.

Each step runs in a process of its own, whose data the kernel limits.
"""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from synthbench.data.dataset import write_records
from synthbench.data.records import Pair, RecordKind, ScoredPair

pytestmark = pytest.mark.experiments
SCRIPT = Path(__file__).parents[1] / "memory_of_a_step.py"
NUMBER, NUMBER_OF_VECTORS, NUMBER_HELD_OUT = 1_000_000, 100_000, 10_000
MOST_MEGABYTES, GIGABYTES_OF_DATA = 2_000, "4"
STEPS: list[dict[str, Any]] = [
    {"step": "length", "min_words": 3, "max_words": 60},
    {"step": "drop-refusals"},
    {"step": "drop-identical", "normalised": True},
    {"step": "drop-duplicates", "normalised": True},
    {"step": "drop-near-duplicates"},
    {"step": "drop-contaminated", "sources": ["held-out"]},
    {"step": "drop-overlap", "sources": ["held-out"], "by": "near-duplicate"},
    {"step": "drop-overlap", "sources": ["held-out"], "by": "13-gram"},
    {"step": "sample", "fraction": 0.5},
    {"step": "keep-per-group", "columns": ["score"], "most": 1_000},
    {"step": "split", "dev": 0.1},
    {"step": "smooth-labels"},
    {"step": "add-random-negatives"},
]
WORDS = [f"{first}{second}{third}" for first in "bdfgklmnpr" for second in "aeiou" for third in "lmnrst"]


def alike(number: int) -> str:
    """Return a sentence of a template, as a generator with one prompt writes them."""
    return (
        f"In the {WORDS[number % 7]} report the company says that it sold {number} units in the region of"
        f" {WORDS[number % 11]} last year."
    )


def unlike(number: int) -> str:
    """Return a sentence of random words."""
    return " ".join(WORDS[index] for index in np.random.default_rng(number).integers(0, len(WORDS), 12))


KINDS: dict[str, Callable[[int], str]] = {"alike": alike, "unlike": unlike}


def pairs(text: Callable[[int], str], number: int) -> Iterator[ScoredPair]:
    for index in range(number):
        yield ScoredPair(
            sentence1=text(index), sentence2=text(index + NUMBER), score=index % 11 / 10, id=f"pair-{index}"
        )


@pytest.fixture(scope="module", params=KINDS)
def folder(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Path:
    """A million pairs, and ten thousand held-out pairs, some of them identical."""
    folder, text = tmp_path_factory.mktemp(request.param), KINDS[request.param]
    for name, number in (("pairs", NUMBER), ("held-out", NUMBER_HELD_OUT)):
        (folder / name).mkdir()
        write_records(folder / name, RecordKind.SCORED_PAIR, pairs(text, number))
    return folder


def measured(source: Path, target: Path, step: dict[str, Any], *against: str) -> dict[str, Any]:
    command = [
        sys.executable,
        str(SCRIPT),
        str(source),
        str(target),
        GIGABYTES_OF_DATA,
        json.dumps(step),
        *against,
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    print(step, found)
    return found


@pytest.mark.parametrize("step", STEPS, ids=lambda step: f"{step['step']} {step.get('by', '')}".strip())
def test_a_million_pairs_take_less_than_two_gigabytes(
    folder: Path, tmp_path: Path, step: dict[str, Any]
) -> None:
    found = measured(folder / "pairs", tmp_path, step, str(folder / "held-out"))
    assert found["megabytes"] < MOST_MEGABYTES
    assert found["records"] + sum(found["dropped"].values()) >= NUMBER


@pytest.mark.parametrize("kind", KINDS)
def test_vectors_of_a_hundred_thousand_texts_stay_on_the_disk(tmp_path: Path, kind: str) -> None:
    (tmp_path / "pairs").mkdir()
    text = KINDS[kind]
    some = (
        Pair(anchor=text(index), positive=text(index + NUMBER)) for index in range(NUMBER_OF_VECTORS // 2)
    )
    write_records(tmp_path / "pairs", RecordKind.PAIR, some)
    step = {"step": "semantic-dedup", "encoder": {"model": "hashing"}}
    assert measured(tmp_path / "pairs", tmp_path / "out", step)["megabytes"] < MOST_MEGABYTES
