"""Items of an audit: annotators do not see the intended labels."""

from collections import Counter
from collections.abc import Sequence

import pytest
from wording import refused

from synthbench.auditing.items import Items, items_of
from synthbench.data.dataset import SyntheticDataset
from synthbench.data.records import Failure, Pair, Ranking, Record, RecordKind, ScoredPair, Sentence, Triplet


def scored(*scores: float) -> SyntheticDataset:
    pairs = [
        ScoredPair(sentence1=f"a{position}", sentence2=f"b{position}", score=score)
        for position, score in enumerate(scores)
    ]
    return SyntheticDataset.create(RecordKind.SCORED_PAIR, pairs)


def intended(items: Items) -> list[str]:
    return [item.intended for item in items.items]


def test_few_scores_are_columns_of_their_own() -> None:
    items = items_of(scored(0.9, 0, 1, 0.1, 0.5, 0.9))
    assert items.intentions == ("0", "0.1", "0.5", "0.9", "1")
    assert intended(items) == ["0.9", "0", "1", "0.1", "0.5", "0.9"]
    assert [item.score for item in items.items] == [0.9, 0.0, 1.0, 0.1, 0.5, 0.9]


def test_many_scores_are_binned_and_an_edge_belongs_to_the_upper_bin() -> None:
    items = items_of(scored(0, 0.2, 0.24, 0.25, 0.3, 0.89, 0.9, 0.95, 1))
    assert items.intentions == ("0 to 0.25", "0.25 to 0.5", "0.5 to 0.9", "0.9 to 1")
    assert [intended(items).count(name) for name in items.intentions] == [3, 2, 1, 3]


def test_scores_with_the_same_rounded_text_share_a_column() -> None:
    assert items_of(scored(0.3, 0.1 + 0.2, 0.9)).intentions == ("0.3", "0.9")


def test_bins_without_scores_are_no_columns() -> None:
    assert items_of(scored(*(0.9 + position / 100 for position in range(10)))).intentions == ("0.9 to 1",)


@pytest.mark.parametrize(
    ("record", "texts"),
    [
        (Pair(anchor="a", positive="p"), [("a", "p", "positive")]),
        (Triplet(anchor="a", positive="p", negative="n"), [("a", "p", "positive"), ("a", "n", "negative")]),
        (
            Ranking(query="q", candidates=("c", "d"), grades=(1.0, 0.5)),
            [("q", "c", "1"), ("q", "d", "0.5")],
        ),
        (Sentence(sentence="s", label="sport"), [("s", "all")]),
    ],
)
def test_each_record_kind_gives_its_items(record: Record, texts: Sequence[tuple[str, ...]]) -> None:
    items = items_of(SyntheticDataset.create(record.kind, [record]))
    assert [(*item.texts, item.intended) for item in items.items] == texts
    assert len(items.text_names) == len(items.items[0].texts)


def test_ids_are_opaque_and_change_with_the_text() -> None:
    def identity(text: str) -> str:
        triplet = Triplet(id="negative-0.1", anchor="a", positive=text, negative="n")
        return items_of(SyntheticDataset.create(RecordKind.TRIPLET, [triplet])).items[0].id

    assert identity("p") == identity("p") != identity("q")
    assert "negative" not in identity("p")
    # A spreadsheet reads 12e45678 as a number.
    assert identity("p").startswith("q")


def test_a_sample_depends_on_its_seed_and_not_on_the_order_of_the_data() -> None:
    items = items_of(scored(*(position / 100 for position in range(100))))
    drawn = items.sample(20, 1)
    assert drawn == items.sample(20, 1) != items.sample(20, 2)
    assert len({item.id for item in drawn.items}) == 20
    whole = items.sample(None, 0)
    assert whole.items != items.items
    assert {item.id for item in whole.items} == {item.id for item in items.items}


def test_a_sample_larger_than_the_data_is_refused() -> None:
    with refused("4", "3"):
        items_of(scored(0, 0, 0)).sample(4, 0)


def test_each_label_is_sampled_equally_and_a_rare_label_completely() -> None:
    items = items_of(scored(*[0.0] * 30, *[0.9] * 50, 0.1 + 0.2))
    drawn = items.sample_of_each(10, 1)
    assert Counter(intended(drawn)) == {"0": 10, "0.9": 10, "0.3": 1}
    assert drawn.intentions == ("0", "0.3", "0.9")
    assert intended(drawn) != sorted(intended(drawn))
    assert drawn == items.sample_of_each(10, 1) != items.sample_of_each(10, 2)
    assert items.sample_of_each(None, 1) == items.sample(None, 1)


def test_data_sets_with_nothing_to_judge_are_refused() -> None:
    with refused("records"):
        items_of(scored())
    with refused("failure"):
        items_of(SyntheticDataset.create(RecordKind.FAILURE, [Failure(reason="refused")]))
