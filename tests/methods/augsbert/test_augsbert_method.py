"""Silver pairs from gold pairs, with a scorer whose scores can be worked out."""

import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from pydantic import ValidationError
from wording import refused

from synthbench.api import (
    Encoder,
    GeneratedData,
    PairScorer,
    RecordKind,
    Runtime,
    ScoredPair,
    Sentence,
    SyntheticDataset,
    TrainedModel,
    Unit,
)
from synthbench.plugins import labellers
from synthbench_augsbert import AugSBERT, AugSBERTDomain

CROSS_ENCODER = {"base": "sandbox/encoder", "epochs": 1}
NOUNS = ["man", "dog", "cat", "child", "bird", "woman"]
VERBS = ["runs", "sleeps", "plays outside", "eats"]


class CountingScorer:
    """An asymmetric score of the lengths, which counts its calls."""

    def __init__(self) -> None:
        self.asked: Counter[tuple[str, str]] = Counter()

    def score(self, pairs: Sequence[tuple[str, str]]) -> np.ndarray:
        self.asked.update(pairs)
        return np.array([one_way(first, second) for first, second in pairs])


class BatchSensitiveScorer:
    """A score that depends on the other pairs of the call, like the last bits of a real model's."""

    def score(self, pairs: Sequence[tuple[str, str]]) -> np.ndarray:
        noise = 1e-7 * (sum(len(first) for first, _ in pairs) % 1000)
        return np.array([one_way(first, second) / 2 + noise for first, second in pairs])


class Silent:
    @contextmanager
    def task(self, description: str, total: int) -> Iterator["Silent"]:
        yield self

    def advance(self, amount: int = 1) -> None:
        pass

    def say(self, message: str) -> None:
        pass


@dataclass
class Context:
    scorer: PairScorer
    finished_units: frozenset[str] = frozenset()
    dropped: Counter[str] = field(default_factory=Counter)
    runtime: Runtime = field(default_factory=Runtime)
    progress: Silent = field(default_factory=Silent)

    def shared(self) -> None:
        """Return None: no shared data were made before the shards."""

    def is_mine(self, piece: int) -> bool:
        return True

    def pair_scorer(self, need: str) -> PairScorer:
        assert need == "cross_encoder"
        return self.scorer

    def encoder(self, need: str) -> Encoder:
        raise AssertionError(need)

    def dataset(self, need: str) -> SyntheticDataset:
        raise AssertionError(need)

    def records(self, need: str) -> SyntheticDataset:
        raise AssertionError(need)

    def count_dropped(self, reason: str, amount: int = 1) -> None:
        self.dropped[reason] += amount

    def measure(self, name: str, value: float) -> None:
        raise AssertionError(name)


def one_way(first: str, second: str) -> float:
    return (len(first) + 2 * len(second)) / 100


def augsbert(**changes: object) -> AugSBERT:
    settings = {"sampler": {"name": "bm25", "k": 3}, "cross_encoder": CROSS_ENCODER} | changes
    return AugSBERT.model_validate(settings)


def gold_data() -> SyntheticDataset:
    sentences = [f"the {noun} {verb}" for noun in NOUNS for verb in VERBS]
    records = [
        ScoredPair(sentence1=first, sentence2=second, score=0.5, id=f"gold-{number}")
        for number, (first, second) in enumerate(zip(sentences[::2], sentences[1::2], strict=True))
    ]
    return SyntheticDataset.create(RecordKind.SCORED_PAIR, records)


def generate(configured: AugSBERT, context: Context, *, gold: SyntheticDataset | None = None) -> list[Unit]:
    return list(configured.generate({"gold": gold or gold_data()}, context))


def in_order(units: list[Unit]) -> list[ScoredPair]:
    ordered = sorted(units, key=lambda unit: unit.position)
    return [record for unit in ordered for record in unit.records if isinstance(record, ScoredPair)]


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(labellers, "BATCH_PAIRS", 8)


def test_both_orders_are_scored_once_each_and_averaged() -> None:
    scorer = CountingScorer()

    records = in_order(generate(augsbert(), Context(scorer)))

    assert len(records) > 8
    assert set(scorer.asked.values()) == {1}
    assert len(scorer.asked) == 2 * len(records)
    for record in records:
        forth = one_way(record.sentence1, record.sentence2)
        back = one_way(record.sentence2, record.sentence1)
        assert record.score == pytest.approx((forth + back) / 2, abs=1e-12)


