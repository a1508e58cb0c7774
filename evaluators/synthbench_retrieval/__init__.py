"""Retrieval: how high a model ranks the relevant passages of a whole corpus for each query."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import Field

from synthbench.api import (
    Encoder,
    Evaluation,
    Evaluator,
    PairScorer,
    RecordKind,
    RetrievalText,
    Searcher,
    SyntheticDataset,
    UserError,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

STORED = "numbers_per_passage"
MEASURES = ("ndcg_at_10", "recall_at_100", "mrr_at_10", "map_at_100")


class Retrieval(Evaluator):
    """nDCG@10, recall@100, MRR@10 and MAP@100, in [0, 1], of an encoder that searches a corpus.

    Every passage is compared with every query. Sparse and late-interaction encoders use their own similarity;
    their score `numbers_per_passage` is the mean count of numbers stored per passage. Measures follow
    trec_eval, as in BEIR and MTEB: gains are the grades, a passage is relevant if its grade is above 0, and
    of equal similarities the passage with the greater id comes first. Means are over queries; one without a
    relevant passage counts as 0.
    """

    version: ClassVar[int] = 1
    record_kind: ClassVar[RecordKind] = RecordKind.RETRIEVAL
    needs_encoder: ClassVar[bool] = True
    takes_searchers: ClassVar[bool] = True
    main_score: ClassVar[str] = "ndcg_at_10"
    main_score_title: ClassVar[str] = "nDCG@10"

    similarity: Literal["cosine", "dot"] = Field(
        "cosine",
        description="similarity of a dense encoder's vectors; dot for models trained by dot products",
    )
    ignore_identical_ids: bool = Field(
        False,
        description="leave out the passage with the query's own id, as in ArguAna and Quora, whose "
        "queries are passages",
    )

    def check_data(self, task: SyntheticDataset) -> None:
        """Raise UserError if there are no queries or no passages."""
        num_queries = sum(map(bool, task.column("judged")))
        if num_queries in (0, len(task)):
            raise UserError(
                f"{task.task_name}: {num_queries} queries and {len(task) - num_queries} passages: nothing to"
                " search"
            )

    def evaluate(self, model: PairScorer | Encoder, task: SyntheticDataset) -> Evaluation:
        """Search the corpus for each query and measure.

        Raises UserError if a vector or a similarity is not finite.
        """
        from synthbench_retrieval.measures import measures
        from synthbench_retrieval.search import nearest

        if not isinstance(model, Encoder | Searcher):
            raise TypeError(f"{type(model).__name__} is neither an Encoder nor a Searcher")
        texts: list[RetrievalText] = list(task)
        queries = [text for text in texts if text.is_query]
        passages = [text for text in texts if not text.is_query]
        found = nearest(model, queries, passages, self, task.task_name)
        rows = [measures(ranked, query) for ranked, query in zip(found, queries, strict=True)]
        values = {name: [row[name] for row in rows] for name in MEASURES}
        stored = {STORED: model.numbers_per_passage} if isinstance(model, Searcher) else {}
        return Evaluation(
            scores={**{name: sum(column) / len(column) for name, column in values.items()}, **stored},
            main_score=self.main_score,
            num_items=len(queries),
            items={
                "id": [query.id for query in queries],
                "subset": [query.subset for query in queries],
                "num_relevant": [sum(grade > 0 for grade in query.grades) for query in queries],
                **values,
            },
        )

    def influence(
        self, items: "Mapping[str, NDArray[Any]]", scores: Mapping[str, float]
    ) -> "NDArray[np.float64]":
        """Return each query's influence on the mean nDCG@10."""
        import numpy as np

        values = np.asarray(items["ndcg_at_10"], float)
        return np.asarray(values - values.mean())
