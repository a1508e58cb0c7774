"""Each premise of the sandbox's world does what its description says, and none makes the truth less exact."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from small_experiment import Project
from wording import refused

from synthbench.config.load import load_experiment
from synthbench.pipeline.planning import make_plan
from synthbench.sources.description import Roots
from synthbench.sources.models import WorldSource
from synthbench.worlds.sandbox.events import Event, similarity
from synthbench.worlds.sandbox.parsing import parse, parses
from synthbench.worlds.sandbox.premises import DEFAULT, Premises
from synthbench.worlds.sandbox.realisation import REGISTERS, Wording
from synthbench.worlds.sandbox.sampling import Relation, Scope, Split, draw_event, split_of
from synthbench.worlds.sandbox.sets import (
    duplicates,
    news,
    pairs,
    rankings,
    sentences,
    six_classes,
    triplets,
    two_classes,
)
from synthbench.worlds.sandbox.vocabulary import domain_names, domains

SLOTS = ("number", "attribute", "agent", "action", "object", "place", "time")
WORDS = ("quantity", "attribute", "agent", "action", "object", "place", "time")
# The field of `Wording` that expresses each slot.
TOLD_BY = dict(zip(SLOTS, WORDS, strict=True))
PREMISES = st.builds(
    Premises,
    stories=st.just(0) | st.integers(3, 50),
    retelling=st.floats(0.05, 1),
    usual_words=st.floats(0, 1),
    edits=st.floats(0, 1),
    gold_noise=st.floats(0, 1),
    foreign=st.floats(0, 1),
    origin=st.sampled_from(("sandbox", "elsewhere")),
)
FILE = """\
experiment: small
baseline: all
sources:
  test:
    sandbox: pairs
    split: test
    size: 40
    world:
      SETTING
defaults:
  train: {trainer: none, base: {model: sandbox/encoder}}
  evaluate:
    sts: {evaluator: sts, tasks: [test]}
"""


def scope(split: Split = "train", *names: str, **premises: Any) -> Scope:
    return Scope(split, 0, REGISTERS, names or domain_names(), Premises(**premises))


def drawn(number: int, names: Sequence[str] = (), **premises: Any) -> list[Event]:
    random = Random(0)
    return [draw_event(names or domain_names(), random, Premises(**premises)) for _ in range(number)]


@dataclass(frozen=True)
class DrawnPair:
    sentence1: str
    sentence2: str
    score: float
    relation: Relation
    events: tuple[Event, Event]


def some_pairs(number: int, where: Scope) -> list[DrawnPair]:
    return [
        DrawnPair(pair.sentence1, pair.sentence2, pair.score, Relation(pair.label), events)
        for pair, events in islice(pairs(where), number)
    ]


def read(text: str) -> tuple[Event, Wording]:
    (worded,) = parses(text)
    event, wording = worded.event, worded.wording
    return event, wording


def mean_of_nearest(events: Sequence[Event]) -> float:
    """Return the events' mean similarity to their nearest neighbour."""
    nearest = [
        max(similarity(one, other) for project, other in enumerate(events) if project != index)
        for index, one in enumerate(events)
    ]
    return sum(nearest) / len(nearest)


def errors(found: Sequence[DrawnPair]) -> list[float]:
    return [pair.score - similarity(*pair.events) for pair in found]


# Stories and their retelling.


def test_fewer_stories_give_nearer_neighbours() -> None:
    means = [mean_of_nearest(drawn(150, stories=number)) for number in (2, 20, 500)]
    assert means == sorted(means, reverse=True)
    assert means[0] > means[2] + 0.15


def test_without_stories_events_are_drawn_independently() -> None:
    assert mean_of_nearest(drawn(150, stories=0)) == pytest.approx(
        mean_of_nearest(drawn(150, stories=100_000, retelling=0.0)), abs=0.03
    )
    # Without stories, retelling has no effect.
    assert drawn(50, stories=0, retelling=0.0) == drawn(50, stories=0, retelling=1.0)


def test_a_domain_has_the_configured_number_of_stories_and_a_larger_number_adds_some() -> None:
    def stories(number: int) -> set[tuple[Any, ...]]:
        events = drawn(400, ["sea"], stories=number, retelling=0.0)
        return {tuple(getattr(event, slot) for slot in SLOTS) for event in events}

    assert [len(stories(number)) for number in (1, 3, 8)] == [1, 3, 8]
    assert stories(3) < stories(8)