def test_one_order_follows_the_first_appearance_in_gold() -> None:
    scorer = CountingScorer()
    place = {text: index for index, text in enumerate(gold_data().texts)}

    records = in_order(generate(augsbert(both_orders=False), Context(scorer)))

    assert scorer.asked == Counter((record.sentence1, record.sentence2) for record in records)
    assert all(place[record.sentence1] < place[record.sentence2] for record in records)
    assert all(record.score == one_way(record.sentence1, record.sentence2) for record in records)


def test_records_have_their_provenance() -> None:
    gold = gold_data()
    record_of = {text: record.id for record in gold for text in record.texts()}

    for sampler, instruction in (
        ({"name": "bm25", "k": 3}, "bm25 k=3"),
        ({"name": "random", "size": 5}, "random"),
    ):
        records = in_order(generate(augsbert(sampler=sampler, seed=4), Context(CountingScorer())))
        for record in records:
            assert (record.method, record.generator, record.seed) == ("augsbert", "cross-encoder", 4)
            assert record.instruction == instruction
            assert record.source_id == f"{record_of[record.sentence1]}+{record_of[record.sentence2]}"
            assert record.split == "train"


def test_no_gold_pair_is_labelled_and_every_dropped_neighbour_is_counted() -> None:
    gold = gold_data()
    known = {frozenset(record.texts()) for record in gold}
    context = Context(CountingScorer())

    records = in_order(generate(augsbert(), context, gold=gold))

    assert known.isdisjoint(frozenset(record.texts()) for record in records)
    assert context.dropped["gold pair"] > 0
    assert len(records) + context.dropped.total() == 3 * len(gold.texts)


def test_the_order_of_the_data_does_not_depend_on_the_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = in_order(generate(augsbert(), Context(CountingScorer())))

    monkeypatch.setattr(labellers, "BATCH_PAIRS", 1000)

    assert in_order(generate(augsbert(), Context(CountingScorer()))) == expected


def test_each_unit_is_one_pair_at_the_samplers_position() -> None:
    units = generate(augsbert(), Context(CountingScorer()))

    assert sorted(unit.position for unit in units) == list(range(len(units)))
    assert len({unit.key for unit in units}) == len(units)
    assert all(len(unit.records) == 1 for unit in units)


@pytest.mark.parametrize("num_finished", [1, 8, 9, 20])
def test_a_killed_run_resumes_to_the_same_bytes(num_finished: int) -> None:
    undisturbed_context = Context(BatchSensitiveScorer())
    undisturbed = generate(augsbert(), undisturbed_context)
    before = undisturbed[:num_finished]
    context = Context(BatchSensitiveScorer(), frozenset(unit.key for unit in before))

    after = generate(augsbert(), context)

    assert not context.finished_units & {unit.key for unit in after}
    assert in_order([*before, *after]) == in_order(undisturbed)
    assert context.dropped == undisturbed_context.dropped


def test_a_finished_run_scores_no_pair_again() -> None:
    finished = frozenset(unit.key for unit in generate(augsbert(), Context(CountingScorer())))
    scorer = CountingScorer()

    assert generate(augsbert(), Context(scorer, finished)) == []
    assert not scorer.asked


def test_scores_outside_the_scale_are_clipped() -> None:
    class Wide:
        def score(self, pairs: Sequence[tuple[str, str]]) -> np.ndarray:
            return np.where(np.arange(len(pairs)) % 2 == 0, -3.0, 7.0)

    records = in_order(generate(augsbert(both_orders=False), Context(Wide())))

    assert {record.score for record in records} == {0.0, 1.0}


def test_the_seed_decides_the_random_pairs() -> None:
    chosen = [
        in_order(
            generate(augsbert(sampler={"name": "random", "size": 20}, seed=seed), Context(CountingScorer()))
        )
        for seed in (0, 0, 1)
    ]

    assert chosen[0] == chosen[1]
    assert {record.texts() for record in chosen[0]} != {record.texts() for record in chosen[2]}


