"""A model under test as mteb calls one."""

from typing import TYPE_CHECKING, Any

from synthbench.api import Encoder, of_passages

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class EncoderForMTEB:
    """Satisfies mteb's EncoderProtocol; similarity is cosine, as in all evaluators of encoders.

    Documents of retrieval and reranking are read after the prompt of passages, all else after that of
    queries, for a model that has them.
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
        """Return one row for each text of the batches."""
        from mteb.types import PromptType

        texts = [text for batch in inputs for text in batch["text"]]
        encoder = of_passages(self._encoder) if prompt_type == PromptType.document else self._encoder
        return encoder.encode(texts)

    def similarity(self, embeddings1: Any, embeddings2: Any) -> Any:  # noqa: ANN401 - arrays of any library
        """Return the cosines of all rows with all rows."""
        from mteb.similarity_functions import cos_sim

        return cos_sim(embeddings1, embeddings2)

    def similarity_pairwise(self, embeddings1: Any, embeddings2: Any) -> Any:  # noqa: ANN401
        """Return the cosine of each row with the row of the same number."""
        from mteb.similarity_functions import pairwise_cos_sim

        return pairwise_cos_sim(embeddings1, embeddings2)
