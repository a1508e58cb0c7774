"""smooth-labels, keep-per-group, add-random-negatives: DINO's recipe, by hand and as properties."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any

import pytest
from applying import apply_steps, drawn_by, named
from dino_steps import dino_pairs, dino_recipe
from hypothesis import given, settings
from hypothesis import strategies as st
from record_strategies import PROPERTY
from wording import refused

from synthbench.base.errors import UserError
from synthbench.data.dataset import SyntheticDataset
from synthbench.data.records import Pair, RecordKind, ScoredPair
from synthbench.preparing.sampling import KeepPerGroup
from synthbench.preparing.scores import AddRandomNegatives, AddSwapped, SmoothLabels

SHORT = st.sampled_from("abcdefgh")
ROWS = st.lists(st.tuples(SHORT, SHORT, st.sampled_from(["0", "0.5", "1"])), min_size=1, max_size=40)


def made(rows: Sequence[tuple[str, str, str]], **values: Any) -> SyntheticDataset:
    return SyntheticDataset.create(RecordKind.SCORED_PAIR, dino_pairs(rows, **values))


def negatives_of(data: SyntheticDataset, **options: Any) -> list[ScoredPair]:
    result = apply_steps(data, [AddRandomNegatives(**options)])
    assert list(result)[: len(data)] == list(data), "what was there stays as it was"
    return list(result)[len(data) :]


def shuffled(data: SyntheticDataset, shuffler: Any) -> SyntheticDataset:
    records = list(data)
    shuffler.shuffle(records)
    return data.with_records(records)


def test_smoothing_gives_the_papers_scores() -> None:
    data = made([("a", "b", "0"), ("a", "c", "0.5"), ("a", "d", "1")])
    result = apply_steps(data, [SmoothLabels()])
    assert result.column("score") == [0.1, 0.5, 0.9]
    assert result.column("label") == ["0", "0.5", "1"]
    assert result.column("id") == data.column("id")


@pytest.mark.parametrize(("epsilon", "scores"), [(0.1, [0.05, 0.5, 0.95]), (0.5, [0.25, 0.5, 0.75])])
def test_epsilon_shifts_scores_towards_the_middle(epsilon: float, scores: list[float]) -> None:
    data = made([("a", "b", "0"), ("a", "c", "0.5"), ("a", "d", "1")])
    assert apply_steps(data, [SmoothLabels(epsilon=epsilon)]).column("score") == pytest.approx(scores)


def test_keep_per_group_limits_each_group_and_keeps_the_order() -> None:
    data = made([("a", str(number), "1") for number in range(5)] + [("a", "x", "0"), ("b", "y", "1")])
    result = apply_steps(data, [KeepPerGroup(columns=("sentence1", "label"), most=2)])
    counts = Counter((record.sentence1, record.label) for record in result)
    assert counts == {("a", "1"): 2, ("a", "0"): 1, ("b", "1"): 1}
    assert result.column("id") == sorted(result.column("id"), key=int)
    assert result.manifest.dropped == {"keep-per-group": 3}


def test_keep_per_group_samples_fairly_by_the_seed() -> None:
    data = made([("a", str(number), "1") for number in range(4)])
    drawn = Counter(
        identity
        for seed in range(400)
        for identity in drawn_by(KeepPerGroup(columns=("sentence1",), most=1, seed=seed), data)
    )
    # Each of 4 is expected 100 times; 4 standard deviations of a binomial (400, 1/4) are 35.
    assert len(drawn) == 4
    assert all(abs(count - 100) <= 35 for count in drawn.values())


@PROPERTY
@given(ROWS, st.integers(1, 3), st.integers(0, 3), st.randoms(use_true_random=False))
def test_a_group_below_the_limit_loses_no_record(rows: Any, most: int, seed: int, shuffler: Any) -> None:
    data = made(rows)
    step = KeepPerGroup(columns=("sentence1", "label"), most=most, seed=seed)
    result = apply_steps(data, [step])
    before, after = (Counter((r.sentence1, r.label) for r in each) for each in (data, result))
    assert after == {group: min(count, most) for group, count in before.items()}
    assert set(drawn_by(step, shuffled(data, shuffler))) == set(result.column("id"))


def test_a_random_negative_has_the_label_random() -> None:
    data = made([("a", "b", "1"), ("c", "d", "1")], generator="gpt2-xl", instruction="mean the same thing")
    first, second = negatives_of(data, per_group=1, seed=7)
    assert (first.sentence1, first.sentence2, second.sentence1, second.sentence2) == ("a", "d", "c", "b")
    assert (first.score, first.label, first.instruction) == (0.0, "random", "random negative")
    assert (first.generator, first.seed, first.split) == ("gpt2-xl", 7, "train")
    assert first.id.startswith("random/")


def test_negatives_belong_to_the_group_of_their_sentence() -> None:
    records = [
        ScoredPair(id=str(n), sentence1=f"x{n}", sentence2=f"y{n}", score=1.0, source_id=f"x1/{n}")
        for n in range(4)
    ]
    data = SyntheticDataset.create(RecordKind.SCORED_PAIR, records)
    sources = {record.sentence1: record.source_id for record in records}
    assert all(one.source_id == sources[one.sentence1] for one in negatives_of(data))


def test_partners_have_the_same_split() -> None:
    records = [
        ScoredPair(id=f"{split}{n}", sentence1=f"x{n}", sentence2=f"{split}{n}", score=1.0, split=split)
        for split in ("train", "dev")
        for n in range(3)
    ]
    data = SyntheticDataset.create(RecordKind.SCORED_PAIR, records)
    assert all(one.sentence2.startswith(one.split) for one in negatives_of(data))


@PROPERTY
@given(ROWS, st.integers(1, 3), st.integers(0, 3))
def test_a_negative_is_never_the_sentence_or_its_own_partner(rows: Any, per_group: int, seed: int) -> None:
    data = made(rows)
    own: dict[str, set[str]] = defaultdict(set)
    for first, second, _ in rows:
        own[first].add(second)
    texts = {second for _, second, _ in rows}
    possible = {first: texts - written - {first} for first, written in own.items()}
    if not any(possible.values()):
        with pytest.raises(UserError, match="sentence1"):
            negatives_of(data, per_group=per_group, seed=seed)
        return
    drawn: dict[str, list[str]] = defaultdict(list)
    for one in negatives_of(data, per_group=per_group, seed=seed):
        assert one.score == 0.0
        drawn[one.sentence1].append(one.sentence2)
    for first, partners in possible.items():
        assert set(drawn[first]) <= partners
        assert len(set(drawn[first])) == len(drawn[first]) == min(per_group, len(partners))


@PROPERTY
@given(ROWS, st.integers(0, 3), st.booleans(), st.randoms(use_true_random=False))
def test_negatives_do_not_depend_on_the_order(rows: Any, seed: int, same_source: bool, shuffler: Any) -> None:
    data = made([*rows, ("q", "r", "1"), ("s", "t", "0")])
    drawn, again = (
        negatives_of(each, seed=seed, same_source=same_source) for each in (data, shuffled(data, shuffler))
    )
    assert sorted(drawn, key=lambda one: one.id) == sorted(again, key=lambda one: one.id)


def test_sentences_of_the_same_source_are_drawn_only_on_request() -> None:
    data = made([("a", "b", "1"), ("a", "c", "1"), ("d", "e", "0")])
    assert {one.sentence2 for one in negatives_of(data, per_group=3) if one.sentence1 == "a"} == {"e"}
    released = negatives_of(data, per_group=3, same_source=True)
    assert {one.sentence2 for one in released if one.sentence1 == "a"} == {"b", "c", "e"}


def test_missing_negatives_are_reported() -> None:
    data = made([("a", "b", "1"), ("a", "c", "1"), ("d", "e", "0")])
    (note,) = apply_steps(data, [AddRandomNegatives(per_group=2)]).manifest.notes
    assert note == (
        "add-random-negatives v1 (per_group 2, seed 0, same_source False): 3 -> 6 records; "
        "1 fewer than wanted, for lack of other sentences"
    )


def test_every_sentence_is_drawn_about_equally_often() -> None:
    data = made([(f"x{n}", f"y{n}", "1") for n in range(400)])
    counts = Counter(one.sentence2 for one in negatives_of(data, per_group=2))
    assert sum(counts.values()) == 800
    # Poisson with mean 2: more than 9 is seen once in 20,000, none at all in 1 of 7.
    assert max(counts.values()) <= 10
    assert 300 < len(counts) < 400


def test_another_seed_draws_other_negatives() -> None:
    data = made([(f"x{n}", f"y{n}", "1") for n in range(20)])
    first, second = ({one.texts() for one in negatives_of(data, seed=seed)} for seed in (0, 1))
    assert len(first & second) < 10


# Each example passes six steps; what each of them does has its own property above.
@settings(max_examples=20)
@given(ROWS, st.integers(0, 2))
def test_the_recipe_gives_four_scores_and_counts_that_add_up(rows: Any, seed: int) -> None:
    data = made([*rows, *((f"x{n}", f"y{n}", "1") for n in range(20))])
    result = apply_steps(data, dino_recipe(seed))
    assert set(result.column("score")) <= {0.0, 0.1, 0.5, 0.9}
    num_negatives = result.column("label").count("random")
    assert result.column("score").count(0.0) == num_negatives
    assert len(data) - sum(result.manifest.dropped.values()) + num_negatives == len(result)
    groups = Counter((one.sentence1, one.label) for one in result)
    assert max(groups.values()) <= 2
    assert all(one.sentence1 != one.sentence2 for one in result)


@pytest.mark.parametrize("step", [SmoothLabels(), AddRandomNegatives()])
def test_score_steps_accept_only_scored_pairs(step: Any) -> None:
    data = SyntheticDataset.create(RecordKind.PAIR, [Pair(anchor="a", positive="p")])
    with refused(named(step).name, "scored_pair", "pair"):
        apply_steps(data, [step])


def test_groups_need_existing_columns() -> None:
    with refused("scored_pair", "'sentence'"):
        apply_steps(made([("a", "b", "1")]), [KeepPerGroup(columns=("sentence",), most=1)])


GOLDEN = {
    "drop-duplicates": "a562dc7680fd",
    "drop-identical": "0f09190df0ce",
    "smooth-labels": "357150366b75",
    "keep-per-group": "475f25970a06",
    "add-random-negatives": "a4b6148f7bb5",
    "split": "db136917259a",
}


def test_each_steps_version_fixes_its_output() -> None:
    """If this fails because of an intended change, raise the step's version."""
    data = made(
        [(f"x{n // 7}", f"y{n // 2}" if n % 5 else f"x{n // 7}", ("0", "1")[n % 2]) for n in range(70)]
    )
    found = {}
    for step in dino_recipe(seed=1):
        data = apply_steps(data, [step])
        assert step.plugin.version_in_use() == 1
        found[step.name] = data.manifest.content_hash[:12]
    assert found == GOLDEN
    assert all(
        data.manifest.dropped[step] for step in ("drop-duplicates", "drop-identical", "keep-per-group")
    )


def test_each_pair_is_added_once_in_the_other_order_of_its_own_split() -> None:
    rows = [
        ("a", "b", "train"),
        ("b", "a", "train"),
        ("c", "d", "dev"),
        ("d", "c", "train"),
        ("e", "e", "dev"),
    ]
    records = [
        ScoredPair(id=str(row), sentence1=first, sentence2=second, score=0.5, split=split)
        for row, (first, second, split) in enumerate(rows)
    ]
    made = list(apply_steps(SyntheticDataset.create(RecordKind.SCORED_PAIR, records), [AddSwapped()]))
    assert [(each.id, each.sentence1, each.sentence2, each.split) for each in made[len(rows) :]] == [
        ("2/swapped", "d", "c", "dev"),
        ("3/swapped", "c", "d", "train"),
    ]