def test_all_samplers_share_the_cross_encoder() -> None:
    expected = TrainedModel(
        trainer="cross-encoder",
        config=CROSS_ENCODER,
        data=("gold",),
        seed=7,
        evaluator="sts",
        selection="dev",
    )

    for sampler in ({"name": "bm25", "k": 3}, {"name": "random", "size": 9}):
        assert augsbert(sampler=sampler, seed=7).needs() == {"cross_encoder": expected}


def test_dev_is_for_samplers_that_train_a_bi_encoder_though_the_labeller_does_not_learn() -> None:
    searching = {"k": 2, "bi_encoder": {"base": "sandbox/encoder"}}
    judged: dict[str, object] = {"cross_encoder": None, "labeller": {"judge": {}}}
    augsbert(sampler={"name": "semantic-search", **searching}, **judged).check_sources({"gold", "dev"})
    both = augsbert(sampler={"name": "bm25+semantic-search", **searching}, **judged)
    both.check_sources({"gold", "dev"})
    roles = {name: [*need.sources] for name, need in both.needs().items() if isinstance(need, GeneratedData)}
    assert roles == {"bm25": ["gold", "sentences"], "semantic-search": ["gold", "dev", "sentences"]}
    with refused("judge", "dev"):
        augsbert(sampler={"name": "bm25", "k": 2}, **judged).check_sources({"gold", "dev"})


def test_a_sampler_that_finds_only_gold_pairs_is_a_user_error() -> None:
    gold = SyntheticDataset.create(
        RecordKind.SCORED_PAIR, [ScoredPair(sentence1="a fish", sentence2="a bird", score=1.0)]
    )

    with refused("bm25", "k=1", "pair", "gold"):
        generate(augsbert(sampler={"name": "bm25", "k": 1}), Context(CountingScorer()), gold=gold)


