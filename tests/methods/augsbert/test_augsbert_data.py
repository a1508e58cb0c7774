"""Faults of sources that AugSBERT reports before it trains a labeller."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from wording import worded

from synthbench.api import Method, RecordKind, ScoredPair, SyntheticDataset, UserError
from synthbench_augsbert import AugSBERT, AugSBERTDomain

BASE = {"base": {"model": "sandbox/encoder"}}
RANDOM = {"name": "random", "size": 2}
FOUR_SENTENCES = [("a dog", "a cat"), ("my boat", "your boat")]


def pairs(
    texts: Sequence[tuple[str, str]], scores: Sequence[float], split: str = "train"
) -> SyntheticDataset:
    records = [
        ScoredPair(sentence1=first, sentence2=second, score=score, split=split)
        for (first, second), score in zip(texts, scores, strict=True)
    ]
    return SyntheticDataset.create(RecordKind.SCORED_PAIR, records)


GOLD = pairs(FOUR_SENTENCES, [0.2, 0.9])


def augsbert(**sampler: Any) -> AugSBERT:
    return AugSBERT.model_validate({"sampler": sampler, "cross_encoder": BASE})


def domain() -> AugSBERTDomain:
    return AugSBERTDomain.model_validate({"cross_encoder": BASE})


def fault(method: Method, sources: Mapping[str, SyntheticDataset]) -> str:
    with pytest.raises(UserError) as caught:
        method.check_data(sources)
    (message,) = caught.value.messages
    return message


@pytest.mark.parametrize(
    "sampler",
    [
        RANDOM,
        {"name": "kde", "size": 4},
        {"name": "bm25", "k": 3},
        {"name": "semantic-search", "k": 3, "bi_encoder": BASE},
        {"name": "bm25+semantic-search", "k": 1, "semantic_k": 3, "bi_encoder": BASE},
    ],
)
def test_valid_data_pass_the_check(sampler: dict[str, Any]) -> None:
    augsbert(**sampler).check_data({"gold": GOLD, "dev": pairs(FOUR_SENTENCES, [1, 0], "dev")})


@pytest.mark.parametrize("sampler", [RANDOM, {"name": "kde", "size": 4}])
@pytest.mark.parametrize(
    ("score", "found", "wanted"),
    [
        (1, "1", "of both classes, 0 and 1,"),
        (0, "0", "of both classes, 0 and 1,"),
        (0.5, "0.5 (of 0 to 1)", "of different scores"),
    ],
)
def test_gold_with_a_single_score_is_refused(
    sampler: dict[str, Any], score: float, found: str, wanted: str
) -> None:
    gold = pairs(FOUR_SENTENCES, [score, score])

    worded(
        fault(augsbert(**sampler), {"gold": gold}),
        "augsbert",
        "'gold'",
        "split",
        "'train'",
        str(found),
        "pairs",
        str(wanted),
    )


def test_gold_without_pairs_to_train_on_is_an_error() -> None:
    gold = pairs(FOUR_SENTENCES, [0, 1], split="dev")

    worded(fault(augsbert(**RANDOM), {"gold": gold}), "augsbert", "'gold'", "split", "'train'", "pairs")


@pytest.mark.parametrize("labeller", [{"judge": {}}, {"encoder": BASE}])
def test_gold_may_have_a_single_score_if_nothing_learns_from_it(labeller: dict[str, Any]) -> None:
    sources = {"gold": pairs(FOUR_SENTENCES, [1, 1]), "target": pairs([("c", "d")], [0])}
    for sampler in (RANDOM, {"name": "bm25", "k": 3}):
        AugSBERT.model_validate({"sampler": sampler, "labeller": labeller}).check_data(sources)
    AugSBERTDomain.model_validate({"labeller": labeller}).check_data(sources)
    for sampler in ({"name": "kde", "size": 4}, {"name": "semantic-search", "k": 3, "bi_encoder": BASE}):
        worded(
            fault(AugSBERT.model_validate({"sampler": sampler, "labeller": labeller}), sources),
            "augsbert",
            "'gold'",
            "'train'",
            "classes",
        )


def test_dev_pairs_with_a_single_score_are_refused() -> None:
    dev = pairs(FOUR_SENTENCES, [0.5, 0.5], split="dev")

    for method in (augsbert(**RANDOM), domain()):
        message = fault(method, {"gold": GOLD, "dev": dev, "target": pairs([("c", "d")], [0])})
        assert (
            "source 'dev': all 2 scores are 0.5 (of 0 to 1); pairs of different scores are needed" in message
        )


@pytest.mark.parametrize(
    ("sampler", "key"),
    [
        ({"name": "bm25", "k": 4}, "sampler bm25: k 4"),
        ({"name": "semantic-search", "k": 4, "bi_encoder": BASE}, "sampler semantic-search: k 4"),
        (
            {"name": "bm25+semantic-search", "k": 1, "semantic_k": 4, "bi_encoder": BASE},
            "sampler bm25+semantic-search: semantic_k 4",
        ),
    ],
)
def test_k_must_be_smaller_than_the_number_of_sentences(sampler: dict[str, Any], key: str) -> None:
    worded(fault(augsbert(**sampler), {"gold": GOLD}), "augsbert", str(key), "gold")


@pytest.mark.parametrize("name", ["random", "kde"])
def test_more_random_pairs_than_exist_are_refused(name: str) -> None:
    worded(fault(augsbert(name=name, size=5), {"gold": GOLD}), "augsbert", "sampler.size", "pairs", "gold")


def test_data_without_any_new_pair_are_refused() -> None:
    gold = pairs([("a", "b"), ("b", "c"), ("a", "c")], [0, 0.5, 1])

    worded(fault(augsbert(name="bm25", k=1), {"gold": gold}), "augsbert", "pair", "gold")


@pytest.mark.parametrize("split", ["train", "test"])
def test_a_target_domain_without_its_own_pairs_is_an_error(split: str) -> None:
    texts = [("a dog", "a whale")] if split == "train" else [("a whale", "a shark")]
    target = pairs(texts, [0.5], split)

    worded(
        fault(domain(), {"gold": GOLD, "target": target}), "'target'", "pair", "split", "'train'", "'gold'"
    )


def test_a_target_that_shares_some_sentences_is_accepted() -> None:
    target = pairs([("a dog", "a whale"), ("a shark", "a whale")], [0.5, 0.5])

    domain().check_data({"gold": GOLD, "target": target})
