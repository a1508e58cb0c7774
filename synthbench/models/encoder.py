"""Running encoders fast through sentence-transformers' own modules."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from synthbench.models.batching import TokenisedTexts, length_batches, takes_token_batches
from synthbench.models.interfaces import Encoder, PairScorer
from synthbench.models.quiet import progress_task

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from sentence_transformers import SentenceTransformer

    from synthbench.runtime import Progress

STOCK_BATCH_SIZE = 32
STATIC_BATCH_SIZE = 1024
COSINE_BLOCK = 8192
COSINE_DECIMALS = 6


class LengthBatchedEncoder:
    """Encodes each distinct sentence once, in batches of equal token length.

    Vectors are those of the model's `encode` (prompt, pooling and normalisation of the checkpoint) to
    1e-5.
    """

    def __init__(
        self, model: "SentenceTransformer", batch_tokens: int = 4096, progress: "Progress | None" = None
    ) -> None:
        self.model = model
        self._batch_tokens = batch_tokens
        self._progress = progress

    def encode(self, sentences: Sequence[str]) -> "NDArray[np.float32]":
        """Return one row per sentence, shape (len(sentences), dimension)."""
        rows = {sentence: row for row, sentence in enumerate(dict.fromkeys(sentences))}
        vectors = self._encode_distinct(list(rows))
        return vectors[[rows[sentence] for sentence in sentences]]

    def _encode_distinct(self, sentences: list[str]) -> "NDArray[np.float32]":
        if not sentences:
            return np.zeros((0, self.model.get_embedding_dimension() or 0), np.float32)
        if takes_token_batches(self.model):
            return self._encode_by_length(sentences)
        is_static = not hasattr(self.model[0], "auto_model")
        vectors: NDArray[np.float32] = self.model.encode(
            sentences,
            batch_size=STATIC_BATCH_SIZE if is_static else STOCK_BATCH_SIZE,
            show_progress_bar=False,
        )
        return vectors

    def _encode_by_length(self, sentences: list[str]) -> "NDArray[np.float32]":
        import torch

        self.model.eval()
        texts = TokenisedTexts(self.model, sentences)
        vectors: NDArray[np.float32] | None = None
        with torch.inference_mode(), progress_task(self._progress, "encode", len(sentences)) as task:
            for indices in length_batches(texts.lengths, self._batch_tokens):
                features = self.model(texts.features(indices, self.model.device))
                embeddings = features["sentence_embedding"][:, : self.model.truncate_dim]
                if vectors is None:
                    vectors = np.empty((len(sentences), embeddings.shape[1]), np.float32)
                vectors[indices] = embeddings.float().cpu().numpy()
                task.advance(len(indices))
        assert vectors is not None  # there is a batch if there is a sentence
        return vectors


class CachingEncoder:
    """Remembers every vector, so that tasks that share sentences share their cost."""

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder
        self._rows: dict[str, int] = {}
        self._vectors: NDArray[np.float32] | None = None

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


class CosineScorer:
    """Scores pairs by the cosine of their sentences' vectors, in [-1, 1], to six decimals.

    Vectors are single precision, so further decimals are noise; left in, they would rank pairs of equal
    similarity (equal sentences above all) at random and move a rank correlation by up to 0.0001.
    """

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder

    def score(self, pairs: Sequence[tuple[str, str]]) -> "NDArray[np.float64]":
        """Return one cosine per pair, shape (len(pairs),); 0 where a vector is zero."""
        rows = {text: row for row, text in enumerate(dict.fromkeys(text for pair in pairs for text in pair))}
        vectors = self._encoder.encode(list(rows))
        index = np.array([[rows[first], rows[second]] for first, second in pairs], np.int64).reshape(-1, 2)
        blocks = [index[start : start + COSINE_BLOCK] for start in range(0, len(index), COSINE_BLOCK)]
        cosines = [_cosine(vectors[block[:, 0]], vectors[block[:, 1]]) for block in blocks]
        return np.concatenate([np.zeros(0), *cosines]).round(COSINE_DECIMALS)


def _cosine(first: "NDArray[np.float32]", second: "NDArray[np.float32]") -> "NDArray[np.float64]":
    units = []
    for vectors in (first.astype(np.float64), second.astype(np.float64)):
        norms = np.linalg.norm(vectors, axis=1, keepdims=True)
        units.append(vectors / np.where(norms == 0, 1, norms))
    return np.asarray(np.einsum("ij,ij->i", *units))


def pair_scorer(model: Encoder | PairScorer, texts: Iterable[str] = ()) -> PairScorer:
    """Return the model as a pair scorer: an encoder scores by cosine and keeps its vectors.

    `texts` are encoded at once, in a single pass: the sentences of all tasks that will be scored.
    """
    if not isinstance(model, Encoder):
        return model
    cached = CachingEncoder(model)
    cached.encode(list(texts))
    return CosineScorer(cached)
