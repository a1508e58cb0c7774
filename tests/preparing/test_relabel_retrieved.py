"""`relabel-retrieved`: a query's best passage among its neighbours, by rankings that are fused."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from applying import Sources, apply_steps
from pydantic import ValidationError
from wording import refused

from synthbench.base.frozen import in_identity
from synthbench.data.dataset import SyntheticDataset
from synthbench.data.records import Pair, RecordKind, RetrievalText, Sentence, Triplet
from synthbench.llm.client import LLM
from synthbench.llm.logprobs import TokenLogprob
from synthbench.llm.requests import ChatAnswer
from synthbench.plugins.labellers import Labeller, Verdict
from synthbench.preparing.relabelling import RelabelRetrieved

RANKING = {"ready_cross_encoder": {"base": {"model": "any"}}, "both_orders": False}
WORDS = ("apple", "pear", "plum", "fig")


def queries(*positives: str) -> SyntheticDataset:
    records = [
        Pair(id=str(row), anchor=f"query {row} {' '.join(WORDS)}", positive=text, source_id=f"p{row}")
        for row, text in enumerate(positives)
    ]
    return SyntheticDataset.create(RecordKind.PAIR, records)


def step(**options: Any) -> RelabelRetrieved:
    return RelabelRetrieved.model_validate_json(json.dumps({"rankings": [RANKING], **options}))


@pytest.fixture
def scores(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Sets the scores of passages, a table for each ranking; None: an unclear answer."""

    def sets(*tables: dict[str, float | None]) -> None:
        def own_scores(self: Labeller, number: int, texts: Any, key: str, context: Any) -> Any:
            table = tables[int(key.rpartition(".")[2])]
            return ((index, Verdict(table[texts(index)[1]])) for index in range(number))

        monkeypatch.setattr(Labeller, "own_scores", own_scores)

    return sets


def test_the_best_candidate_becomes_the_positive_and_the_worst_the_negative(scores: Any) -> None:
    scores({"apple pie": 0.2, "pear tart": 0.9, "plum cake": 0.1})
    (found,) = apply_steps(
        queries("apple pie"), [step(source="corpus")], {"corpus": corpus("pear tart", "plum cake")}
    )
    assert isinstance(found, Triplet)
    assert (found.positive, found.negative, found.former_positive) == ("pear tart", "plum cake", "apple pie")
    assert (found.id, found.source_id) == ("0", "p0")


def corpus(*texts: str) -> SyntheticDataset:
    return SyntheticDataset.create(RecordKind.SENTENCE, [Sentence(sentence=text) for text in texts])


def test_rankings_are_fused_by_the_sum_of_their_reciprocal_ranks(scores: Any) -> None:
    """Ranks (1, 3), (2, 1), (3, 2): 1 + 1/3, 1/2 + 1, 1/3 + 1/2."""
    scores(
        {"apple pie": 0.9, "pear tart": 0.5, "plum cake": 0.1},
        {"apple pie": 0.1, "pear tart": 0.9, "plum cake": 0.5},
    )
    made = apply_steps(queries("apple pie", "pear tart", "plum cake"), [step(rankings=[RANKING, RANKING])])
    assert [(one.positive, one.negative) for one in made] == [("pear tart", "plum cake")] * 3
    assert [one.former_positive for one in made] == ["apple pie", "pear tart", "plum cake"]
    assert made.manifest.measured == {"relabel-retrieved: share of positives changed": pytest.approx(2 / 3)}


def test_on_a_tie_the_querys_own_passage_stays(scores: Any) -> None:
    scores({"apple pie": 1.0, "pear tart": 1.0, "plum cake": 0.0})
    made = apply_steps(queries("pear tart", "apple pie", "plum cake"), [step()])
    assert [one.positive for one in made][:2] == ["pear tart", "apple pie"]


def test_equal_sums_are_a_tie_though_they_differ_in_their_last_bits(scores: Any) -> None:
    """1/2 + 1/6 + 1 and 1 + 1/2 + 1/6, added from left to right."""
    ranks = [(2, 6, 1), (1, 2, 6), (6, 1, 5), (3, 3, 2), (4, 4, 3), (5, 5, 4)]
    texts = [f"apple {number}" for number in range(6)]
    scores(*({text: -rank[row] for text, rank in zip(texts, ranks, strict=True)} for row in range(3)))
    (found,) = apply_steps(
        queries(texts[0]), [step(source="corpus", rankings=[RANKING] * 3)], {"corpus": corpus(*texts[1:])}
    )
    assert found.positive == texts[0]


def test_the_own_passage_is_a_candidate_though_the_search_does_not_find_it(scores: Any) -> None:
    scores({"zzz": 0.9, "pear tart": 0.5})
    (found,) = apply_steps(
        queries("zzz"), [step(source="corpus", number=1)], {"corpus": corpus("pear tart", "x")}
    )
    assert (found.positive, found.negative) == ("zzz", "pear tart")


def test_candidates_without_a_clear_score_are_left_out(scores: Any) -> None:
    scores({"apple pie": None, "pear tart": 0.5, "plum cake": 0.1})
    (found,) = apply_steps(
        queries("apple pie"), [step(source="corpus")], {"corpus": corpus("pear tart", "plum cake")}
    )
    assert (found.positive, found.negative) == ("pear tart", "plum cake")
    scores({"apple pie": 0.5, "pear tart": None, "plum cake": None})
    made = apply_steps(
        queries("apple pie"), [step(source="corpus")], {"corpus": corpus("pear tart", "plum cake")}
    )
    assert made.manifest.dropped == {"relabel-retrieved: fewer than two passages have a clear rank": 1}


