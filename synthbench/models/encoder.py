"""Encoders under test: fast batches through sentence-transformers' own modules, with stored vectors."""

import hashlib
import io
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from synthbench.base.durability import sync_file
from synthbench.base.runtime import progress_task
from synthbench.models.batching import (
    TokenisedTexts,
    default_prompt,
    length_batches,
    prompt_of_passages,
    prompt_of_queries,
    routes_tasks,
    takes_token_batches,
)
from synthbench.models.interfaces import Encoder, IsDue, of_passages, of_queries
from synthbench.models.precision import Precision, reading_in
from synthbench.models.pretrained import Prompts

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from sentence_transformers import SentenceTransformer

    from synthbench.base.runtime import Progress

    _Batch = tuple[list[int], NDArray[np.float32]]
    _Wanted = Callable[[int, list[int]], list[int]]


STOCK_BATCH_SIZE = 32
STATIC_BATCH_SIZE = 1024
SECONDS_BETWEEN_FILES = 2.0
_SUFFIX = ".npz"


class StoredVectors:
    """Stored vectors of one model's texts in a folder; damaged files are deleted, partial ones ignored.

    A file is named by the SHA-256 of its content. It holds, for each text, the vector and a hash of text and
    `model`. One file holds whole batches, so the remaining texts form the same batches as without an
    interruption. Files in the folders `others` are read, too.
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
        """Return the indices of the texts with stored vectors, and these vectors, in the same order."""
        keys = {row: self._key(text) for row, text in enumerate(texts)}
        rows = [row for row, key in keys.items() if key in self._known]
        return rows, np.array([self._known[keys[row]] for row in rows], np.float32)

    def add(self, texts: Iterable[str], vectors: "NDArray[np.float32]") -> None:
        """Add a batch's vectors; they are written later, together with others."""
        self._new += zip(map(self._key, texts), vectors, strict=True)
        if time.monotonic() - self._last_file >= SECONDS_BETWEEN_FILES:
            self.write()

    def write(self) -> None:
        """Write all vectors added since the last write."""
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
            try:
                content = file.read_bytes()
            except FileNotFoundError:
                # Another process has dropped it.
                continue
            if hashlib.sha256(content).hexdigest() != file.stem:
                self._drop(file)
                continue
            with np.load(io.BytesIO(content)) as columns:
                found.update(zip(columns["keys"].tolist(), columns["vectors"], strict=True))
        return found

    def _drop(self, file: Path) -> None:
        file.unlink(missing_ok=True)
        if self._progress is not None:
            self._progress.say(f"{file} is damaged: its sentences are encoded again")


@dataclass(frozen=True)
class Reading:
    """How a model reads texts: the prompt (None: its default), and the task (query or document).

    `task` is None unless the model has separate modules for queries and passages.
    """

    prompt: str | None = None
    task: str | None = None


