"""Pair scorers: cross-encoders in fast batches, encoders through cosine, and baselines without a model."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from synthbench.base.errors import UserError
from synthbench.base.patterns import linear_pattern
from synthbench.base.runtime import progress_task
from synthbench.data.likeness import directions
from synthbench.models.batching import TokenisedTexts, length_batches, takes_token_batches
from synthbench.models.encoder import CachingEncoder, LengthBatchedEncoder
from synthbench.models.interfaces import Encoder, PairScorer, of_passages, of_queries
from synthbench.models.precision import Precision, reading_in
from synthbench.models.search_encoders import search_encoder
from synthbench.words import check_words
from synthbench.words.scripts import Splitter, has_unspaced, pairs_of_letters

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from sentence_transformers import CrossEncoder
    from sentence_transformers.base import BaseModel

    from synthbench.base.runtime import Progress


COSINE_BLOCK = 8192
COSINE_DECIMALS = 6


class LengthBatchedPairScorer:
    """Scores each distinct ordered pair once, in batches of similar token length.

    In fp32, scores equal those of the cross-encoder's `predict` (activation included) to 1e-5. Nothing is
    remembered between calls, so that a call's scores depend only on its own pairs. Raises UserError if the
    model has more than one output.
    """

    def __init__(
        self,
        model: "CrossEncoder",
        batch_tokens: int = 4096,
        progress: "Progress | None" = None,
        precision: Precision = "fp32",
    ) -> None:
        if model.num_labels != 1:
            raise UserError(f"a pair scorer has one output, this cross-encoder has {model.num_labels}")
        self.model = model
        self._batch_tokens = batch_tokens
        self._progress = progress
        self._precision = precision

    def score(self, pairs: Sequence[tuple[str, str]]) -> "NDArray[np.float64]":
        """Return one score per pair, shape (len(pairs),), in the range of the model's activation."""
        ordered = [(first, second) for first, second in pairs]
        rows = {pair: row for row, pair in enumerate(dict.fromkeys(ordered))}
        scores = self._score_distinct(list(rows))
        return scores[[rows[pair] for pair in ordered]]

    def _score_distinct(self, pairs: list[tuple[str, str]]) -> "NDArray[np.float64]":
        if not pairs:
            return np.zeros(0)
        if takes_token_batches(self.model):
            return self._score_by_length(pairs)
        with reading_in(self._precision, self.model, self.model.device):
            return np.asarray(self.model.predict(pairs, show_progress_bar=False), np.float64)

    def _score_by_length(self, pairs: list[tuple[str, str]]) -> "NDArray[np.float64]":
        import torch

        self.model.eval()
        activation = self.model.activation_fn or torch.nn.Identity()
        texts = TokenisedTexts(self.model, pairs)
        scores = np.empty(len(pairs))
        with (
            torch.inference_mode(),
            reading_in(self._precision, self.model, self.model.device),
            progress_task(self._progress, "score pairs", len(pairs)) as task,
        ):
            for indices in length_batches(texts.lengths, self._batch_tokens):
                logits = self.model(texts.features(indices, self.model.device))["scores"]
                activated = activation(logits.float())
                scores[indices] = activated.reshape(len(indices)).cpu().numpy()
                task.advance(len(indices))
        return scores


class CosineScorer:
    """Scores pairs by the cosine of their sentences' vectors, in [-1, 1], rounded to six decimals.

    Vectors are single precision, so further decimals are noise. They would rank pairs of equal similarity
    (above all equal sentences) at random and move a rank correlation by up to 0.0001.
    """

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder

    def score(self, pairs: Sequence[tuple[str, str]]) -> "NDArray[np.float64]":
        """Return one cosine per pair, shape (len(pairs),); 0 for zero vectors."""
        rows = {text: row for row, text in enumerate(dict.fromkeys(text for pair in pairs for text in pair))}
        vectors = self._encoder.encode(list(rows))
        return _cosines(pairs, (rows, vectors), (rows, vectors))

    def score_passages(self, pairs: Sequence[tuple[str, str]]) -> "NDArray[np.float64]":
        """Return one cosine per pair of a query and a passage, shape (len(pairs),); 0 for zero vectors."""
        asking, answering = of_queries(self._encoder), of_passages(self._encoder)
        if asking is answering is self._encoder:
            return self.score(pairs)
        queries = {text: row for row, text in enumerate(dict.fromkeys(query for query, _ in pairs))}
        passages = {text: row for row, text in enumerate(dict.fromkeys(passage for _, passage in pairs))}
        return _cosines(
            pairs, (queries, asking.encode(list(queries))), (passages, answering.encode(list(passages)))
        )


