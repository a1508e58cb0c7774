"""huggingface/sentence-transformers #2818: a positive of two questions is mined as a negative.

The same text is no negative of a question that it answers, however many records hold it, by either miner.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pytest
from numpy.typing import NDArray

from synthbench.data.dataset import SyntheticDataset
from synthbench.data.records import Pair, RecordKind, Triplet
from synthbench.preparing.mining import MineNegatives

if TYPE_CHECKING:
    from synthbench.plugins.contracts import StepContext

PAIRS = [
    ("What is the capital of France?", "Paris"),
    ("What is the capital of Germany?", "Berlin"),
    ("What is the capital of Italy?", "Rome"),
    ("What is the first name of Paris Hilton?", "Paris"),
    ("What is the capital of Italy?", "Rome, of course"),
    ("Is Paris or Rome the capital of Italy?", "Rome"),
]


class Letters:
    """Counts letters: enough to have neighbours."""

    def encode(self, sentences: Sequence[str]) -> NDArray[np.float32]:
        return np.array(
            [[text.lower().count(chr(97 + n)) + 0.1 for n in range(26)] for text in sentences], np.float32
        )


@dataclass(frozen=True)
class Context:
    folder: Path

    def scratch(self) -> Path:
        return self.folder

    def measure(self, name: str, value: float) -> None: ...

    def encoder(self, need: str) -> Letters:
        return Letters()

    def count_dropped(self, reason: str, number: int) -> None: ...


@pytest.mark.parametrize("miner", [{"encoder": {"base": {"model": "any"}}}, {"miner": "bm25"}])
def test_no_positive_of_a_question_becomes_its_negative(miner: dict[str, Any], tmp_path: Path) -> None:
    records = [
        Pair(id=str(n), anchor=anchor, positive=positive) for n, (anchor, positive) in enumerate(PAIRS)
    ]
    step = MineNegatives.model_validate({"number": 2, **miner})
    data = SyntheticDataset.create(RecordKind.PAIR, records)
    made = step.apply(data, cast("StepContext", Context(tmp_path)))
    found = [one for one in made if isinstance(one, Triplet)]
    assert found
    answers = {anchor: {positive for of, positive in PAIRS if of == anchor} for anchor, _ in PAIRS}
    for one in found:
        assert answers[one.anchor].isdisjoint(one.negatives)
        assert len(set(one.negatives)) == len(one.negatives)
