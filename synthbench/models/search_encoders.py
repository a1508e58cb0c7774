"""Sparse and late-interaction encoders: loading them, and comparing queries with passages."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from synthbench.base.errors import UserError
from synthbench.base.runtime import progress_task
from synthbench.base.terminal import quiet_transformers
from synthbench.models.batching import length_sorted_units
from synthbench.models.building import folder_of_encoder, layers_kept, seeded, transformer_of
from synthbench.models.loading import (
    check_vocabulary,
    convert_weights,
    give_padding,
    limit_length,
    loading_errors,
    weights_in,
)
from synthbench.models.precision import Precision, reading_in
from synthbench.models.pretrained import PASSAGE, QUERY, Pretrained, Prompts

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from scipy.sparse import csr_matrix
    from sentence_transformers.base import BaseModel
    from torch import Tensor

    from synthbench.base.runtime import Progress


UNIT_SIZE, BATCH_SIZE = 256, 32
PAIRS_AT_ONCE = 1024
_SIMILARITIES = ("dot", "cosine", "maxsim", "meanmaxsim")
DECIMALS = 4
"""Similarities are sums in single precision: further decimals would rank equal passages at random."""


def build_search_encoder(base: Pretrained, seed: int, device: str) -> "BaseModel":
    """Load or build a sparse or late-interaction encoder; `seed` governs all weights that are missing.

    A sparse encoder from a masked language model gets SPLADE's max pooling over tokens (Formal et al. 2021,
    arXiv 2109.10086). A late-interaction encoder without a projection gets one to 128 dimensions (Khattab &
    Zaharia 2020, arXiv 2004.12832). Both are sentence-transformers' defaults.

    Raises UserError if the model can't be found or loaded, has too few layers, doesn't suit `base.encoder`,
    or has an unsupported similarity.
    """
    folder = folder_of_encoder(base)
    with seeded(seed), quiet_transformers(), loading_errors(base.model, folder):
        from sentence_transformers import MultiVectorEncoder, SparseEncoder

        model: Any = (SparseEncoder if base.encoder == "sparse" else MultiVectorEncoder)(
            folder,
            device=device,
            trust_remote_code=base.trust_remote_code,
            model_kwargs=weights_in(base.dtype),
            config_kwargs=layers_kept(folder, base),
        )
        check_vocabulary(base.model, model.tokenizer, transformer_of(model))
        give_padding(base.model, model.tokenizer)
        limit_length(model, base.max_length)
        _limit_tasks(model, base.max_length)
        convert_weights(model, base.dtype)
        if model.similarity_fn_name not in _SIMILARITIES:
            raise UserError(
                f"{base.model}: its similarity is {model.similarity_fn_name}; supported are"
                f" {', '.join(_SIMILARITIES)}"
            )
        if base.prompts is not None:
            model.prompts = {QUERY: base.prompts.query, PASSAGE: base.prompts.passage}
        loaded: BaseModel = model
        return loaded


def _limit_tasks(model: "BaseModel", max_length: int | None) -> None:
    """Limit the two lengths of a ColBERT checkpoint: of passages and of queries.

    The library uses them instead of `max_seq_length`. Passages get `max_length`, if given. Queries keep
    their own length unless `max_length` is smaller. Both are at most the number of positions. Call after
    `limit_length`.
    """
    transformer: Any = model[0]
    for name, wanted in (("document_length", max_length), ("query_length", None)):
        own = getattr(transformer, name, None)
        if own is not None:
            setattr(transformer, name, min(wanted or own, model.max_seq_length or own))


def search_encoder(
    model: "BaseModel", precision: Precision = "fp32", progress: "Progress | None" = None
) -> "SearchEncoder":
    """Return a loaded sparse or late-interaction encoder, ready to compare texts."""
    made = _Sparse if model.model_type == "SparseEncoder" else _LateInteraction
    return made(model, precision, progress)


class SearchEncoder(ABC):
    """Compares queries with passages by the model's own similarity; a pair is a query and a passage.

    Vectors are those of the library's `encode_query` and `encode_document`. Similarities are rounded to four
    decimals. No vectors are remembered between calls.
    """

    def __init__(
        self, model: "BaseModel", precision: Precision = "fp32", progress: "Progress | None" = None
    ) -> None:
        self.model: Any = model
        self._precision = precision
        self._progress = progress
        self._prompts: Prompts | None = None
        self._num_passages = self._num_numbers = 0

    def with_prompts(self, prompts: Prompts) -> "SearchEncoder":
        """Return a new encoder with these prompts instead of the model's own."""
        encoder = type(self)(self.model, self._precision, self._progress)
        encoder._prompts = prompts
        return encoder

    @property
    def numbers_per_passage(self) -> float:
        """Mean count of numbers stored per passage in the last call of `similarities`; 0 before the first."""
        return self._num_numbers / max(1, self._num_passages)

    def score(self, pairs: Sequence[tuple[str, str]]) -> "NDArray[np.float64]":
        """Return one similarity per pair of a query and a passage, shape (len(pairs),)."""
        if not pairs:
            return np.zeros(0)
        queries = {query: row for row, query in enumerate(dict.fromkeys(query for query, _ in pairs))}
        passages = {text: row for row, text in enumerate(dict.fromkeys(text for _, text in pairs))}
        asked, found = self._of_queries(list(queries)), self._of_passages(list(passages))
        blocks = (pairs[start : start + PAIRS_AT_ONCE] for start in range(0, len(pairs), PAIRS_AT_ONCE))
        scores = [
            self._of_pairs(
                asked, found, [queries[query] for query, _ in block], [passages[text] for _, text in block]
            )
            for block in blocks
        ]
        return np.concatenate(scores).astype(np.float64).round(DECIMALS)

    def score_passages(self, pairs: Sequence[tuple[str, str]]) -> "NDArray[np.float64]":
        """Return one similarity per pair of a query and a passage, shape (len(pairs),)."""
        return self.score(pairs)

    def similarities(
        self, queries: Sequence[str], passages: Sequence[str], at_once: int
    ) -> "Iterator[NDArray[np.float64]]":
        """Yield the similarities of all queries with the passages, block by block of passages.

        Each array has the shape (len(queries), at most `at_once`). Of the passages, only one
        block's vectors are in memory.
        """
        asked = self._of_queries(queries)
        self._num_passages = self._num_numbers = 0
        with progress_task(self._progress, "compare passages", len(passages)) as task:
            for start in range(0, len(passages), at_once):
                block = passages[start : start + at_once]
                vectors = self._of_passages(block)
                self._num_passages += len(block)
                self._num_numbers += self._size(vectors)
                yield self._of_all(asked, vectors).astype(np.float64).round(DECIMALS)
                task.advance(len(block))

    def _of_queries(self, texts: Sequence[str]) -> Any:  # noqa: ANN401 - as `_joined`
        prompt = None if self._prompts is None else self._prompts.query
        return self._vectors(texts, self.model.encode_query, prompt)

    def _of_passages(self, texts: Sequence[str]) -> Any:  # noqa: ANN401 - as `_joined`
        prompt = None if self._prompts is None else self._prompts.passage
        return self._vectors(texts, self.model.encode_document, prompt)

    def _vectors(self, texts: Sequence[str], encode: Any, prompt: str | None) -> Any:  # noqa: ANN401
        """Return the texts' vectors in the given order; a call of `encode` gets texts of similar length."""
        units = length_sorted_units([len(text) for text in texts], UNIT_SIZE)
        with reading_in(self._precision, self.model, self.model.device):
            parts = [
                self._unit(
                    encode(
                        [texts[row] for row in unit],
                        prompt=prompt,
                        batch_size=BATCH_SIZE,
                        show_progress_bar=False,
                        **self.options,
                    )
                )
                for unit in units
            ]
        return self._joined(parts, np.argsort([row for unit in units for row in unit]))

    options: ClassVar[Mapping[str, bool]]
    """Arguments of the library's `encode_query` and `encode_document`."""

    @abstractmethod
    def _unit(self, encoded: Any) -> Any:  # noqa: ANN401 - whatever `options` make the library return
        """Return the vectors of one call of `encode` in the form to keep in memory."""

    @abstractmethod
    def _joined(self, parts: list[Any], order: "NDArray[np.intp]") -> Any:  # noqa: ANN401
        """Return the joined vectors of all calls of `encode`, in this order."""

    @abstractmethod
    def _size(self, vectors: Any) -> int:  # noqa: ANN401 - as `_joined`
        """Return how many numbers the vectors hold, without zeros of sparse ones."""

    @abstractmethod
    def _of_all(self, queries: Any, passages: Any) -> "NDArray[Any]":  # noqa: ANN401 - as `_joined`
        """Return all similarities, shape (queries, passages)."""

    @abstractmethod
    def _of_pairs(
        self,
        queries: Any,  # noqa: ANN401 - as `_joined`
        passages: Any,  # noqa: ANN401 - as `_joined`
        asked: list[int],
        found: list[int],
    ) -> "NDArray[Any]":
        """Return the similarity of each query asked[i] with passage found[i]."""