def test_retelling_is_the_probability_that_a_slot_changes() -> None:
    (story,) = {event.agent for event in drawn(50, ["sea"], stories=1, retelling=0.0)}
    agents = len(domains()["sea"].agents)
    for retelling in (0.5, 1.0):
        found = [event.agent for event in drawn(2000, ["sea"], stories=1, retelling=retelling)]
        # A redrawn agent is by chance the same in 1 of `agents` cases.
        assert found.count(story) / 2000 == pytest.approx(1 - retelling * (1 - 1 / agents), abs=0.04)


def test_a_retold_story_stays_in_its_scene() -> None:
    sea = domains()["sea"]
    scenes = [sea.scene(event.object) for event in drawn(100, ["sea"], stories=1, retelling=1.0)]
    assert all(scene is scenes[0] for scene in scenes)


# Usual words.


def test_with_only_usual_words_equal_actions_have_equal_words() -> None:
    where = scope(usual_words=1.0)
    first = Event("cooking", "two", "young", "chef", "slice", "potatoes", "in the kitchen", "at noon")
    assert {where.tell(first, "captions", Random(seed)) for seed in range(20)} == {
        where.tell(first, "captions", Random(0))
    }
    assert len({scope(usual_words=0.0).tell(first, "captions", Random(seed)) for seed in range(20)}) > 15


def test_different_actions_have_different_usual_words() -> None:
    where = scope(usual_words=1.0)
    found = [
        where.worded(
            Event("cooking", "two", "young", "chef", action, "potatoes", None, None), "captions", Random(0)
        )
        for action in domains()["cooking"].scene("potatoes").actions
    ]
    assert len({told.wording.agent for told in found} | {told.wording.attribute for told in found}) > 2


def test_two_paraphrases_may_differ_in_form_despite_usual_words() -> None:
    """What a paraphrase is paired with would else nearly be itself."""
    found = some_pairs(200, scope(usual_words=1.0))
    paraphrases = [pair for pair in found if pair.relation is Relation.PARAPHRASE]
    forms = [read(pair.sentence1)[1].form == read(pair.sentence2)[1].form for pair in paraphrases]
    assert sum(forms) < 0.5 * len(forms)


# Edits.


def test_an_edited_sentence_keeps_form_and_words_of_agreeing_slots() -> None:
    found = [pair for pair in some_pairs(300, scope(edits=1.0)) if pair.events[0] != pair.events[1]]
    kept = []
    for pair in found:
        (first, words), (second, other_words) = read(pair.sentence1), read(pair.sentence2)
        kept.append(words.form == other_words.form)
        # Two domains may have other words for a concept that they share.
        is_one_domain = first.domain == second.domain
        for slot in SLOTS if is_one_domain and words.form == other_words.form else ():
            if getattr(first, slot) == getattr(second, slot):
                assert getattr(words, TOLD_BY[slot]) == getattr(other_words, TOLD_BY[slot]), pair
    # Some forms do not suit the other event: one that begins with a place needs a place.
    assert sum(kept) > 0.6 * len(kept)


def test_an_edited_sentence_of_another_domain_has_that_domains_words() -> None:
    """Some domains have "juvenile" for what others call "young" or "youthful" only."""
    where = scope(edits=1.0, usual_words=0.0)
    random = Random(0)
    horse = Event("animals", "one", "young", "horse", "attack", "a frog", None, None)
    waiter = Event("cooking", "one", "young", "waiter", "taste", "some porridge", None, None)
    for _ in range(50):
        first = where.worded(horse, "captions", random)
        assert parse(where.worded_beside(waiter, first, "captions", random).text) == waiter


def test_without_edits_the_second_sentence_chooses_its_own_words() -> None:
    found = [
        (read(pair.sentence1)[1], read(pair.sentence2)[1])
        for pair in some_pairs(300, scope(edits=0.0, usual_words=0.0))
        if pair.relation is Relation.HARD_NEGATIVE
    ]
    assert sum(one.form == other.form for one, other in found) < 0.35 * len(found)


def test_edits_make_word_overlap_less_informative() -> None:
    def shared(edits: float) -> float:
        found = [
            pair for pair in some_pairs(300, scope(edits=edits)) if pair.relation is Relation.HARD_NEGATIVE
        ]
        words = [[set(text.lower().split()) for text in (p.sentence1, p.sentence2)] for p in found]
        return sum(len(one & other) / len(one | other) for one, other in words) / len(words)

    assert shared(1.0) > shared(0.0) + 0.15


