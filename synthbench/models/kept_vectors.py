"""Vectors that are kept as they come, so that an encoding that was stopped goes on from there."""

import hashlib
import io
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from synthbench.durability import sync_file

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from synthbench.runtime import Progress

SECONDS_BETWEEN_FILES = 2.0
_SUFFIX = ".npz"


class KeptVectors:
    """Vectors of one model's texts, in files of a folder; what a kill or a fault of the disk left is dropped.

    A file is named after the SHA-256 of its content, and holds a hash of each text, together with `model`,
    beside its vector. Texts that were encoded in one batch are in one file: those that are left for later
    make the same batches as they would have made otherwise. Files of `others` are read, too.
    """

    def __init__(
        self, folder: Path, model: str, others: Iterable[Path] = (), progress: "Progress | None" = None
    ) -> None:
        self._folder = folder
        self._model = model
        self._progress = progress
        self._new: list[tuple[str, NDArray[np.float32]]] = []
        self._last_file = time.monotonic()
        self._known = self._read(dict.fromkeys([folder, *others]))

    def find(self, texts: Sequence[str]) -> "tuple[list[int], NDArray[np.float32]]":
        """Return the numbers of the texts whose vectors are there, and these, in the same order."""
        keys = {row: self._key(text) for row, text in enumerate(texts)}
        rows = [row for row, key in keys.items() if key in self._known]
        return rows, np.array([self._known[keys[row]] for row in rows], np.float32)

    def add(self, texts: Iterable[str], vectors: "NDArray[np.float32]") -> None:
        """Keep the vectors of a batch; they are written with others after a while."""
        self._new += zip(map(self._key, texts), vectors, strict=True)
        if time.monotonic() - self._last_file >= SECONDS_BETWEEN_FILES:
            self.write()

    def write(self) -> None:
        """Write what was added since."""
        if self._new:
            keys, vectors = zip(*self._new, strict=True)
            stream = io.BytesIO()
            np.savez(stream, keys=np.array(keys), vectors=np.array(vectors, np.float32))
            content = stream.getvalue()
            self._folder.mkdir(parents=True, exist_ok=True)
            file = self._folder / f"{hashlib.sha256(content).hexdigest()}{_SUFFIX}"
            temporary = file.with_suffix(".partial")
            temporary.write_bytes(content)
            sync_file(temporary)
            temporary.replace(file)
            self._new = []
        self._last_file = time.monotonic()

    def _key(self, text: str) -> str:
        return hashlib.sha256(f"{self._model}\n{text}".encode(errors="surrogatepass")).hexdigest()

    def _read(self, folders: Iterable[Path]) -> "dict[str, NDArray[np.float32]]":
        found: dict[str, NDArray[np.float32]] = {}
        for file in sorted(file for folder in folders for file in folder.glob(f"*{_SUFFIX}")):
            content = file.read_bytes()
            if hashlib.sha256(content).hexdigest() != file.stem:
                self._drop(file)
                continue
            with np.load(io.BytesIO(content)) as columns:
                found.update(zip(columns["keys"].tolist(), columns["vectors"], strict=True))
        return found

    def _drop(self, file: Path) -> None:
        file.unlink()
        if self._progress is not None:
            self._progress.say(f"{file} is damaged: its sentences are encoded again")
