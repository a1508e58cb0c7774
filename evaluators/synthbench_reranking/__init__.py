"""Reranking: how high a model ranks the relevant candidates among those given for a query."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import Field

from synthbench.api import (
    Encoder,
    Evaluation,
    Evaluator,
    PairScorer,
    Ranking,
    RecordKind,
    SyntheticDataset,
    UserError,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MEASURES = ("map", "mrr", "ndcg_at_10", "precision_at_1", "precision_at_5")
CONVENTIONS = ("answerable", "all", "mixed")
"""Conventions on which queries count in a mean."""


class Reranking(Evaluator):
    """Mean average precision, MRR, nDCG@10 and precision at 1 and 5, in [0, 1], of any pair scorer.

    A query's candidates are ranked by their score (encoders: by cosine); in a ranking with several queries,
    by the highest score over them. Of equal scores the less relevant candidate comes first, so that the given
    order does not matter. Measures are means over queries, such as `map_answerable`. Three conventions say
    which queries count:

    answerable: queries with a relevant candidate (Lei et al. 2016, trec_eval). all: every query; one without
    a relevant candidate counts as 0. mixed: queries with a relevant and an irrelevant candidate (the
    published figures of MTEB).

    `queries_answerable`, `queries_all` and `queries_mixed` are the numbers of queries that count. Subsets
    appear as `map/<subset>`, by the configured convention.
    """

    version: ClassVar[int] = 1
    record_kind: ClassVar[RecordKind] = RecordKind.RANKING

    queries: Literal["answerable", "all", "mixed"] = Field(
        "answerable",
        description="queries that count in the mean average precision of tables and `selection`. "
        "answerable: with a relevant candidate; all: every query, 0 without a relevant candidate; mixed: "
        "with relevant and irrelevant ones (MTEB)",
    )
    relevant_from: float = Field(
        0.9, gt=0, le=1, description="minimum grade, in [0, 1], of a relevant candidate"
    )

    @property
    def main_score(self) -> str:
        """Name of the score for tables: MAP by the configured convention."""
        return f"map_{self.queries}"

    @property
    def main_score_title(self) -> str:
        """The measure and its convention in words."""
        return f"mean average precision (queries: {self.queries})"

    def check_data(self, task: SyntheticDataset) -> None:
        """Raise UserError if no query has both relevant and irrelevant candidates."""
        if not any(
            len({grade >= self.relevant_from for grade in each}) == 2 for each in task.column("grades")
        ):
            raise UserError(
                f"{task.task_name}: no query has both relevant and irrelevant candidates: nothing to rank"
            )

    def evaluate(self, model: PairScorer | Encoder, task: SyntheticDataset) -> Evaluation:
        """Rank every query's candidates and measure.

        Raises UserError as `check_data`, or if a score is not finite.
        """
        import numpy as np

        from synthbench_reranking.measures import candidate_scores, counted_queries, means, measures

        self.check_data(task)
        name = task.task_name
        rankings: list[Ranking] = list(task)
        relevant = [np.array(each.grades) >= self.relevant_from for each in rankings]
        counts = np.array([(mask.sum(), len(mask)) for mask in relevant], int)
        is_counted = counted_queries(counts)
        rows = [
            measures(scores, np.array(each.grades), mask)
            for each, mask, scores in zip(
                rankings, relevant, candidate_scores(model, rankings, name), strict=True
            )
        ]
        values = {measure: np.array([row[measure] for row in rows]) for measure in MEASURES}
        scores = means(values, is_counted)
        chosen, subsets = is_counted[self.queries], np.array(task.column("subset"))
        for subset in sorted({*subsets[chosen]} - {""}):
            scores[f"map/{subset}"] = float(values["map"][chosen & (subsets == subset)].mean())
        return Evaluation(
            scores=scores,
            main_score=self.main_score,
            num_items=int(chosen.sum()),
            items={
                "id": task.column("id"),
                "subset": subsets.tolist(),
                "num_relevant": counts[:, 0].tolist(),
                "num_candidates": counts[:, 1].tolist(),
                **{measure: values[measure].tolist() for measure in MEASURES},
            },
        )

    def influence(
        self, items: "Mapping[str, NDArray[Any]]", scores: Mapping[str, float]
    ) -> "NDArray[np.float64]":
        """Return each query's influence on the mean average precision; 0 for queries that are not counted."""
        import numpy as np

        from synthbench_reranking.measures import counted_queries

        counts = np.stack([items["num_relevant"], items["num_candidates"]], axis=1)
        counted = counted_queries(counts)[self.queries]
        values = items["map"]
        return np.asarray(np.where(counted, values - values[counted].mean(), 0.0) / counted.mean(), float)
