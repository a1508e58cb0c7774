"""Steps that curate: near duplicates, contamination, labellers, judges, languages. Order plays no part."""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from applying import Sources, apply_steps, named, step_of
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from wording import refused

from synthbench.data.dataset import SyntheticDataset
from synthbench.data.records import Pair, RecordKind, ScoredPair, Sentence, Triplet
from synthbench.llm.client import LLM
from synthbench.llm.requests import ChatAnswer
from synthbench.plugins.labellers import Labeller
from synthbench.preparing.drops import DropContaminated
from synthbench.preparing.duplicates import DropNearDuplicates, SemanticDedup
from synthbench.preparing.labelled import JudgeStep, KeepBest, KeepConsistent
from synthbench.preparing.languages import KeepLanguage

LONG = "a man is playing the red guitar on the big stage in front of many people"


def sentences(*texts: str) -> SyntheticDataset:
    records = [Sentence(id=str(number), sentence=text) for number, text in enumerate(texts)]
    return SyntheticDataset.create(RecordKind.SENTENCE, records)


def ids(data: SyntheticDataset) -> list[str]:
    return [record.id for record in data]


def test_of_near_duplicate_sentences_only_one_remains() -> None:
    data = sentences(LONG, LONG.upper() + "!", LONG.replace("big", "bigg"), "Something else altogether.")
    kept = apply_steps(data, [DropNearDuplicates()])
    assert len(kept) == 2
    assert "3" in ids(kept)
    assert kept.manifest.dropped == {"drop-near-duplicates": 2}


def test_a_pair_is_a_near_duplicate_only_if_both_sentences_are_near() -> None:
    pairs = [
        Pair(id="0", anchor=LONG, positive="It rains."),
        Pair(id="1", anchor=LONG, positive="The sun shines."),
    ]
    assert len(apply_steps(SyntheticDataset.create(RecordKind.PAIR, pairs), [DropNearDuplicates()])) == 2


@given(st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=12), st.randoms(), st.integers(0, 9))
def test_the_remaining_near_duplicate_does_not_depend_on_the_order(
    words: list[str], random: Any, seed: int
) -> None:
    texts = [f"{LONG} {word} {LONG[: 3 * number]}" for number, word in enumerate(words)]
    data = sentences(*texts)
    shuffled = list(data)
    random.shuffle(shuffled)
    step = DropNearDuplicates(threshold=0.7, seed=seed)
    expected = set(ids(apply_steps(data, [step])))
    assert set(ids(apply_steps(data.with_records(shuffled), [step]))) == expected
    assert expected


class Vectors:
    """Encodes a sentence as the vector that its words name: "1 0" is (1, 0)."""

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        return np.array([[float(number) for number in text.split()] for text in texts], np.float32)


def test_of_sentences_with_equal_meaning_only_one_remains(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Sources, "encoder", lambda self, need: Vectors(), raising=False)
    step = SemanticDedup(encoder={"base": {"model": "any"}}, threshold=0.99)
    kept = apply_steps(sentences("1 0", "2 0.01", "0 1", "1 1"), [step])
    assert len(kept) == 3
    assert {"2", "3"} < set(ids(kept))


def test_contaminated_records_are_counted_by_the_strictest_matching_rule() -> None:
    test = sentences("A dog.", LONG)
    data = sentences("A dog.", "a DOG", f"so {LONG} and so on", LONG.replace("red", "rod"), "A cat.")
    kept = apply_steps(data, [DropContaminated(sources=("test",))], {"test": test})
    assert ids(kept) == ["4"]
    assert kept.manifest.dropped == {
        "drop-contaminated: exact": 1,
        "drop-contaminated: normalised": 1,
        "drop-contaminated: 13-gram": 1,
        "drop-contaminated: near-duplicate": 1,
    }


class Scores:
    """Scores a pair by the number that its second sentence is."""

    def score(self, pairs: Sequence[tuple[str, str]]) -> np.ndarray:
        return np.array([float(second) for _, second in pairs])


def consistent(**options: Any) -> KeepConsistent:
    labeller = {"ready_cross_encoder": {"base": {"model": "any"}}, "both_orders": False}
    return KeepConsistent.model_validate({"labeller": labeller, **options})


@pytest.fixture
def scored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Sources, "pair_scorer", lambda self, need: Scores(), raising=False)


