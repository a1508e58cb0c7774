"""Hashes of the sentences of test items, to find items that share a sentence."""

import json
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any

from synthbench.base.errors import UserError, in_one_line
from synthbench.data.dataset import SyntheticDataset
from synthbench.data.likeness import bare
from synthbench.engine.artifacts import Artifacts
from synthbench.engine.result_cache import ResultCache
from synthbench.plugins.model_contracts import Evaluator
from synthbench.statistics.shared_sentences import SharedSentences

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

VERSION = 1
"""Raise it whenever the same texts get other ids."""
BYTES = 8
SentenceIds = Mapping[str, Sequence[str]]
"""Item -> the ids of its sentences, each 16 hexadecimal digits."""


def sentence_id(text: str) -> str:
    """Return a hash of the normalised text: 16 hexadecimal digits."""
    return blake2b(bare(text).encode(), digest_size=BYTES).hexdigest()


def number_of(name: str) -> int:
    """Return a signed 64-bit hash of a text."""
    return int.from_bytes(blake2b(name.encode(), digest_size=BYTES).digest(), signed=True)


def task_of(evaluation: str, artifacts: Artifacts) -> str:
    """Return the identity of the stage that made an evaluation's test set, "" if unknown."""
    spec: dict[str, Any] = artifacts.record(evaluation).get("spec") or {}
    return str(spec.get("inputs", {}).get("task", ""))


class Sentences:
    """Finds the sentence ids of test items. Ids are cached as long as the store has the test set."""

    def __init__(self, artifacts: Artifacts) -> None:
        self._artifacts = artifacts
        self._cache = ResultCache(artifacts, VERSION)
        self._files: dict[tuple[object, ...], Path | None] = {}

    def ids(self, evaluation: str, evaluator: Evaluator) -> SentenceIds | None:
        """Return the sentence ids of each item of a test set; None if they are unknown."""
        task = task_of(evaluation, self._artifacts)
        if not task or not self._artifacts.has_dataset(task):
            return None
        try:
            found: SentenceIds | None = self._cache.get(
                lambda: self._computed(task, evaluator), *_key(task, evaluator), of=[task]
            )
        except (UserError, AttributeError, KeyError, IndexError, TypeError, ValueError) as error:
            called = f"{type(evaluator).__name__}.sentences"
            self._artifacts.say(f"{called} failed, so items count as independent: {in_one_line(error)}")
            return None
        return found

    def file(self, evaluation: str, evaluator: Evaluator) -> Path | None:
        """Return the JSON file, with a checksum, that caches a test set's sentence ids; None if unknown."""
        key = _key(task_of(evaluation, self._artifacts), evaluator)
        if key not in self._files:
            file = self._cache.file(*key)
            is_known = self.ids(evaluation, evaluator) is not None and file.is_file()
            self._files[key] = file if is_known else None
        return self._files[key]

    def _computed(self, task: str, evaluator: Evaluator) -> SentenceIds | None:
        texts = evaluator.sentences(SyntheticDataset.read(self._artifacts.dataset(task)))
        return texts and {item: [*dict.fromkeys(map(sentence_id, of))] for item, of in texts.items()}


def _key(task: str, evaluator: Evaluator) -> tuple[object, ...]:
    settings = json.dumps(evaluator.model_dump(mode="json"), sort_keys=True)
    return "sentences", task, type(evaluator).__name__, evaluator.version, settings


def shared_sentences(items: Sequence[str], ids: SentenceIds | None) -> SharedSentences | None:
    """Return which of these items share sentences; None if any item's sentences are unknown."""
    import numpy as np

    if ids is None or any(item not in ids for item in items):
        return None
    numbers = _numbers([each for item in items for each in ids[item]])
    lengths = [len(ids[item]) for item in items]
    return SharedSentences(np.repeat(np.arange(len(items)), lengths), numbers, len(items))


def _numbers(names: Sequence[str]) -> "NDArray[np.int64]":
    """Return sentence ids as signed 64-bit integers."""
    import numpy as np

    return np.frombuffer(bytes.fromhex("".join(names)), dtype=">i8").astype(np.int64)