# The error of the annotators.


def test_train_and_dev_scores_include_the_annotators_error() -> None:
    for split in ("train", "dev"):
        found = [
            pair
            for pair in some_pairs(600, scope(split, gold_noise=0.1))
            if 0.3 < similarity(*pair.events) < 0.7
        ]
        off = errors(found)
        assert len(off) > 100
        assert sum(off) / len(off) == pytest.approx(0, abs=0.03)
        assert math.sqrt(sum(error**2 for error in off) / len(off)) == pytest.approx(0.1, abs=0.02)


def test_scores_stay_within_their_scale() -> None:
    scores = [pair.score for pair in some_pairs(200, scope(gold_noise=1.0))]
    assert (min(scores), max(scores)) == (0.0, 1.0)


def test_test_scores_are_exact_and_without_noise_all_scores_are() -> None:
    assert set(errors(some_pairs(200, scope("test", gold_noise=1.0)))) == {0.0}
    for split in ("train", "dev"):
        assert set(errors(some_pairs(200, scope(split, gold_noise=0.0)))) == {0.0}


def test_the_annotators_error_changes_no_sentence() -> None:
    def texts(error: float) -> list[tuple[str, str]]:
        return [(pair.sentence1, pair.sentence2) for pair in some_pairs(60, scope(gold_noise=error))]

    assert texts(0.0) == texts(0.3)


# Foreign events.


def test_with_only_foreign_events_all_domains_occur() -> None:
    assert {event.domain for event in drawn(200, ["sea"])} == {"sea"}
    assert {event.domain for event in drawn(400, ["sea"], foreign=1.0)} == set(domain_names())
    share = sum(event.domain != "sea" for event in drawn(1000, ["sea"], foreign=0.5)) / 1000
    assert share == pytest.approx(0.5 * 14 / 15, abs=0.05)


def test_partners_have_their_relation_even_in_foreign_events() -> None:
    for pair in some_pairs(200, scope("train", "sea", "music", foreign=1.0)):
        one, other = (event.domain for event in pair.events)
        assert (one != other) == (pair.relation is Relation.UNRELATED)


def test_unrelated_partners_of_foreign_events_may_be_of_any_domain() -> None:
    drawn = some_pairs(600, scope("train", "sea", "music", foreign=1.0))
    unrelated = [pair for pair in drawn if pair.relation is Relation.UNRELATED]
    assert {event.domain for pair in unrelated for event in pair.events[1:]} == set(domain_names())


def test_classes_are_exact_even_for_foreign_events() -> None:
    for each in islice(six_classes(scope(foreign=1.0)), 60):
        assert read(each.sentence)[0].domain == each.label
    for each in islice(two_classes(scope(foreign=1.0)), 60):
        assert news(read(each.sentence)[0]) == each.label


# Where texts are from.


def test_the_other_world_has_other_stories_and_usual_words_but_equal_similarities() -> None:
    here, there = (
        {tuple(getattr(event, slot) for slot in SLOTS) for event in drawn(6000, origin=origin, retelling=0.0)}
        for origin in ("sandbox", "elsewhere")
    )
    # Two stories may differ in their polarity alone.
    assert len(here) == pytest.approx(300, abs=2)
    assert len(there) == pytest.approx(300, abs=2)
    assert not here & there

    event = Event("cooking", "two", "young", "chef", "slice", "potatoes", "in the kitchen", "at noon")
    told = {
        scope(origin=origin, usual_words=1.0).tell(event, "captions", Random(0))
        for origin in ("sandbox", "elsewhere")
    }
    assert len(told) == 2
    assert {parse(text) for text in told} == {event}


# Whatever the premises.


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(PREMISES, st.sampled_from(("train", "dev", "test")))
def test_true_scores_are_exact_whatever_the_premises(premises: Premises, split: Split) -> None:
    where = Scope(split, 0, REGISTERS, domain_names(), premises)
    for pair in some_pairs(10, where):
        events = parse(pair.sentence1), parse(pair.sentence2)
        assert events == pair.events
        assert {split_of(event) for event in pair.events} == {split}
        assert 0 <= pair.score <= 1
        if split == "test":
            assert pair.score == similarity(*pair.events)


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(PREMISES)
def test_a_longer_stream_starts_like_a_shorter_one_whatever_the_premises(premises: Premises) -> None:
    where = Scope("train", 0, REGISTERS, domain_names(), premises)
    for stream in (pairs, sentences, triplets, duplicates):
        longer = list(islice(stream(where), 6))
        assert longer[:3] == list(islice(stream(where), 3))