@pytest.mark.usefixtures("scored")
def test_a_scored_pair_must_be_within_the_tolerance() -> None:
    rows = [("0.9", 0.7), ("0.9", 0.65), ("0.5", 0.9), ("0.1", 0.0)]
    pairs = [
        ScoredPair(id=str(number), sentence1="a", sentence2=text, score=score)
        for number, (text, score) in enumerate(rows)
    ]
    kept = apply_steps(SyntheticDataset.create(RecordKind.SCORED_PAIR, pairs), [consistent(tolerance=0.25)])
    assert ids(kept) == ["0", "1", "3"]
    assert kept.manifest.dropped == {"keep-consistent: the labeller disagrees": 1}


@pytest.mark.usefixtures("scored")
def test_a_triplets_positive_must_beat_every_negative_by_the_margin() -> None:
    triplets = [
        Triplet(id="0", anchor="a", positive="0.9", negative="0.2"),
        Triplet(id="1", anchor="a", positive="0.5", negative="0.45"),
        Triplet(id="2", anchor="a", positive="0.9", negative="0.2", further_negatives=("0.95",)),
    ]
    data = SyntheticDataset.create(RecordKind.TRIPLET, triplets)
    assert ids(apply_steps(data, [consistent(margin=0.1)])) == ["0"]
    assert ids(apply_steps(data, [consistent()])) == ["0", "1"]


def test_a_trained_labeller_needs_gold_and_other_labellers_accept_none() -> None:
    with pytest.raises(ValidationError, match=re.escape("sources: {gold: NAME}")):
        KeepConsistent(labeller=Labeller(cross_encoder={"base": {"model": "any"}}))
    with pytest.raises(ValidationError, match="learns nothing; leave out sources"):
        consistent(sources={"gold": "stsb"})


class Chat:
    """Answers with the last word of the second line."""

    def answers(self, requests: Any) -> Any:
        for request in requests:
            yield ChatAnswer(request, request.messages[-1]["content"].splitlines()[0].split()[-1])


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Sources, "llm", LLM("llm", "a-model", Chat()))


def judge(**options: Any) -> JudgeStep:
    return JudgeStep.model_validate(options)


@pytest.mark.usefixtures("asked")
def test_a_judge_accepts_records_answered_yes_and_counts_the_others() -> None:
    data = sentences("Say yes", "Say no", "Say perhaps", "Say Yes.")
    kept = apply_steps(data, [judge(question={"prompt": "{sentence}"})])
    assert ids(kept) == ["0", "3"]
    assert kept.manifest.dropped == {"judge: no": 1, "judge: unclear answer": 1}
    assert kept.manifest.measured["judge: unclear answers"] == 1


def test_a_judge_counts_incomplete_answers_by_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    class CutOff:
        def answers(self, requests: Any) -> Any:
            return (ChatAnswer(request, None, "cut off: limit on tokens") for request in requests)

    monkeypatch.setattr(Sources, "llm", LLM("llm", "a-model", CutOff()))
    kept = apply_steps(sentences("Say yes"), [judge(question={"prompt": "{sentence}"})])
    assert kept.manifest.dropped == {"judge: cut off": 1}


@pytest.mark.usefixtures("asked")
def test_records_with_unclear_answers_may_be_retained_and_are_counted() -> None:
    data = sentences("Say yes", "Say perhaps")
    kept = apply_steps(data, [judge(question={"prompt": "{sentence}"}, unclear="keep")])
    assert ids(kept) == ["0", "1"]
    assert kept.manifest.measured["judge: unclear answers"] == 1


@pytest.mark.usefixtures("asked")
@pytest.mark.parametrize(("least", "kept"), [(None, ["1", "2"]), (4, ["2"]), (5, [])])
def test_a_grade_must_reach_the_minimum(least: float | None, kept: list[str]) -> None:
    data = sentences("Grade 2", "Grade 3", "Grade 4")
    step = judge(question={"prompt": "{sentence}", "grades": (0, 5)}, least=least)
    assert ids(apply_steps(data, [step])) == kept


def test_a_question_may_only_name_columns_of_the_records() -> None:
    step = judge(question={"prompt": "Is {sentense} good?"})
    assert "did you mean 'sentence'?" in step.obstacle(RecordKind.SENTENCE)


@pytest.mark.parametrize("least", [0, 6])
def test_the_minimum_must_be_one_of_the_grades(least: float) -> None:
    with pytest.raises(ValidationError, match="above 0 and at most 5"):
        judge(question={"prompt": "{sentence}", "grades": (0, 5)}, least=least)