class _Sparse(SearchEncoder):
    """Compares weights by dot product, or cosine if the model states it; keeps them as a sparse matrix."""

    options: ClassVar = {"convert_to_sparse_tensor": False, "save_to_cpu": True}

    def _unit(self, encoded: "Tensor") -> "csr_matrix":
        from scipy.sparse import csr_matrix

        return csr_matrix(encoded.double().numpy())

    def _joined(self, parts: "list[csr_matrix]", order: "NDArray[np.intp]") -> "csr_matrix":
        from scipy.sparse import diags, vstack
        from scipy.sparse.linalg import norm

        vectors = vstack(parts, format="csr")[order]
        if self.model.similarity_fn_name != "cosine":
            return vectors
        lengths = norm(vectors, axis=1)
        return diags(1 / np.where(lengths == 0, 1, lengths)).tocsr() @ vectors

    def _size(self, vectors: "csr_matrix") -> int:
        return int(vectors.nnz)

    def _of_all(self, queries: "csr_matrix", passages: "csr_matrix") -> "NDArray[Any]":
        return np.asarray((queries @ passages.T).toarray())

    def _of_pairs(
        self, queries: "csr_matrix", passages: "csr_matrix", asked: list[int], found: list[int]
    ) -> "NDArray[Any]":
        return np.asarray(queries[asked].multiply(passages[found]).sum(axis=1)).reshape(-1)


class _LateInteraction(SearchEncoder):
    """MaxSim: each query token's greatest similarity to a token of the passage, summed or averaged."""

    options: ClassVar = {"convert_to_numpy": False}

    def _unit(self, encoded: "list[Tensor]") -> "list[Tensor]":
        return encoded

    def _joined(self, parts: "list[list[Tensor]]", order: "NDArray[np.intp]") -> "list[Tensor]":
        vectors = [vector for part in parts for vector in part]
        return [vectors[row] for row in order]

    def _size(self, vectors: "list[Tensor]") -> int:
        return sum(vector.numel() for vector in vectors)

    def _of_all(self, queries: "list[Tensor]", passages: "list[Tensor]") -> "NDArray[Any]":
        return np.asarray(self.model.similarity(queries, passages).cpu())

    def _of_pairs(
        self, queries: "list[Tensor]", passages: "list[Tensor]", asked: list[int], found: list[int]
    ) -> "NDArray[Any]":
        compared = self.model.similarity_pairwise(
            [queries[row] for row in asked], [passages[row] for row in found]
        )
        return np.asarray(compared.cpu())
