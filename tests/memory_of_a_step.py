"""Applies one prepare step to a stored data set, and prints the largest memory that it took.

    python memory_of_a_step.py SOURCE TARGET GIGABYTES STEP [AGAINST]

STEP is a step's section as JSON, AGAINST a data set that every further source is.
"""

import json
import resource
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parent / "data"))

from applying import Silent

from synthbench.base.runtime import Runtime
from synthbench.config.experiment import PrepareStep
from synthbench.data.dataset import SyntheticDataset
from synthbench.engine.workspace import Workspace
from synthbench.plugins.loading import component
from synthbench.stages.asking import Context
from synthbench.stages.preparation import apply_steps

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True)
class Sources(Context):
    """A context with one further source, and an encoder that hashes words."""

    against: Path | None = None

    def source(self, name: str) -> SyntheticDataset | None:
        return None if self.against is None else SyntheticDataset.read(self.against)

    def encoder(self, need: str) -> "Hashing":
        return Hashing()


class Hashing:
    """An encoder whose vectors are sums of a random one for each word."""

    dimension = 256

    def encode(self, sentences: Sequence[str]) -> "NDArray[np.float32]":
        import numpy as np

        words = {word for text in sentences for word in text.split()}
        numbers = {word: number for number, word in enumerate(sorted(words))}
        table = np.random.default_rng(0).standard_normal((len(words), self.dimension)).astype(np.float32)
        return np.stack([table[[numbers[word] for word in text.split()]].sum(axis=0) for text in sentences])

    def encoded_batches(
        self, sentences: Sequence[str], is_due: object
    ) -> "Iterator[tuple[range, NDArray[np.float32]]]":
        for start in range(0, len(sentences), 1024):
            rows = range(start, min(start + 1024, len(sentences)))
            yield rows, self.encode([sentences[row] for row in rows])


def main() -> None:
    """Apply the step."""
    source, target, gigabytes, section = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], sys.argv[4]
    against = Path(sys.argv[5]) if len(sys.argv) > 5 else None
    most = int(float(gigabytes) * 1e9)
    # Limits data only: libraries map files that they never read and that take no memory.
    resource.setrlimit(resource.RLIMIT_DATA, (most, most))
    work = Workspace(target / "work", Runtime(device="cpu", threads=1), Silent())
    (target / "made").mkdir(parents=True)
    start = time.monotonic()
    settings = json.loads(section)
    name = settings.pop("step")
    step = PrepareStep(name, component("steps", name).model_validate_json(json.dumps(settings)))
    manifest = apply_steps(source, [step], Sources({}, work, against=against), target / "made")
    print(
        json.dumps(
            {
                "records": manifest.num_records,
                "megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
                "seconds": round(time.monotonic() - start),
                "cpu": round(time.process_time()),
                "dropped": manifest.dropped,
            }
        )
    )


if __name__ == "__main__":
    main()