def test_a_drawn_negative_is_another_candidate_and_the_same_in_every_order(scores: Any) -> None:
    names = [f"{word} {row}" for row, word in enumerate(WORDS)]
    scores(dict(zip(names, (0.9, 0.8, 0.7, 0.1), strict=True)))
    data = queries(*names)
    found = {one.id: one.negative for one in apply_steps(data, [step(negative="drawn")])}
    again = apply_steps(data.with_records(list(data)[::-1]), [step(negative="drawn")])
    assert {one.id: one.negative for one in again} == found
    assert len(set(found.values())) > 1
    assert names[0] not in found.values()


def test_an_encoder_finds_the_neighbours_by_cosine(scores: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    class Vectors:
        def encode(self, texts: Sequence[str]) -> np.ndarray:
            near = {"near": (1.0, 0.1), "far": (0.0, 1.0), "own": (0.5, 0.5)}
            return np.array([near.get(text, (1.0, 0.0)) for text in texts], np.float32)

    monkeypatch.setattr(Sources, "encoder", lambda self, need: Vectors(), raising=False)
    scores({"near": 0.1, "own": 0.5, "far": 0.9})
    (found,) = apply_steps(
        queries("own"),
        [step(source="corpus", number=1, encoder={"base": {"model": "any"}})],
        {"corpus": corpus("far", "near")},
    )
    assert (found.positive, found.negative) == ("own", "near")


def test_a_corpus_gives_its_passages_and_not_its_queries(scores: Any) -> None:
    texts = [
        RetrievalText(id="p", text="pear tart"),
        RetrievalText(id="q", text="apple query", judged=("p",), grades=(1.0,)),
    ]
    data = SyntheticDataset.create(RecordKind.RETRIEVAL, [*texts, RetrievalText(id="r", text="plum cake")])
    scores({"pear tart": 0.5, "apple pie": 0.6, "plum cake": 0.1})
    (found,) = apply_steps(queries("apple pie"), [step(source="corpus")], {"corpus": data})
    assert found.negative == "plum cake"


def test_a_source_without_passages_is_refused() -> None:
    query = RetrievalText(id="q", text="apple query", judged=("p",), grades=(1.0,))
    without = SyntheticDataset.create(RecordKind.RETRIEVAL, [query])
    for others in ({}, {"corpus": without}):
        with refused("relabel-retrieved", "'corpus' has no passage"):
            apply_steps(queries("apple pie", "pear tart"), [step(source="corpus")], others)


def test_by_default_an_llm_ranks_by_two_questions_with_log_probabilities(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Chat:
        """Is surer of pears."""

        def answers(self, requests: Any) -> Any:
            for request in requests:
                text = request.messages[-1]["content"]
                word = "yes" if "yes or no" in text else "7"
                share = -0.1 if "Passage: pear" in text else -0.5
                top = {word: share, "no" if word == "yes" else "0": -2.5}
                yield ChatAnswer(request, word, logprobs=(TokenLogprob(word, share, top),))

    monkeypatch.setattr(Sources, "llm", LLM("llm", "a-model", Chat()))
    default = RelabelRetrieved()
    assert default.needs_llm()
    made = apply_steps(queries("apple pie", "pear tart"), [default])
    assert [one.positive for one in made] == ["pear tart", "pear tart"]
    asked = default.asks(100)
    assert asked is not None
    assert asked.num_requests == 100 * 21 * 2
    assert step().asks(100) is None


def test_a_file_of_prompts_replaces_the_questions_that_it_names(tmp_path: Path) -> None:
    file = tmp_path / "prompts.yaml"
    file.write_text('relevance: "Q: {query}\\nP: {passage}\\nFit?"\n', encoding="utf-8")
    default = RelabelRetrieved()
    own = RelabelRetrieved.model_validate({"prompts": str(file)})
    asked = [
        labeller.judge.request("0", {"sentence1": "a {passage}", "sentence2": "b"}).messages
        for labeller in own.labellers().values()
        if labeller.judge is not None
    ]
    assert asked[0][0]["content"] == "Q: a {passage}\nP: b\nFit?\n\nAnswer with yes or no only."
    assert own.labellers()["rankings.1"] == default.labellers()["rankings.1"]
    assert in_identity(default).keys() == in_identity(own).keys() - {"prompts"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"prompts": {"relevance": "{query} {passage}"}}, "prompts are for the default rankings"),
        ({"prompts": {"relevance": "{query}"}}, "lacks the slot {passage}"),
        ({"prompts": {"relevance": "{{a}} {query} {passage}"}}, "one text"),
        ({"rankings": []}, "at least 1 item"),
        ({"rankings": [{"cross_encoder": {}}]}, "a trained labeller needs sources"),
        ({"sources": {"gold": "x"}}, "learns nothing; leave out sources"),
    ],
)
def test_settings_that_do_not_fit_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        step(**options)


def test_former_positives_survive_storing(scores: Any, tmp_path: Any) -> None:
    scores({"apple pie": 0.2, "pear tart": 0.9})
    made = apply_steps(queries("apple pie", "pear tart"), [step()])
    made.write(tmp_path)
    read = SyntheticDataset.read(tmp_path)
    assert list(read) == list(made)
    assert {one.former_positive for one in read} == {"apple pie", "pear tart"}
