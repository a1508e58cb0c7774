"""Every set has exact, balanced labels that no trivial cue predicts."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice

import numpy as np
import pytest
from scipy.stats import spearmanr
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from wording import refused

from synthbench.data.records import Ranking, Sentence
from synthbench.worlds.sandbox.events import Event, similarity
from synthbench.worlds.sandbox.parsing import parse
from synthbench.worlds.sandbox.realisation import REGISTERS
from synthbench.worlds.sandbox.sampling import Distinct, Scope, Split, split_of
from synthbench.worlds.sandbox.sets import (
    BAD_ACTIONS,
    GOOD_ACTIONS,
    RELEVANT,
    SIX_CLASSES,
    duplicates,
    news,
    object_splits,
    pairs,
    rankings,
    sentences,
    six_classes,
    topic_of,
    triplets,
    two_classes,
)
from synthbench.worlds.sandbox.source import HELD_OUT, KNOWN_BY_NAME, domain_groups
from synthbench.worlds.sandbox.vocabulary import domain_names, domains


def scope(split: Split = "test", *names: str, seed: int = 0) -> Scope:
    return Scope(split, seed, REGISTERS, names or domain_names())


def read(text: str) -> Event:
    event = parse(text)
    assert event is not None, text
    return event


def mean_correlation(found: Sequence[Ranking], cue: Callable[[Ranking], Iterable[int]]) -> float:
    """The Spearman correlation of a cue with the grades, its mean over the queries; 0 where all are equal."""
    each = [spearmanr(list(cue(one)), one.grades).statistic for one in found]
    return float(np.mean(np.nan_to_num(each)))


def words_alone(labelled: Callable[[Scope], Iterator[Sentence]]) -> float:
    """The accuracy on test of a logistic regression on the counts of words, trained on 1,000 sentences."""
    train = list(islice(labelled(scope("train")), 1000))
    test = list(islice(labelled(scope("test")), 500))
    words = CountVectorizer(token_pattern=r"[\w'-]+")
    counts = words.fit_transform([each.sentence for each in train])
    model = LogisticRegression(max_iter=1000).fit(counts, [each.label for each in train])
    counts = words.transform([each.sentence for each in test])
    return float(model.score(counts, [each.label for each in test]))


def test_triplets_hold_a_paraphrase_and_a_hard_negative() -> None:
    for each in islice(triplets(scope()), 300):
        anchor, positive, negative = read(each.anchor), read(each.positive), read(each.negative)
        assert anchor == positive
        assert each.anchor != each.positive
        assert anchor.domain == negative.domain
        assert 0.2 < similarity(anchor, negative) < 0.9


@pytest.mark.parametrize("num_candidates", [2, 20, 100])
def test_grades_equal_the_exact_similarities(num_candidates: int) -> None:
    for each in islice(rankings(scope(), num_candidates), 10):
        query = read(each.query)
        assert each.grades == tuple(similarity(query, read(text)) for text in each.candidates)
        assert len({each.query, *each.candidates}) == num_candidates + 1


def test_one_of_ten_candidates_is_relevant_and_three_are_hard_negatives() -> None:
    for each in islice(rankings(scope(), 10), 50):
        assert sum(grade == 1 for grade in each.grades) == 1
        assert sum(grade >= RELEVANT for grade in each.grades) == 1
        assert sum(read(text).domain == read(each.query).domain for text in each.candidates) == 7


def test_one_domain_has_related_candidates_instead_of_unrelated_ones() -> None:
    each = next(rankings(scope("test", "sea"), 20))
    assert {read(text).domain for text in each.candidates} == {"sea"}


def test_neither_position_nor_length_reveals_the_ranking() -> None:
    found = list(islice(rankings(scope(), 20), 100))
    assert abs(mean_correlation(found, lambda each: range(20))) < 0.1
    assert abs(mean_correlation(found, lambda each: map(len, each.candidates))) < 0.1

    def closeness(each: Ranking) -> list[int]:
        return [-abs(len(text.split()) - len(each.query.split())) for text in each.candidates]

    # Slightly correlated: a sentence that leaves slots out is shorter and less similar.
    assert mean_correlation(found, closeness) < 0.4


def test_duplicates_share_an_event_and_other_pairs_only_the_topic() -> None:
    found = list(islice(duplicates(scope()), 400))
    for each in found:
        first, second = read(each.sentence1), read(each.sentence2)
        assert (each.score, each.label) == ((1, "duplicate") if first == second else (0, "different"))
        assert topic_of(first) == topic_of(second) == each.subset
    assert sum(each.score for each in found) == 200
    assert len({each.subset for each in found}) == sum(len(domain.scenes) for domain in domains().values())


def test_source_and_target_domain_share_no_topic() -> None:
    source = {each.subset for each in islice(duplicates(scope("test", "business")), 100)}
    target = {each.subset for each in islice(duplicates(scope("test", "science")), 100)}
    assert source == {"business/a factory", "business/a profit", "business/a smartphone"}
    assert target == {"science/a comet", "science/a telescope"}


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("A minister approves a law.", "good news"),
        ("A minister does not approve a law.", "bad news"),
        ("A minister rejects a law.", "bad news"),
        ("A minister doesn't reject a law.", "good news"),
        ("A minister discusses a law.", None),
    ],
)
def test_the_news_class_depends_on_action_and_negation(text: str, label: str | None) -> None:
    assert news(read(text)) == label


def test_two_classes_are_exact_and_balanced_in_every_domain_and_polarity() -> None:
    found = [(read(each.sentence), each.label) for each in islice(two_classes(scope()), 2000)]
    assert all(news(event) == label for event, label in found)
    for value in (*GOOD_ACTIONS, True, False):
        labels = [label for event, label in found if value in (event.domain, event.is_negative)]
        assert 0.4 < labels.count("good news") / len(labels) < 0.6, value


def test_the_actions_of_the_two_classes_come_from_the_vocabulary() -> None:
    for kind in (GOOD_ACTIONS, BAD_ACTIONS):
        assert all(actions <= domains()[name].actions.keys() for name, actions in kind.items())
    assert GOOD_ACTIONS.keys() == BAD_ACTIONS.keys()


def test_no_single_word_separates_the_two_classes() -> None:
    assert 0.5 < words_alone(two_classes) < 0.75


def test_six_classes_are_exact_and_balanced() -> None:
    found = [(read(each.sentence), each.label) for each in islice(six_classes(scope()), 600)]
    assert all(event.domain == label for event, label in found)
    assert Counter(label for _, label in found) == dict.fromkeys(SIX_CLASSES, 100)


def test_no_object_of_six_classes_is_in_two_splits() -> None:
    splits: tuple[Split, ...] = ("train", "dev", "test")
    objects = [
        {read(each.sentence).object for each in islice(six_classes(scope(split)), 600)} for split in splits
    ]
    assert sum(map(len, objects)) == len(set.union(*objects))
    for name in SIX_CLASSES:
        for scene in domains()[name].scenes:
            assert {object_splits(name)[each] for each in scene.objects} == set(splits)


def test_memorised_words_do_not_solve_the_six_classes() -> None:
    assert 0.5 < words_alone(six_classes) < 0.9


@pytest.mark.parametrize("split", ["train", "dev", "test"])
def test_every_sentence_of_every_set_belongs_to_the_sets_split(split: Split) -> None:
    here = scope(split)
    found = [
        *islice(triplets(here), 60),
        *islice(rankings(here, 10), 20),
        *islice(duplicates(here), 60),
        *(pair for pair, _ in islice(pairs(here), 60)),
        *(sentence for sentence, _ in islice(sentences(here), 60)),
        *islice(two_classes(here), 60),
        *islice(six_classes(here), 60),
    ]
    assert {split_of(read(text)) for each in found for text in each.texts()} == {split}


def test_the_groups_of_domains_are_disjoint_and_complete() -> None:
    groups = domain_groups()
    assert groups["held-out"] == (HELD_OUT,)
    assert groups["known-by-name"] == (KNOWN_BY_NAME,)
    assert sorted(name for names in groups.values() for name in names) == sorted(domain_names())


def test_an_exhausted_set_is_an_error() -> None:
    distinct = Distinct()
    assert distinct.draw(lambda: 1, hash) == 1
    with refused("1"):
        distinct.draw(lambda: 1, hash)


def test_a_domain_without_news_is_refused() -> None:
    with refused("sport"):
        next(two_classes(scope("test", "medicine")))
