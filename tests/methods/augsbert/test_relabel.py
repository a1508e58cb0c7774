"""`relabel`: new scores for pairs that are there, by each sort of labeller."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
import pytest
from augsbert_context import Context, Vectors
from pydantic import ValidationError
from wording import refused

from synthbench.api import (
    LLM,
    ChatAnswer,
    ChatRequest,
    Failure,
    GeneratedData,
    GenerationContext,
    Pair,
    Record,
    RecordKind,
    ScoredPair,
    SyntheticDataset,
    TrainedModel,
    Triplet,
    Unit,
    UserError,
)
from synthbench.plugins import labellers
from synthbench_augsbert import AugSBERT, AugSBERTDomain, Relabel

CROSS_ENCODER = {"base": {"model": "org/judge"}}
TRAINED = {"cross_encoder": CROSS_ENCODER}
FORMER = (0.0, 0.5, 1.0, 0.5, 0.0, 1.0)


class Lengths:
    """Scores a pair by the length of its first sentence: asymmetric, partly out of range."""

    def score(self, pairs: Sequence[tuple[str, str]]) -> np.ndarray:
        return np.array([len(first) / 10 - 0.1 for first, _ in pairs])


@dataclass
class Chat:
    """An LLM that gives the same answers in turn."""

    answered: Sequence[str | None]
    asked: list[ChatRequest] = field(default_factory=list)

    def answers(self, requests: Iterable[ChatRequest]) -> Iterator[ChatAnswer]:
        for request in requests:
            text = self.answered[len(self.asked) % len(self.answered)]
            self.asked.append(request)
            yield ChatAnswer(request, text, "" if text is not None else "refused by the service")


@dataclass
class Asking(Context):
    client: Chat = field(default_factory=lambda: Chat(["4"]))
    finished: dict[str, Sequence[Record]] = field(default_factory=dict)

    @property
    def llm(self) -> LLM:
        return LLM("llm", "a-model", self.client)

    def finished_records(self) -> Iterator[tuple[str, Sequence[Record]]]:
        return iter(self.finished.items())


def given() -> SyntheticDataset:
    records = [
        ScoredPair(
            id=f"p{row}",
            sentence1="x" * (row + 1),
            sentence2="y",
            score=score,
            source_id=f"s{row}",
            label=f"{score:g}",
        )
        for row, score in enumerate(FORMER)
    ]
    return SyntheticDataset.create(RecordKind.SCORED_PAIR, records)


def relabelled(
    context: Asking, data: dict[str, SyntheticDataset] | None = None, **settings: Any
) -> list[Record]:
    units = generated(context, data, **settings)
    return [record for unit in sorted(units, key=lambda unit: unit.position) for record in unit.records]


def generated(
    context: Asking, data: dict[str, SyntheticDataset] | None = None, **settings: Any
) -> list[Unit]:
    method = Relabel.model_validate({"labeller": TRAINED, **settings})
    return list(method.generate(data or {"pairs": given()}, cast("GenerationContext", context)))


def trained() -> Asking:
    return Asking(models={"labeller.cross_encoder": Lengths()})


def test_a_trained_cross_encoder_scores_both_orders_and_changes_only_the_scores() -> None:
    found = relabelled(trained(), seed=4)
    assert [type(pair) for pair in found] == [ScoredPair] * 6
    for pair, former in zip(cast("list[ScoredPair]", found), given(), strict=True):
        both = (len(pair.sentence1) / 10 - 0.1 + 0.0) / 2
        assert pair.score == pytest.approx(max(0.0, both))
        assert (pair.texts(), pair.label, pair.source_id) == (former.texts(), former.label, former.source_id)
        assert (pair.method, pair.generator, pair.seed) == ("relabel", "cross_encoder org/judge", 4)
        assert pair.id == ""


def test_the_labeller_is_trained_on_gold_and_selected_on_dev() -> None:
    method = Relabel.model_validate({"labeller": TRAINED, "seed": 7})
    assert method.needs() == {
        "labeller.cross_encoder": TrainedModel("cross-encoder", CROSS_ENCODER, ("gold",), 7, "sts", "dev")
    }
    ready = Relabel.model_validate({"labeller": {"ready_cross_encoder": CROSS_ENCODER}, "seed": 7})
    assert ready.needs() == {
        "labeller.ready_cross_encoder": TrainedModel("none-cross-encoder", CROSS_ENCODER, (), 0)
    }


def test_an_encoder_scores_by_cosine_and_never_below_zero() -> None:
    vectors = Vectors({"a": (1, 0), "b": (1, 1), "c": (-1, 0)})
    pairs = [Pair(id=text, anchor="a", positive=text) for text in "abc"]
    data = {"unscored": SyntheticDataset.create(RecordKind.PAIR, pairs)}
    context = Asking(models={"labeller.encoder": vectors})
    found = relabelled(context, data, labeller={"encoder": CROSS_ENCODER})
    assert [record.score for record in cast("list[ScoredPair]", found)] == pytest.approx(
        [1, 0.5**0.5, 0], abs=1e-6
    )
    assert [record.source_id for record in found] == ["a", "b", "c"]
    assert "relabel: Spearman of new and former" not in context.measured


def test_an_llms_unclear_answers_are_failures_without_a_score() -> None:
    context = Asking(client=Chat(["Score: 4/5", "hard to say", None]))
    found = relabelled(context, labeller={"judge": {}})
    assert [getattr(record, "score", None) for record in found] == [0.8, None, None, 0.8, None, None]
    failures = [record for record in found if isinstance(record, Failure)]
    assert [failure.reason for failure in failures] == ["unclear answer", "refused by the service"] * 2
    assert failures[0].raw_text == "hard to say"
    assert found[0].generator == "a-model"
    assert "Sentence 1: xx\nSentence 2: y" in context.client.asked[1].messages[0]["content"]


def test_triplets_become_two_pairs_each() -> None:
    triplet = Triplet(id="t", anchor="aaa", positive="b", negative="c")
    data = {"triplets": SyntheticDataset.create(RecordKind.TRIPLET, [triplet])}
    context = trained()
    found = cast("list[ScoredPair]", relabelled(context, data))
    assert [pair.texts() for pair in found] == [("aaa", "b"), ("aaa", "c")]
    assert context.measured["relabel: mean of the former scores"] == 0.5


def derived(**settings: Any) -> tuple[Asking, list[ScoredPair]]:
    """Return the output for the new scores alone, after computing them."""
    alone = SyntheticDataset.create(RecordKind.SCORED_PAIR, relabelled(trained()))
    context = Asking(datasets={"scores": alone})
    method = Relabel.model_validate({"labeller": TRAINED, **settings})
    (need,) = method.needs().values()
    assert need == GeneratedData(
        "relabel",
        {**method.model_dump(mode="json"), "share": 1.0, "within": None},
        {role: role for role in ("pairs", "unscored", "triplets", "gold", "dev")},
    )
    made = method.generate({"pairs": given()}, cast("GenerationContext", context))
    return context, cast("list[ScoredPair]", list(made))


def test_a_weight_mixes_new_and_former_scores() -> None:
    alone = cast("list[ScoredPair]", relabelled(trained()))
    _, half = derived(share=0.5)
    assert [pair.score for pair in half] == pytest.approx(
        [(pair.score + former) / 2 for pair, former in zip(alone, FORMER, strict=True)]
    )
    assert [pair.source_id for pair in half] == [pair.source_id for pair in alone]


def test_pairs_whose_scores_differ_too_much_are_dropped_and_counted() -> None:
    alone = cast("list[ScoredPair]", relabelled(trained()))
    context, kept = derived(within=0.3)
    agreeing = [
        (pair.texts(), pair.score)
        for pair, former in zip(alone, FORMER, strict=True)
        if abs(pair.score - former) <= 0.3
    ]
    assert 0 < len(agreeing) < 6
    assert [(pair.texts(), pair.score) for pair in kept] == agreeing
    assert context.dropped == {"new and former score differ by more than 0.3": 6 - len(agreeing)}
    everything = trained()
    generated(everything)
    assert context.measured == everything.measured


def test_mixing_scores_repeats_no_request_or_computation() -> None:
    mixed = Relabel.model_validate({"labeller": {"judge": {}}, "share": 0.5})
    assert not mixed.needs_llm()
    assert mixed.asks({"pairs": 30}) is None
    assert list(Relabel.model_validate({"labeller": TRAINED, "within": 0.1}).cost({"pairs": 30})) == []


def test_agreement_is_measured_over_all_pairs_even_after_a_kill(monkeypatch: pytest.MonkeyPatch) -> None:
    from scipy.stats import spearmanr

    monkeypatch.setattr(labellers, "BATCH_PAIRS", 2)
    context = trained()
    units = generated(context)
    in_order = sorted(units, key=lambda unit: unit.position)
    new = [cast("ScoredPair", unit.records[0]).score for unit in in_order]
    assert context.measured["relabel: Spearman of new and former"] == pytest.approx(
        spearmanr(new, FORMER).statistic
    )
    assert context.measured["relabel: share within 0.2"] == pytest.approx(2 / 6)
    for number in (1, 2, 5):
        finished = {unit.key: unit.records for unit in units[:number]}
        again = trained()
        again.finished, again.finished_units = finished, frozenset(finished)
        assert [unit.key for unit in generated(again)] == [unit.key for unit in units[number:]]
        assert again.measured == context.measured


@pytest.mark.parametrize(
    ("settings", "roles", "facts"),
    [
        ({}, ("gold",), ("one of the roles pairs, unscored, triplets", "none")),
        ({}, ("gold", "pairs", "triplets"), ("has pairs and triplets",)),
        ({"labeller": {"judge": {}}}, ("gold", "pairs"), ("`judge` learns nothing from 'gold'",)),
        ({"labeller": {"encoder": CROSS_ENCODER}}, ("dev", "pairs"), ("learns nothing from 'dev'",)),
    ],
)
def test_roles_must_fit_the_labeller(
    settings: dict[str, Any], roles: Sequence[str], facts: Sequence[str]
) -> None:
    with refused(*facts):
        Relabel.model_validate({"labeller": TRAINED, **settings}).check_sources(roles)


@pytest.mark.parametrize(
    ("labeller", "facts"),
    [
        ({}, ("needs one of", "has none")),
        ({**TRAINED, "judge": {}}, ("has cross_encoder and judge",)),
        (
            {"judge": {"prompt": "Is {anchor} like {sentence2}?"}},
            ("{anchor} in the prompt is no column",),
        ),
    ],
)
def test_a_labeller_is_of_exactly_one_kind(labeller: dict[str, Any], facts: Sequence[str]) -> None:
    with refused(*facts, kind=ValidationError):
        Relabel.model_validate({"labeller": labeller})


def test_scores_that_are_no_similarities_are_refused() -> None:
    class Logits:
        def score(self, pairs: Sequence[tuple[str, str]]) -> np.ndarray:
            return np.linspace(-9, 11, len(pairs))

    context = Asking(models={"labeller.ready_cross_encoder": Logits()})
    with refused("org/judge", "from -3.55", "to 5.55", kind=UserError):
        relabelled(context, labeller={"ready_cross_encoder": CROSS_ENCODER})


def test_costs_are_estimated_before_the_run() -> None:
    judge = Relabel.model_validate({"labeller": {"judge": {}}})
    assert judge.needs_llm()
    amount = judge.asks({"triplets": 50})
    assert amount is not None
    assert amount.num_requests == 100
    assert judge.asks({}) is None
    model = Relabel.model_validate({"labeller": TRAINED})
    assert not model.needs_llm()
    assert model.expected({"pairs": 30, "gold": 9}).num_records == 30
    assert list(model.cost({"pairs": 3000})) == ["pairs to label with org/judge: 3,000"]
    assert list(model.cost({})) == ["pairs to label with org/judge: unknown until they are made"]


def by_judge(context: Asking) -> list[Record]:
    settings = {"labeller": {"judge": {}}, "sampler": {"name": "random", "size": 3}}
    method = AugSBERT.model_validate(settings)
    found = list(method.generate({"gold": given()}, cast("GenerationContext", context)))
    return [record for unit in found if isinstance(unit, Unit) for record in unit.records]


def test_augsberts_pairs_are_labelled_by_any_labeller() -> None:
    context = Asking(client=Chat(["4", "perhaps", "0"]))
    first, second, third = by_judge(context)
    assert isinstance(first, ScoredPair)
    assert isinstance(third, ScoredPair)
    assert (first.score, third.score, first.generator) == (0.8, 0.0, "a-model")
    assert isinstance(second, Failure)
    assert (second.reason, second.source_id) == ("unclear answer", second.source_id)
    assert second.source_id


def test_augsberts_labellers_have_their_own_needs_costs_and_roles() -> None:
    encoder = AugSBERTDomain.model_validate({"labeller": {"encoder": CROSS_ENCODER}})
    assert encoder.needs() == {"labeller.encoder": TrainedModel("none", CROSS_ENCODER, (), 0)}
    assert list(encoder.cost({"target": 7})) == ["at most 7 pairs to label, 7 inputs of org/judge"]
    assert not encoder.needs_llm()
    judge = AugSBERTDomain.model_validate({"labeller": {"judge": {}}})
    assert judge.needs_llm()
    asked = judge.asks({"target": 7})
    assert asked is not None
    assert asked.num_requests == 7
    assert list(judge.cost({"target": 7})) == []
    with pytest.raises(UserError, match="the labeller `judge` learns nothing from 'dev'"):
        judge.check_sources({"gold", "target", "dev"})
    for settings in ({}, {"labeller": {"judge": {}}, "cross_encoder": CROSS_ENCODER}):
        with pytest.raises(ValidationError, match="needs either `cross_encoder` or `labeller`"):
            AugSBERTDomain.model_validate(settings)
    with pytest.raises(ValidationError, match=r"both_orders is `cross_encoder`'s"):
        AugSBERTDomain.model_validate({"labeller": {"judge": {}}, "both_orders": False})