@pytest.mark.usefixtures("scored")
def test_a_judge_may_be_a_labeller_that_scores_the_first_two_sentences() -> None:
    triplets = [
        Triplet(id="0", anchor="a", positive="0.9", negative="0.95"),
        Triplet(id="1", anchor="a", positive="0.45", negative="0.1"),
    ]
    data = SyntheticDataset.create(RecordKind.TRIPLET, triplets)
    labeller = {"ready_cross_encoder": {"base": {"model": "any"}}, "both_orders": False}
    kept = apply_steps(data, [judge(labeller=labeller)])
    assert ids(kept) == ["0"]
    assert kept.manifest.dropped == {"judge: low grade": 1}
    assert ids(apply_steps(data, [judge(labeller=labeller, least=0.4)])) == ["0", "1"]
    assert not judge(labeller=labeller).needs_llm()
    assert judge(labeller={"judge": {}}).needs_llm()


@pytest.mark.usefixtures("scored")
@pytest.mark.parametrize(("amount", "kept"), [({"size": 2}, ["0", "2"]), ({"fraction": 0.25}, ["2"])])
def test_the_records_with_the_highest_scores_are_kept(amount: dict[str, Any], kept: list[str]) -> None:
    pairs = [
        Pair(id=str(row), anchor="a", positive=text) for row, text in enumerate(("0.8", "0.2", "7", "-3"))
    ]
    labeller = {"ready_cross_encoder": {"base": {"model": "any"}}, "both_orders": False}
    data = SyntheticDataset.create(RecordKind.PAIR, pairs)
    step = KeepBest.model_validate({"labeller": labeller, **amount})
    made = apply_steps(data, [step])
    assert ids(made) == kept
    assert made.manifest.dropped == {"keep-best: not among the best": 4 - len(kept)}
    assert step.expected(4) == len(kept)
    again = apply_steps(data.with_records(list(data)[::-1]), [step])
    assert sorted(ids(again)) == kept


@pytest.mark.parametrize(
    ("amount", "facts"),
    [({"fraction": 0.1}, ("fraction of 0.1", "4 records")), ({"size": 100}, ("size 100", "only 4 records"))],
)
def test_the_best_of_too_few_records_are_refused_before_any_is_scored(
    amount: dict[str, float], facts: tuple[str, ...]
) -> None:
    pairs = [Pair(id=str(number), anchor="a", positive=f"b{number}") for number in range(4)]
    step = KeepBest.model_validate({"labeller": {"encoder": {"base": {"model": "any"}}}, **amount})
    with refused("keep-best", *facts):
        apply_steps(SyntheticDataset.create(RecordKind.PAIR, pairs), [step])


def test_a_judge_is_a_question_or_a_labeller_of_records_with_two_sentences() -> None:
    labeller = {"encoder": {"base": {"model": "any"}}}
    for options in ({}, {"labeller": labeller, "question": {"prompt": "{sentence}"}}):
        with pytest.raises(ValidationError, match="needs either `question` or `labeller`"):
            judge(**options)
    assert "a labeller scores pairs, not sentence records" in judge(labeller=labeller).obstacle(
        RecordKind.SENTENCE
    )


def test_sentences_in_another_language_are_dropped_and_counted_by_language() -> None:
    german = "Ein Mann spielt Gitarre auf der Bühne."
    data = sentences("Two dogs run along the wet beach.", german, "Dogs run.")
    kept = apply_steps(data, [KeepLanguage(language="en")])
    assert ids(kept) == ["0", "2"]
    assert kept.manifest.dropped == {"keep-language: language de": 1}
    assert ids(apply_steps(sentences(german), [KeepLanguage(language="de")])) == ["0"]


def test_an_unknown_language_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ValidationError, match=r"no language that py3langid knows: .*de.*en"):
        KeepLanguage(language="xx")


def test_steps_that_use_models_or_an_llm_are_not_plain() -> None:
    plain = [step_of({"step": "drop-near-duplicates"}).plugin, DropContaminated(sources=("a",))]
    others = [consistent(), judge(question={"prompt": "{sentence}"}), SemanticDedup(encoder={})]
    assert [step.is_plain for step in (*plain, *others)] == [True, True, False, False, False]
    assert named(others[1]).name == "judge"
