"""Adapter of a model under test to mteb's encoder interface."""

from typing import TYPE_CHECKING, Any

from synthbench.api import Encoder, of_passages, of_queries

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


_READERS = {"query": of_queries, "document": of_passages}
"""mteb's prompt type -> function that returns an encoder with the prompt for it."""


class EncoderForMTEB:
    """An encoder that satisfies mteb's EncoderProtocol; similarity is always cosine.

    Queries and documents of retrieval and reranking are encoded with the model's prompts for them, other
    texts with its default prompt.
    """

    def __init__(self, encoder: Encoder) -> None:
        from mteb.models import ModelMeta

        self._encoder = encoder
        self.mteb_model_meta = ModelMeta.create_empty()

    def encode(
        self,
        inputs: Any,  # noqa: ANN401 - a DataLoader of mteb's batches
        *,
        task_metadata: Any,  # noqa: ANN401
        hf_split: str,
        hf_subset: str,
        prompt_type: Any = None,  # noqa: ANN401
        **kwargs: Any,  # noqa: ANN401
    ) -> "NDArray[np.float32]":
        """Return one vector per text of the batches, shape (texts, dimension)."""
        texts = [text for batch in inputs for text in batch["text"]]
        reader = _READERS.get(prompt_type)
        return (self._encoder if reader is None else reader(self._encoder)).encode(texts)

    def similarity(self, embeddings1: Any, embeddings2: Any) -> Any:  # noqa: ANN401 - arrays of any library
        """Return the cosines of all pairs of rows."""
        from mteb.similarity_functions import cos_sim

        return cos_sim(embeddings1, embeddings2)

    def similarity_pairwise(self, embeddings1: Any, embeddings2: Any) -> Any:  # noqa: ANN401
        """Return the cosine of each row with the same row of the other array."""
        from mteb.similarity_functions import pairwise_cos_sim

        return pairwise_cos_sim(embeddings1, embeddings2)