_Side = tuple[Mapping[str, int], "NDArray[np.float32]"]
"""Text -> row of its vector, and the matrix of vectors."""


def _cosines(pairs: Sequence[tuple[str, str]], first: _Side, second: _Side) -> "NDArray[np.float64]":
    index = np.array([[first[0][a], second[0][b]] for a, b in pairs], np.int64).reshape(-1, 2)
    blocks = [index[start : start + COSINE_BLOCK] for start in range(0, len(index), COSINE_BLOCK)]
    cosines = [_cosine(first[1][block[:, 0]], second[1][block[:, 1]]) for block in blocks]
    return np.concatenate([np.zeros(0), *cosines]).round(COSINE_DECIMALS)


def _cosine(first: "NDArray[np.float32]", second: "NDArray[np.float32]") -> "NDArray[np.float64]":
    units = (directions(vectors.astype(np.float64)) for vectors in (first, second))
    return np.asarray(np.einsum("ij,ij->i", *units))


def pair_scorer(model: Encoder | PairScorer) -> PairScorer:
    """Return the model as a pair scorer: an encoder scores by cosine and remembers its vectors."""
    return CosineScorer(CachingEncoder(model)) if isinstance(model, Encoder) else model


def as_pair_scorer(model: "BaseModel", batch_tokens: int, precision: Precision) -> PairScorer:
    """Return a loaded model as a pair scorer: a dense encoder scores by cosine, without storing vectors."""
    from sentence_transformers import CrossEncoder, SentenceTransformer

    if isinstance(model, SentenceTransformer):
        return CosineScorer(LengthBatchedEncoder(model, batch_tokens, precision=precision))
    if isinstance(model, CrossEncoder):
        return LengthBatchedPairScorer(model, batch_tokens, precision=precision)
    return search_encoder(model, precision)


_WORD = linear_pattern(r"\w+")


class JaccardScorer:
    """Scores a pair by its word overlap: the share of words in both sentences among the words in either.

    Words are distinct runs of letters, digits and underscores, lower-cased. Range: [0, 1]; 0 without words.
    """

    def score(self, pairs: Sequence[tuple[str, str]]) -> "NDArray[np.float64]":
        """Return one overlap per pair, shape (len(pairs),).

        Raises UserError if most texts have no spaces between words.
        """
        check_words((text for pair in pairs for text in pair), "jaccard", "`scorer: jaccard-pairs`")
        return _overlaps(pairs, _WORD.findall)


class LetterPairsScorer:
    """Scores a pair as `JaccardScorer` does, but also suits scripts without spaces.

    Texts in these scripts are split into pairs of neighbouring letters instead of words.
    """

    def score(self, pairs: Sequence[tuple[str, str]]) -> "NDArray[np.float64]":
        """Return one overlap per pair, shape (len(pairs),)."""
        return _overlaps(pairs, _letter_pairs)


class ConstantScorer:
    """Gives every pair the same score: any threshold puts all pairs into one class."""

    def score(self, pairs: Sequence[tuple[str, str]]) -> "NDArray[np.float64]":
        """Return 0.5 per pair, shape (len(pairs),)."""
        return np.full(len(pairs), 0.5)


def _letter_pairs(text: str) -> list[str]:
    return pairs_of_letters(text) if has_unspaced(text) else _WORD.findall(text)


def _overlaps(pairs: Sequence[tuple[str, str]], split: Splitter) -> "NDArray[np.float64]":
    sets = (({*split(first.lower())}, {*split(second.lower())}) for first, second in pairs)
    return np.array([len(one & two) / len(one | two) if one or two else 0.0 for one, two in sets], np.float64)


BASELINES: Mapping[str, Callable[[], PairScorer]] = {
    "jaccard": JaccardScorer,
    "jaccard-pairs": LetterPairsScorer,
    "constant": ConstantScorer,
}