@pytest.mark.parametrize(
    "premises",
    [
        {"usual_words": 1.0},
        {"usual_words": 1.0, "edits": 1.0},
        {"stories": 2, "retelling": 0.1, "usual_words": 1.0},
        {"stories": 0, "foreign": 1.0},
    ],
    ids=str,
)
def test_every_set_can_be_drawn_in_an_extreme_world(premises: dict[str, Any]) -> None:
    where = scope("train", **premises)
    found: list[Any] = [
        *islice(triplets(where), 10),
        *islice(duplicates(where), 8),
        *islice(rankings(where, 20), 2),
        *islice(two_classes(where), 10),
        *islice(six_classes(where), 12),
    ]
    assert len(found) == 42


def test_usual_words_prevent_triplets_with_only_denied_events() -> None:
    """A denial alone has two spellings where all words are usual."""
    anchors = [read(each.anchor)[0] for each in islice(triplets(scope(usual_words=1.0)), 100)]
    assert sum(event.is_negative for event in anchors) < 25


def test_a_world_too_small_for_a_split_is_an_error() -> None:
    where = scope("test", "sea", stories=1, retelling=0.0)
    with refused("10", "000"):
        list(islice(pairs(where), 20))


# As settings of an experiment file.


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path, tmp_path / "home")


@pytest.mark.parametrize(
    ("setting", "fault"),
    [
        ("stories: -1", "stories: must be at least 0, is -1"),
        ("stories: 100001", "stories: must be at most 100000, is 100001"),
        ("retelling: 1.5", "retelling: must be at most 1, is 1.5"),
        ("usual_words: -0.1", "usual_words: must be at least 0, is -0.1"),
        ("edits: 2", "edits: must be at most 1, is 2"),
        ("gold_noise: -1", "gold_noise: must be at least 0, is -1"),
        ("gold_noise: .nan", "gold_noise: must be a finite number, is NaN"),
        ("foreign: 7", "foreign: must be at most 1, is 7"),
        ("origin: here", "origin: must be 'sandbox' or 'elsewhere', is \"here\"; did you mean 'elsewhere'?"),
        ("storeys: 3", "storeys: unknown key; did you mean 'stories'?"),
        ('edits: "1"', 'edits: must be a number, is "1"'),
    ],
)
def test_a_premise_out_of_range_is_refused_in_one_line(project: Project, setting: str, fault: str) -> None:
    project.file.write_text(FILE.replace("SETTING", setting), encoding="utf-8")
    called = project.call("validate", project.file)
    assert (called.code, called.out) == (2, "")
    assert called.errors == [f"{project.file}:9: sources.test.world.{fault}"]


def identity(project: Project, setting: str) -> str:
    """Return the identity of the stage that reads the set whose world is so."""
    project.file.write_text(FILE.replace("world:\n      SETTING", f"world: {setting}"), encoding="utf-8")
    stages = make_plan(load_experiment(project.file)).stages.values()
    (found,) = (stage.identity for stage in stages if stage.kind == "source")
    return found


def test_each_premise_is_in_a_sets_identity_unless_it_has_its_default(
    project: Project,
) -> None:
    others = {
        "stories": "0",
        "retelling": "0.3",
        "usual_words": "0.5",
        "edits": "0",
        "gold_noise": "0.1",
        "foreign": "1",
        "origin": "elsewhere",
    }
    assert others.keys() == Premises.model_fields.keys()
    plain = identity(project, "{}")
    assert len({plain, *(identity(project, f"{{{name}: {value}}}") for name, value in others.items())}) == 8
    written_out = ", ".join(f"{name}: {value}" for name, value in DEFAULT.model_dump().items())
    assert identity(project, f"{{{written_out}}}") == plain


def test_a_set_is_drawn_from_the_world_described_in_its_source() -> None:
    description = {"sandbox": "pairs", "split": "train", "size": 10, "world": {"gold_noise": 0, "stories": 3}}
    data = WorldSource.model_validate(description).load(Roots())
    expected = some_pairs(10, scope("train", gold_noise=0.0, stories=3))
    assert list(data.column("score")) == [pair.score for pair in expected]
    assert list(data.column("sentence1")) == [pair.sentence1 for pair in expected]


def test_the_words_in_these_tests_exist_in_the_vocabulary() -> None:
    assert {"form", "negation", *WORDS} == {field.name for field in fields(Wording)}