@pytest.mark.parametrize(
    "changes",
    [
        {"sampler": {"name": "bm52", "k": 3}},
        {"sampler": {"name": "random", "k": 3}},
        {"sampler": {"k": 3}},
        {"seed": -1},
        {"both_order": True},
    ],
)
def test_a_wrong_configuration_is_refused(changes: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        augsbert(**changes)


def test_configuring_and_planning_import_nothing_heavy() -> None:
    program = (
        "import sys; from synthbench_augsbert import AugSBERT;"
        "AugSBERT(sampler={'name': 'bm25', 'k': 3}, cross_encoder={}).needs();"
        "print(sorted({'numpy', 'scipy', 'torch', 'rank_bm25', 'pyarrow'} & set(sys.modules)))"
    )

    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert found.stdout.strip() == "[]"


def domain(*pairs: tuple[str, str], split: str = "train") -> SyntheticDataset:
    records = [
        ScoredPair(sentence1=first, sentence2=second, score=0.123, split=split, id=f"target-{number}")
        for number, (first, second) in enumerate(pairs)
    ]
    return SyntheticDataset.create(RecordKind.SCORED_PAIR, records)


def adapted(target: SyntheticDataset, context: Context) -> list[Unit]:
    method = AugSBERTDomain.model_validate({"cross_encoder": CROSS_ENCODER})
    return list(method.generate({"gold": gold_data(), "target": target}, context))


def test_target_pairs_are_relabelled_by_the_cross_encoder() -> None:
    target = domain(("long ago", "a boat"), ("far away", "a ship sailed"), ("the dog runs", "a boat"))
    context = Context(CountingScorer())

    records = in_order(adapted(target, context))

    assert [(record.sentence1, record.source_id) for record in records] == [
        ("long ago", "target-0"),
        ("far away", "target-1"),
    ]
    assert [record.score for record in records] == [
        pytest.approx((one_way("long ago", "a boat") + one_way("a boat", "long ago")) / 2),
        pytest.approx((one_way("far away", "a ship sailed") + one_way("a ship sailed", "far away")) / 2),
    ]
    assert context.dropped == {"shares a sentence with the source domain": 1}


def test_tables_say_that_gold_pairs_of_the_target_are_left_out() -> None:
    (note,) = AugSBERTDomain.model_validate({"cross_encoder": CROSS_ENCODER}).table_notes()
    assert note.startswith(
        "augsbert-domain leaves out target pairs with a sentence of the source's gold pairs"
    )


def test_a_target_without_pairs_of_its_own_is_refused() -> None:
    for target in (domain(("the dog runs", "a boat")), domain(("long ago", "a boat"), split="test")):
        with refused("pair", "split", "'train'", "'gold'"):
            adapted(target, Context(CountingScorer()))


def test_the_labeller_is_trained_only_on_the_source_domain() -> None:
    needs = AugSBERTDomain.model_validate({"cross_encoder": CROSS_ENCODER, "seed": 3}).needs()
    trained = needs["cross_encoder"]
    assert isinstance(trained, TrainedModel)
    assert (trained.data, trained.selection, trained.seed) == (("gold",), "dev", 3)


@pytest.mark.parametrize(
    ("sampler", "tells_k", "tells_bm25"),
    [
        ({"name": "bm25", "k": 3}, True, True),
        ({"name": "semantic-search", "k": 3, "bi_encoder": {"base": {"model": "a"}}}, True, False),
        ({"name": "bm25+semantic-search", "k": 3, "bi_encoder": {"base": {"model": "a"}}}, True, True),
        ({"name": "random", "size": 3}, False, False),
        ({"name": "kde", "size": 3}, False, False),
    ],
)
def test_tables_say_how_neighbours_are_counted_and_found(
    sampler: dict[str, object], tells_k: bool, tells_bm25: bool
) -> None:
    method = AugSBERT.model_validate({"sampler": sampler, "cross_encoder": {"base": {"model": "a"}}})
    told = method.table_notes()

    counted = "k counts a sentence's neighbours without the sentence itself"
    assert any(note.startswith(counted) and "k = 3 is k = 2 here" in note for note in told) == tells_k
    assert any("rank-bm25's Okapi" in note for note in told) == tells_bm25


def new_sentences(*texts: str) -> SyntheticDataset:
    records = [Sentence(id=f"s-{number}", sentence=text) for number, text in enumerate(texts)]
    return SyntheticDataset.create(RecordKind.SENTENCE, records)


@pytest.mark.parametrize(
    "sampler", [{"name": "random", "size": 3}, {"name": "bm25", "k": 1}, {"name": "bm25", "k": 3}]
)
def test_new_sentences_are_paired_instead_of_gold_sentences(sampler: dict[str, object]) -> None:
    gold = next(iter(gold_data()))
    new = new_sentences(*gold.texts(), "a whale sings at night", "the whale sings")
    sources = {"gold": gold_data(), "sentences": new}
    method = augsbert(sampler=sampler)
    method.check_data({**sources, "gold": scored(gold_data())})
    records = in_order(list(method.generate(sources, Context(CountingScorer()))))
    ids = {text: record.id for record in new for text in record.texts()}
    assert records
    for record in records:
        first, second = record.texts()
        assert record.source_id == f"{ids[first]}+{ids[second]}"
        assert {first, second} != set(gold.texts())


def test_too_few_new_sentences_are_refused() -> None:
    sources = {"gold": scored(gold_data()), "sentences": new_sentences("one", "two")}
    with refused("k 3 needs more than 3 distinct new sentences", "2"):
        augsbert().check_data(sources)
    with refused("'sentences'", "1 distinct"):
        augsbert().check_data({**sources, "sentences": new_sentences("one", "one")})


def test_selecting_samplers_pair_new_sentences_and_count_them() -> None:
    (need,) = augsbert(sampler={"name": "kde", "size": 9}).needs().values()
    assert isinstance(need, GeneratedData)
    assert need.sources == {"gold": "gold", "dev": "dev", "sentences": "sentences"}
    labelling = augsbert(cross_encoder={"base": {"model": "org/judge"}})
    assert labelling.expected({"gold": 10, "sentences": 100}).num_records == 300
    assert labelling.expected({"gold": 10}).num_records == 60


def scored(data: SyntheticDataset) -> SyntheticDataset:
    """Return the same pairs with scores that differ."""
    pairs = [replace(pair, score=number % 3 / 2) for number, pair in enumerate(data)]
    return SyntheticDataset.create(RecordKind.SCORED_PAIR, pairs)


@pytest.mark.parametrize(
    ("sampler", "version"), [({"name": "bm25", "k": 3}, 2), ({"name": "random", "size": 3}, 1)]
)
def test_only_bm25_has_a_raised_version(sampler: dict[str, object], version: int) -> None:
    assert augsbert(sampler=sampler).version_in_use() == version
