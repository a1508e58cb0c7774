"""What selects a checkpoint: an evaluator's main score on dev data."""

from collections.abc import Callable, Sequence

from synthbench.data.dataset import SyntheticDataset
from synthbench.errors import UserError
from synthbench.models.interfaces import PairScorer
from synthbench.plugins import Evaluator

DEV = "dev"


def dev_split(data: SyntheticDataset, part: str) -> SyntheticDataset:
    """Return the records with split "dev" of a part of the training data.

    Raises UserError, naming the part, if there are none.
    """
    found = [record for record in data if record.split == DEV]
    if not found:
        raise UserError(
            f"train.selection.parts: none of the {len(data):,} records of part '{part}' is in split dev; "
            f"a last step such as {{step: split, dev: 0.1}} in data.{part}.prepare sets some apart"
        )
    return data.with_records(found)


def mean_main_score(evaluator: Evaluator, dev: Sequence[SyntheticDataset]) -> Callable[[PairScorer], float]:
    """Return a function that gives a model the mean of its main scores on the dev sets."""

    def score(model: PairScorer) -> float:
        results = [evaluator.evaluate(model, task) for task in dev]
        return sum(result.scores[result.main_score] for result in results) / len(results)

    return score
