"""Pair scorers without a model, by hand, and through the evaluators that score cross-encoders."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from wording import refused

from synthbench.api import PairScorer, RecordKind, ScoredPair, SyntheticDataset
from synthbench.base.runtime import Runtime
from synthbench.models import artifact
from synthbench.models.interfaces import ModelKind
from synthbench.plugins.model_contracts import TrainingContext
from synthbench.training.baseline import Baseline

GOLD = {"a b": 1.0, "a c": 1.0, "b c": 1.0, "a d": 0.0, "b d": 0.0}


class Silent:
    """Progress without output."""

    def say(self, message: str) -> None:
        raise AssertionError(message)


def trained(folder: Path, scorer: str, data: tuple[SyntheticDataset, ...] = ()) -> PairScorer:
    folder.mkdir(exist_ok=True)
    progress: Any = Silent()
    context = TrainingContext(seed=0, checkpoints=folder, output=folder, runtime=Runtime(), progress=progress)
    Baseline.model_validate({"scorer": scorer}).train(data, context)
    assert artifact.model_kind(folder) is ModelKind.PAIR_SCORER
    assert artifact.fingerprint(folder) == {"baseline": scorer}
    loaded = artifact.load(folder, Runtime())
    assert isinstance(loaded, PairScorer)
    return loaded


def pairs(gold: Mapping[str, float], split: str) -> list[ScoredPair]:
    return [
        ScoredPair(sentence1=name, sentence2=f"{name} {split}", score=score, split=split)
        for name, score in gold.items()
    ]


def test_jaccard_is_the_share_of_common_words(tmp_path: Path) -> None:
    asked = [
        ("A dog barks.", "a DOG sleeps!"),
        ("one two two", "two one"),
        ("one", "two"),
        ("!", "?"),
        ("Größe", "grösse größe"),
    ]
    assert trained(tmp_path, "jaccard").score(asked) == pytest.approx([0.5, 1, 0, 0, 0.5])


def test_the_majority_class_gives_all_pairs_the_same_score(tmp_path: Path) -> None:
    from synthbench_pairs import Pairs

    data = SyntheticDataset.create(
        RecordKind.SCORED_PAIR, [*pairs(GOLD, "dev"), *pairs({"x": 1.0, "y": 0.0, "z": 0.0}, "test")]
    )
    scores = Pairs().evaluate(trained(tmp_path, "constant"), data).scores
    assert scores["accuracy"] == pytest.approx(1 / 3)  # dev has more positive pairs
    assert scores["f1"] == pytest.approx(2 * 1 / (3 + 1))  # as if all were positive
    assert scores["average_precision"] == pytest.approx(1 / 3)


def test_a_similarity_baseline_is_evaluated_like_a_cross_encoder(tmp_path: Path) -> None:
    from synthbench_sts import STS

    texts = [("a b", "a b", 1.0), ("a b", "a c", 0.6), ("a b", "c d", 0.1)]
    records = [ScoredPair(sentence1=one, sentence2=two, score=score) for one, two, score in texts]
    data = SyntheticDataset.create(RecordKind.SCORED_PAIR, records)
    assert STS().evaluate(trained(tmp_path / "j", "jaccard"), data).scores["spearman_all"] == pytest.approx(1)
    assert STS().evaluate(trained(tmp_path / "c", "constant"), data).scores["spearman_all"] == 0


def test_a_baseline_refuses_data(tmp_path: Path) -> None:
    data = SyntheticDataset.create(RecordKind.SCORED_PAIR, pairs(GOLD, "train"))
    with refused("'baseline'", "5"):
        trained(tmp_path, "jaccard", (data,))
