import pytest

from synthbench.recommending.known import Known
from synthbench.recommending.phases import Contender, Contest, PhaseRow

SYNCSE = {
    "data": {"triplets": {"method": "syncse-partial", "sources": {"sentences": "sentences"}}},
    "train": {"trainer": "bi-encoder", "base": {"model": "sandbox/encoder"}, "learning_rate": 1e-3},
}
THEN_GOLD = {
    "data": {"gold": {"source": "gold"}},
    "train": {"trainer": "bi-encoder", "starts_from": "syncse", "selection": {"sources": ["dev"]}},
}
GOLD = {"data": {"gold": {"source": "gold"}}, "train": {"trainer": "bi-encoder"}}


@pytest.fixture
def study() -> Contest:
    reads = {"sentences": 1000}
    contenders = [
        Contender("gold-only", GOLD, {}, rates=(1e-3,), rate=1e-3),
        Contender("syncse", SYNCSE, reads, rates=(3e-4, 1e-3), rate=1e-3),
        Contender("then-gold", THEN_GOLD, reads, starts_from="syncse", rates=(3e-4, 1e-3), rate=3e-4),
    ]
    long = {
        "experiment": "tickets",
        "llm": "sandbox",
        "sources": {name: {"file": f"{name}.csv"} for name in ("sentences", "gold", "dev", "test")},
        "defaults": {"evaluate": {"main": {"evaluator": "sts", "tasks": ["test"], "exclude": ["gold"]}}},
    }
    return Contest(long, {each.name: each for each in contenders}, "gold-only", usd=100.0)


def test_recipes_that_learn_from_the_same_data_are_one_group(study: Contest) -> None:
    assert study.groups == {"gold-only": ("gold-only",), "syncse": ("syncse", "then-gold")}
    assert study.group_of("then-gold") == "syncse"


def test_what_steps_make_of_the_same_data_is_one_group(study: Contest) -> None:
    part = {**SYNCSE["data"]["triplets"], "prepare": [{"step": "drop-duplicates"}]}
    other = Contender("cleaned", {**SYNCSE, "data": {"triplets": part}}, {"sentences": 1000})
    found = Contest(study.long, {**study.contenders, "cleaned": other}, "gold-only", usd=100.0)
    assert found.group_of("cleaned") == "syncse"


def test_a_row_brings_the_row_that_it_starts_from(study: Contest) -> None:
    rows = study.with_starts([PhaseRow("gold-only"), PhaseRow("then-gold", 300)])
    assert [row.name for row in rows] == ["gold-only", "syncse-300", "then-gold-300"]


def test_a_phase_scores_rows_on_dev_and_never_on_the_test_set(study: Contest) -> None:
    document = study.phase(
        "pilot", study.with_starts([PhaseRow("gold-only"), PhaseRow("then-gold", 300)]), seeds=[0]
    )
    assert document["experiment"] == "tickets-pilot"
    assert document["defaults"] == {"evaluate": {"main": {"evaluator": "sts", "tasks": ["dev"]}}}
    assert document["sources"] == {
        "gold": {"file": "gold.csv"},
        "dev": {"file": "dev.csv"},
        "sentences-300": {"file": "sentences.csv", "sample": {"size": 300, "seed": 0}},
    }
    assert document["variants"]["syncse-300"]["data"]["triplets"]["sources"] == {"sentences": "sentences-300"}
    assert document["variants"]["then-gold-300"]["train"]["starts_from"] == "syncse-300"
    assert document["variants"]["then-gold-300"]["train"]["learning_rate"] == 3e-4


def test_all_records_are_read_without_a_sample(study: Contest) -> None:
    document = study.phase("pilot", [PhaseRow("syncse", 1000)])
    assert document["sources"] == {"sentences": {"file": "sentences.csv"}, "dev": {"file": "dev.csv"}}


def test_a_tried_rate_is_in_the_row_and_in_its_name(study: Contest) -> None:
    rows = study.with_starts([PhaseRow("then-gold", 300, 1e-3)])
    document = study.phase("rates", rows)
    assert list(document["variants"]) == ["syncse-300-rate-0.001", "then-gold-300-rate-0.001"]
    chosen = study.with_rates({"syncse": 3e-4}).phase("pilot", [PhaseRow("syncse", 300)])
    assert chosen["variants"]["syncse-300"]["train"]["learning_rate"] == 3e-4


def test_the_final_file_has_the_names_of_recipes_and_the_test_set(study: Contest) -> None:
    document = study.final(study.with_starts([PhaseRow("gold-only"), PhaseRow("then-gold", 300)]))
    assert list(document["variants"]) == ["gold-only", "syncse", "then-gold"]
    assert document["variants"]["then-gold"]["train"]["starts_from"] == "syncse"
    assert document["defaults"]["evaluate"]["main"]["tasks"] == ["test"]


def test_duplicates_are_scored_on_dev_without_a_threshold(study: Contest) -> None:
    long = {
        **study.long,
        "defaults": {"evaluate": {"main": {"evaluator": "pairs", "tasks": ["test"], "dev": ["dev"]}}},
    }
    found = Contest(long, study.contenders, "gold-only", 100.0).phase("pilot", [PhaseRow("gold-only")])
    expected = {"evaluator": "pairs", "measure": "average_precision", "tasks": ["dev"]}
    assert found["defaults"]["evaluate"]["main"] == expected


def test_with_a_recipe_all_that_start_from_it_are_left_out_in_any_order() -> None:
    starts = {"gold-only": "", "third": "second", "second": "first", "first": "", "other": ""}
    contenders = {name: Contender(name, {}, {}, starts_from=first) for name, first in starts.items()}
    known = Known(Contest({}, contenders, "gold-only", usd=1.0))
    known.leave_out(["first"], "its runs failed")
    assert list(known.study.contenders) == ["gold-only", "other"]
