"""The sandbox as a judge: the audit counts labels that are known to be wrong correctly."""

import json
from dataclasses import replace
from itertools import cycle
from random import Random

import pytest

from synthbench.auditing.items import items_of
from synthbench.auditing.report import Audit, audit_by_oracle
from synthbench.data.dataset import SyntheticDataset
from synthbench.data.records import Failure, Pair, ScoredPair, Sentence, Triplet
from synthbench.engine.progress import PlainProgress
from synthbench.sources.description import Roots
from synthbench.sources.models import WorldSource
from synthbench.worlds.sandbox.oracle import BANDS, band
from synthbench.worlds.sandbox.sampling import Relation

SCORES = {"paraphrase": 1.0, "hard negative": 0.5, "related": 0.1, "unrelated": 0.0}
CAPTION = "A man is feeding a dolphin."
SAME = "There is a guy feeding a dolphin."
OTHER = "A man is touching a dolphin."


@pytest.fixture(scope="module")
def gold() -> list[ScoredPair]:
    """500 pairs, in equal parts of each ten: 2 paraphrases, 3 hard negatives, 3 related, 2 unrelated.

    Of the test split, whose scores are the truth.
    """
    description = {"sandbox": "pairs", "split": "test", "size": 500}
    return list(WorldSource.model_validate_json(json.dumps(description)).load(Roots()))


def audited(*records: ScoredPair | Pair | Triplet | Sentence, failures: int = 0) -> Audit:
    missed = [Failure(id=str(number), reason="no closing quote") for number in range(failures)]
    dataset = SyntheticDataset.create(records[0].kind, records, failures=missed)
    return audit_by_oracle(dataset, items_of(dataset), PlainProgress())


def counts(audit: Audit, column: str) -> dict[str, int]:
    return {row: cells[column].count for row, cells in audit.confusion.cells.items() if cells[column].count}


@pytest.mark.parametrize(
    ("value", "label"),
    [
        (0, "different"),
        (0.2499, "different"),
        (0.25, "a little"),
        (0.5, "similar"),
        (0.9, "same"),
        (1, "same"),
    ],
)
def test_a_lower_bound_belongs_to_its_band(value: float, label: str) -> None:
    assert band(value) == label


def test_the_bands_separate_the_sandboxs_relations(gold: list[ScoredPair]) -> None:
    shares = {
        relation: [band(pair.score) for pair in gold if pair.label == relation] for relation in Relation
    }
    assert set(shares[Relation.PARAPHRASE]) == {"same"}
    assert set(shares[Relation.HARD_NEGATIVE]) == {"similar"}
    assert shares[Relation.RELATED].count("different") < 0.1 * len(shares[Relation.RELATED])
    assert shares[Relation.UNRELATED].count("different") > 0.9 * len(shares[Relation.UNRELATED])


def test_the_oracle_confirms_true_scores(gold: list[ScoredPair]) -> None:
    audit = audited(*gold)
    for column, row in zip(audit.confusion.columns, BANDS, strict=True):
        assert counts(audit, column) == {row: audit.confusion.totals[column]}
    assert audit.correlation is not None
    assert audit.correlation.value == pytest.approx(1.0)


def test_the_oracle_finds_the_annotators_error_in_training_scores() -> None:
    description = {"sandbox": "pairs", "split": "train", "size": 500}
    noisy = list(WorldSource.model_validate_json(json.dumps(description)).load(Roots()))
    found = audited(*noisy).correlation
    assert found is not None
    assert 0.8 < found.value < 0.95


def test_the_oracle_counts_wrong_labels_exactly(gold: list[ScoredPair]) -> None:
    # One of four "paraphrases" is really the second sentence of some unrelated pair.
    unrelated = cycle(pair.sentence2 for pair in gold if pair.label == "unrelated")
    same = [replace(pair, id="", score=0.9) for pair in gold if pair.label == "paraphrase"]
    corrupt = [
        replace(pair, sentence2=next(unrelated)) if position % 4 == 0 else pair
        for position, pair in enumerate(same)
    ]
    found = audited(*corrupt).confusion.cells
    assert found["same"]["0.9"].count == 75
    assert found["different"]["0.9"].count + found["a little"]["0.9"].count == 25
    assert found["same"]["0.9"].low < 75 < found["same"]["0.9"].high


def test_shuffled_scores_have_no_correlation(gold: list[ScoredPair]) -> None:
    scores = [SCORES[pair.label] for pair in gold]
    Random(0).shuffle(scores)
    shuffled = [replace(pair, id="", score=score) for pair, score in zip(gold, scores, strict=True)]
    found = audited(*shuffled).correlation
    assert found is not None
    assert found.low is not None and found.high is not None
    assert found.low < 0 < found.high
    assert found.high - found.low < 0.2


def test_sentences_outside_the_grammar_have_a_row_and_are_counted_by_column() -> None:
    pairs = [
        (CAPTION, SAME),
        (CAPTION, "Dolphins!"),
        ("So what", OTHER),
        ("So what", "Dolphins!"),
        (CAPTION, "x"),
    ]
    audit = audited(*(ScoredPair(sentence1=a, sentence2=b, score=1.0) for a, b in pairs), failures=3)
    assert counts(audit, "1") == {"same": 1, "outside the grammar": 4}
    assert audit.outside == {"sentence1": 1, "sentence1 and sentence2": 1, "sentence2": 2}
    assert audit.mean_similarity == {"1": 1.0}
    assert (audit.num_failures, audit.failures) == (3, {"no closing quote": 3})


def test_positives_and_negatives_are_compared_with_their_anchor() -> None:
    audit = audited(
        Triplet(anchor=CAPTION, positive=SAME, negative=OTHER),
        Triplet(anchor=CAPTION, positive=OTHER, negative=SAME),
        Triplet(anchor=CAPTION, positive=f" {SAME}\n", negative=OTHER),
    )
    assert counts(audit, "positive") == {"same": 2, "similar": 1}
    assert counts(audit, "negative") == {"same": 1, "similar": 2}
    assert (audit.num_records, audit.num_items, audit.correlation) == (3, 6, None)
    assert counts(audited(Pair(anchor=CAPTION, positive=SAME)), "positive") == {"same": 1}


def test_single_sentences_are_judged_by_the_grammar_only() -> None:
    audit = audited(*(Sentence(sentence=text) for text in (CAPTION, SAME, "Dolphins!")))
    assert counts(audit, "all") == {"in the grammar": 2, "outside the grammar": 1}
    assert (audit.bands, audit.mean_similarity) == ({}, {})
