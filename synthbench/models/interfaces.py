"""Interfaces of models under test, and the helpers by which methods and evaluators use pair scorers."""

from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from synthbench.base.errors import UserError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


IsDue = Callable[[int, Sequence[int]], bool]
"""Returns whether to compute a batch, given its number and rows."""


class ModelKind(StrEnum):
    """The kind of model that a trainer produces."""

    ENCODER = "encoder"
    PAIR_SCORER = "pair_scorer"


@runtime_checkable
class Encoder(Protocol):
    """Maps sentences to vectors."""

    def encode(self, sentences: Sequence[str]) -> "NDArray[np.float32]":
        """Return one row per sentence, shape (len(sentences), dimension)."""


@runtime_checkable
class QueryEncoder(Encoder, Protocol):
    """An encoder that may read queries differently from sentences: with a prompt."""

    @property
    def of_queries(self) -> Encoder:
        """The encoder for queries; this encoder itself if it reads queries like any sentence."""


def of_queries(encoder: Encoder) -> Encoder:
    """Return the encoder for queries, which may be `encoder` itself."""
    return encoder.of_queries if isinstance(encoder, QueryEncoder) else encoder


@runtime_checkable
class PassageEncoder(Encoder, Protocol):
    """An encoder that may read passages differently from queries: with another prompt."""

    @property
    def of_passages(self) -> Encoder:
        """The encoder for passages; this encoder itself if it reads passages like queries."""


def of_passages(encoder: Encoder) -> Encoder:
    """Return the encoder for passages, the candidates of a query; it may be `encoder` itself."""
    return encoder.of_passages if isinstance(encoder, PassageEncoder) else encoder


@runtime_checkable
class BatchedEncoder(Encoder, Protocol):
    """An encoder whose work several processes can share."""

    def encoded_batches(
        self, sentences: Sequence[str], is_due: IsDue
    ) -> "Iterator[tuple[Sequence[int], NDArray[np.float32]]]":
        """Yield the indices and vectors of a batch's sentences, for each batch for which `is_due` holds.

        The vectors are those of `encode`. Batches are numbered 0, 1, ... and depend on all sentences, which
        must be distinct.
        """


def encoded_batches(
    encoder: Encoder, sentences: Sequence[str], is_due: IsDue
) -> "Iterator[tuple[Sequence[int], NDArray[np.float32]]]":
    """Yield the batches of `BatchedEncoder.encoded_batches`; any other encoder has one batch."""
    if isinstance(encoder, BatchedEncoder):
        yield from encoder.encoded_batches(sentences, is_due)
    elif is_due(0, range(len(sentences))):
        yield range(len(sentences)), encoder.encode(sentences)


@runtime_checkable
class PairScorer(Protocol):
    """Scores pairs of sentences: a cross-encoder, word overlap, or an encoder through cosine."""

    def score(self, pairs: Sequence[tuple[str, str]]) -> "NDArray[np.float64]":
        """Return one score per pair, shape (len(pairs),); higher means more similar."""


@runtime_checkable
class PassageScorer(PairScorer, Protocol):
    """A pair scorer that may read the second text of a pair as a passage."""

    def score_passages(self, pairs: Sequence[tuple[str, str]]) -> "NDArray[np.float64]":
        """Return one score per pair of a query and a passage, shape (len(pairs),)."""


@runtime_checkable
class Searcher(PassageScorer, Protocol):
    """Compares queries with passages by a similarity of its own; a text has no single dense vector."""

    @property
    def numbers_per_passage(self) -> float:
        """Index size: mean count of numbers stored per passage in the last call of `similarities`."""

    def similarities(
        self, queries: Sequence[str], passages: Sequence[str], at_once: int
    ) -> "Iterator[NDArray[np.float64]]":
        """Yield the similarities of all queries with the passages, block by block of passages.

        Each array has the shape (len(queries), at most `at_once`).
        """


def symmetric_scores(scorer: PairScorer, pairs: Sequence[tuple[str, str]]) -> "NDArray[np.float64]":
    """Return the mean score of both orders of each pair, shape (len(pairs),).

    A cross-encoder gives (a, b) and (b, a) different scores, but silver labels are for unordered pairs
    (Thakur et al. 2021, section 3.1).
    """
    scores = scorer.score([*pairs, *((second, first) for first, second in pairs)])
    return (scores[: len(pairs)] + scores[len(pairs) :]) / 2


def finite_scores(
    model: Encoder | PairScorer, pairs: Sequence[tuple[str, str]], task: str, *, of_queries: bool = False
) -> "NDArray[np.float64]":
    """Return one score per pair, shape (len(pairs),), for an evaluator.

    With `of_queries`, each pair is a query and a passage, which the model may read differently.

    Raises UserError, which names the task, if a score is not finite; TypeError if `model` is an encoder.
    """
    import numpy as np

    if not isinstance(model, PairScorer):
        raise TypeError(f"{type(model).__name__} is not a PairScorer")
    score = model.score_passages if of_queries and isinstance(model, PassageScorer) else model.score
    scores = np.asarray(score(pairs), float)
    faulty = np.flatnonzero(~np.isfinite(scores))
    if len(faulty):
        raise UserError(f"{task}: the model's score of {pairs[faulty[0]]} is {scores[faulty[0]]}")
    return scores