class LengthBatchedEncoder:
    """Encodes each distinct sentence once, in batches of similar token length.

    In fp32, vectors equal those of the model's `encode` (with the checkpoint's prompt, pooling and
    normalisation) to 1e-5; those of `of_queries` and `of_passages` equal `encode_query`'s and
    `encode_document`'s. Vectors in `kept` are reused, and new ones are added.
    """

    def __init__(
        self,
        model: "SentenceTransformer",
        batch_tokens: int = 4096,
        progress: "Progress | None" = None,
        kept: StoredVectors | None = None,
        precision: Precision = "fp32",
    ) -> None:
        self.model = model
        self._precision = precision
        self._batch_tokens = batch_tokens
        self._progress = progress
        self._kept = kept
        self._reading = Reading()
        self._prompts: Prompts | None = None

    def with_stored(self, kept: StoredVectors) -> "LengthBatchedEncoder":
        """Return a copy that reuses the vectors in `kept` (an interrupted run's), and adds new ones to it."""
        encoder = self._as(self._reading)
        encoder._kept = kept
        return encoder

    def with_prompts(self, prompts: Prompts) -> "LengthBatchedEncoder":
        """Return a copy with these prompts instead of the model's own.

        Texts that are neither queries nor passages get the prompt of queries.
        """
        encoder = self._as(Reading(prompts.query))
        encoder._prompts = prompts
        return encoder

    @property
    def of_queries(self) -> "LengthBatchedEncoder":
        """This encoder with the prompt of queries; itself if it reads queries like all other texts."""
        given = self._prompts
        return self._read_as("query", prompt_of_queries(self.model) if given is None else given.query)

    @property
    def of_passages(self) -> "LengthBatchedEncoder":
        """This encoder with the prompt of passages; itself if it reads passages like all other texts."""
        given = self._prompts
        return self._read_as("document", prompt_of_passages(self.model) if given is None else given.passage)

    def _read_as(self, task: str, prompt: str | None) -> "LengthBatchedEncoder":
        """Return this encoder for queries or passages; itself if it reads them like all other texts."""
        routed = task if routes_tasks(self.model) else None
        own = default_prompt(self.model) if self._reading.prompt is None else self._reading.prompt
        if (prompt or "") == (own or "") and routed == self._reading.task:
            return self
        return self._as(Reading(prompt or "", routed))

    def _as(self, reading: Reading) -> "LengthBatchedEncoder":
        encoder = copy(self)
        encoder._reading = reading
        return encoder

    def encode(self, sentences: Sequence[str]) -> "NDArray[np.float32]":
        """Return one row per sentence, shape (len(sentences), dimension)."""
        rows = {sentence: row for row, sentence in enumerate(dict.fromkeys(sentences))}
        vectors = self._encode_distinct(list(rows))
        return vectors[[rows[sentence] for sentence in sentences]]

    def _encode_distinct(self, sentences: list[str]) -> "NDArray[np.float32]":
        if not sentences:
            return np.zeros((0, self.model.get_embedding_dimension() or 0), np.float32)
        matrix, done = _Matrix(len(sentences)), frozenset[int]()
        if self._kept is not None:
            rows, vectors = self._kept.find(self._read(sentences))
            matrix.put(rows, vectors)
            done = frozenset(rows)
        if done and self._progress is not None:
            self._progress.say(f"{len(done):,} of {len(sentences):,} sentences were encoded earlier")

        def left(_: int, batch: list[int]) -> list[int]:
            return [row for row in batch if row not in done]

        try:
            with progress_task(self._progress, "encode", len(sentences) - len(done)) as task:
                for rows, vectors in self._batches(sentences, left) if len(done) < len(sentences) else ():
                    matrix.put(rows, vectors)
                    if self._kept is not None:
                        self._kept.add(self._read([sentences[row] for row in rows]), vectors)
                    task.advance(len(rows))
        finally:
            if self._kept is not None:
                self._kept.write()
        return matrix.whole

    def _read(self, sentences: Sequence[str]) -> Sequence[str]:
        """Return the texts that identify stored vectors: task and prompt, if set, before each sentence."""
        if self._reading == Reading():
            return sentences
        before = f"{self._reading.task or ''}\n{self._reading.prompt or ''}\n"
        return [before + sentence for sentence in sentences]

    def encoded_batches(self, sentences: Sequence[str], is_due: IsDue) -> "Iterator[_Batch]":
        """Yield the rows of each batch that is due, with their vectors; see `interfaces.BatchedEncoder`."""
        return self._batches(list(sentences), lambda number, rows: rows if is_due(number, rows) else [])

    def _batches(self, sentences: list[str], wanted: "_Wanted") -> "Iterator[_Batch]":
        """Yield each batch's wanted rows with their vectors; batches without wanted rows are skipped.

        `wanted` maps a batch's number and rows to the rows to encode. Batches depend on all sentences, never
        on which rows are wanted.
        """
        if takes_token_batches(self.model):
            yield from self._batches_by_length(sentences, wanted)
            return
        routed: dict[str, Any] = {} if self._reading.task is None else {"task": self._reading.task}
        is_static = not hasattr(self.model[0], "auto_model")
        longest_first = sorted(range(len(sentences)), key=lambda row: -len(sentences[row]))
        for number, start in enumerate(range(0, len(sentences), STATIC_BATCH_SIZE)):
            rows = wanted(number, longest_first[start : start + STATIC_BATCH_SIZE])
            if rows:
                with self._computing():
                    vectors: NDArray[np.float32] = self.model.encode(
                        [sentences[row] for row in rows],
                        batch_size=STATIC_BATCH_SIZE if is_static else STOCK_BATCH_SIZE,
                        show_progress_bar=False,
                        prompt=self._reading.prompt,
                        **routed,
                    )
                yield rows, vectors

    def _computing(self) -> AbstractContextManager[None]:
        return reading_in(self._precision, self.model, self.model.device)

    def _batches_by_length(self, sentences: list[str], wanted: "_Wanted") -> "Iterator[_Batch]":
        import torch

        self.model.eval()
        texts = TokenisedTexts(self.model, sentences, self._reading.prompt)
        for number, batch in enumerate(length_batches(texts.lengths, self._batch_tokens)):
            rows = wanted(number, batch)
            if rows:
                with torch.inference_mode(), self._computing():
                    features = self.model(texts.features(rows, self.model.device))
                embeddings = features["sentence_embedding"][:, : self.model.truncate_dim]
                yield rows, embeddings.float().cpu().numpy()


class _Matrix:
    """Vectors of `number` rows that arrive in any order."""

    def __init__(self, number: int) -> None:
        self._number = number
        self.whole: NDArray[np.float32] = np.zeros((0, 0), np.float32)

    def put(self, rows: Sequence[int], vectors: "NDArray[np.float32]") -> None:
        """Set these rows; the first call with rows decides the dimension."""
        if not len(rows):
            return
        if not len(self.whole):
            self.whole = np.empty((self._number, vectors.shape[1]), np.float32)
        self.whole[rows] = vectors


class CachingEncoder:
    """Remembers every vector, so that tasks with common sentences encode them once."""

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder
        self._rows: dict[str, int] = {}
        self._vectors: NDArray[np.float32] | None = None

    @cached_property
    def of_queries(self) -> "CachingEncoder":
        """This encoder for queries, with a separate memory if the model reads them differently."""
        encoder = of_queries(self._encoder)
        return self if encoder is self._encoder else CachingEncoder(encoder)

    @cached_property
    def of_passages(self) -> "CachingEncoder":
        """This encoder for passages, with a separate memory if the model reads them differently."""
        encoder = of_passages(self._encoder)
        return self if encoder is self._encoder else CachingEncoder(encoder)

    def encode(self, sentences: Sequence[str]) -> "NDArray[np.float32]":
        """Return one row per sentence, shape (len(sentences), dimension)."""
        missing = [sentence for sentence in dict.fromkeys(sentences) if sentence not in self._rows]
        if missing or self._vectors is None:
            new = self._encoder.encode(missing)
            first = len(self._rows)
            self._rows.update((sentence, first + row) for row, sentence in enumerate(missing))
            self._vectors = (
                new if not first or self._vectors is None else np.concatenate([self._vectors, new])
            )
        return self._vectors[[self._rows[sentence] for sentence in sentences]]


def resumable(encoder: Encoder, kept: StoredVectors) -> CachingEncoder:
    """Return a caching encoder that also stores its vectors in `kept`, where they survive a killed process.

    An encoder that is no LengthBatchedEncoder stores none.
    """
    return CachingEncoder(encoder.with_stored(kept) if isinstance(encoder, LengthBatchedEncoder) else encoder)
