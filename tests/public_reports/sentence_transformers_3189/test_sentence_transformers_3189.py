"""huggingface/sentence-transformers #3189: of few passages with many questions, a batch held passages twice.

A question's own passage was then a negative of it. Here no text is in two records of a batch by default, for
every loss with negatives of the batch, and the records are not lost: they go into other batches.
"""

from datasets import Dataset

from synthbench.training.bi_encoder import BiEncoder
from synthbench.training.trainers import DistinctBatches, ShuffledBatches

QUESTIONS = Dataset.from_dict(
    {
        "anchor": [f"question {number}" for number in range(60)],
        "positive": [f"passage {number % 20}" for number in range(60)],
    }
)


def passages_twice(kind: type[ShuffledBatches]) -> int:
    batches = kind(QUESTIONS, 12, drop_last=False, seed=0)
    texts = ([QUESTIONS[row]["positive"] for row in batch] for batch in batches)
    return sum(len(each) - len(set(each)) for each in texts)


def test_no_passage_occurs_twice_in_a_batch() -> None:
    assert passages_twice(ShuffledBatches) > 0
    assert passages_twice(DistinctBatches) == 0


def test_an_epoch_contains_most_records() -> None:
    batches = DistinctBatches(QUESTIONS, 12, drop_last=False, seed=0)
    assert batches.num_left_out() <= 6


def test_no_duplicates_is_the_default_for_multiple_negatives() -> None:
    given = {"base": {"model": "sandbox/encoder"}, "loss": {"name": "multiple-negatives"}}
    assert BiEncoder.model_validate(given).no_duplicates is True
