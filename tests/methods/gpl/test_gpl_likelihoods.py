"""Likelihoods of queries, by the log-probabilities that an endpoint reports, and InPars' filter by them."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
from applying import apply_steps
from contract.stand_ins import Context, sentences
from faulty_server import Reply, answer, faulty_server
from pydantic import ValidationError
from wording import refused

from synthbench.api import LLM, Pair, RecordKind, SyntheticDataset, TokenLogprob, Unit
from synthbench.data.conversions import convert
from synthbench.data.exchange import ExportFormat, export_dataset
from synthbench.data.importing import import_file
from synthbench.llm.client import ChatClient
from synthbench.llm.endpoint import Account, Endpoint, Pacing
from synthbench.preparing.labelled import KeepBest
from synthbench.preparing.mining import MineNegatives
from synthbench_gpl import GPLQueries
from synthbench_gpl.answers import likelihood

Tokens = list[tuple[str, float]]
"""Tokens of an answer with their probabilities."""


@pytest.mark.parametrize(
    ("answer", "tokens", "product", "number"),
    [
        ("Where is it?", [("Where", 0.5), (" is", 0.25), (" it", 1.0), ("?", 0.5)], 0.0625, 4),
        # A token that holds a quote and the query's first word counts, the closing quote and the end do not.
        ('"Where?"\n', [('"Where', 0.5), ("?", 0.125), ('"', 0.001), ("\n", 0.001)], 0.0625, 2),
        # The label's words are in the query, too; the remark after it has the query again.
        ("Query: query\nquery", [("Query", 0.1), (":", 0.1), (" query", 0.25), ("\nquery", 0.1)], 0.25, 1),
        # A thought that has the query is no part of the answer.
        ("Why?", [("<think>Why?</think>", 0.1), ("Why", 0.5), ("?", 0.5)], 0.25, 2),
        ("Why?", [("Why", 1.0), ("?", 1.0)], 1.0, 2),
        # A character in two escaped tokens, and no log-probabilities.
        ("\u2603?", [("bytes:\\xe2\\x98", 0.5), ("bytes:\\x83", 0.5), ("?", 0.5)], 0.0, 1),
        ("Why?", [], 0.0, 1),
    ],
)
def test_the_likelihood_is_the_geometric_mean_over_the_querys_tokens(
    answer: str, tokens: Tokens, product: float, number: int
) -> None:
    found = likelihood(answer, [TokenLogprob(text, math.log(share)) for text, share in tokens])
    assert found == pytest.approx(product ** (1 / number))


def reply_of(tokens: Tokens, *, with_logprobs: bool = True) -> Reply:
    reply = json.loads(answer("".join(text for text, _ in tokens)).body)
    content = [{"token": text, "logprob": math.log(share), "top_logprobs": []} for text, share in tokens]
    reply["choices"][0]["logprobs"] = {"content": content} if with_logprobs else None
    return Reply(body=json.dumps(reply).encode())


def generated(
    base_url: str, folder: Path, monkeypatch: pytest.MonkeyPatch, **options: Any
) -> SyntheticDataset:
    endpoint = Endpoint("mine", base_url, "model", pacing=Pacing())
    monkeypatch.setattr(Context, "llm", LLM("mine", "model", ChatClient(endpoint, folder, Account("s", "s"))))
    method = GPLQueries.model_validate({"queries_per_passage": 1, **options})
    units: list[Unit] = list(method.generate({"passages": sentences("A b.", "C d.")}, Context({})))
    return SyntheticDataset.create(RecordKind.PAIR, [one for unit in units for one in unit.records])


def test_likelihoods_are_asked_for_stored_and_kept_by(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replies = {"A b.": [("Likely", 0.5), ("?", 0.5)], "C d.": [("Rare", 0.25), ("?", 0.25)]}

    def script(number: int, body: Any) -> Reply:
        return reply_of(next(it for text, it in replies.items() if text in body["messages"][-1]["content"]))

    with faulty_server(script) as server:
        made = generated(server.base_url, tmp_path / "a", monkeypatch, likelihoods=True)
        assert (server.bodies[0]["logprobs"], server.bodies[0]["top_logprobs"]) == (True, 0)
        found = {one.anchor: one.likelihood for one in made if isinstance(one, Pair)}
        assert found == pytest.approx({"Likely?": 0.5, "Rare?": 0.25})
        num_asked = len(server.bodies)
        assert set(generated(server.base_url, tmp_path / "a", monkeypatch, likelihoods=True)) == {*made}
        assert len(server.bodies) == num_asked, "a resumed run takes them from the cache"
        plain = generated(server.base_url, tmp_path / "b", monkeypatch)
        assert not {"logprobs", "top_logprobs"} & server.bodies[-1].keys()
    assert "likelihood" not in plain.table.column_names
    kept = apply_steps(made, [KeepBest(by="likelihood", size=1)])
    assert [one.anchor for one in kept if isinstance(one, Pair)] == ["Likely?"]
    assert kept.manifest.dropped == {"keep-best: not among the best": 1}
    with refused("keep-best", "no pair has a likelihood"):
        apply_steps(plain, [KeepBest(by="likelihood", size=1)])


def test_an_endpoint_without_log_probabilities_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without = reply_of([("Why?", 0.5)], with_logprobs=False)
    with (
        faulty_server(lambda number, body: without) as server,
        refused("log-probabilities", "its answer has none"),
    ):
        generated(server.base_url, tmp_path, monkeypatch, likelihoods=True)


def test_a_pair_without_a_likelihood_is_dropped_and_counted_and_never_the_best() -> None:
    pairs = [
        Pair(id=str(at), anchor="a", positive="b", likelihood=one) for at, one in enumerate((0, 1.0, 0.5))
    ]
    kept = apply_steps(
        SyntheticDataset.create(RecordKind.PAIR, pairs), [KeepBest(by="likelihood", fraction=1.0)]
    )
    assert [one.id for one in kept] == ["1", "2"]
    assert kept.manifest.dropped == {"keep-best: no likelihood": 1}


def test_a_step_has_a_labeller_or_reads_likelihoods_of_pairs() -> None:
    for options in ({}, {"by": "likelihood", "labeller": {"judge": {}}}):
        with pytest.raises(ValidationError, match="needs either `labeller` or `by: likelihood`"):
            KeepBest.model_validate({"size": 1, **options})
    step = KeepBest(by="likelihood", size=1)
    assert not step.needs_llm()
    assert step.asks(5) is None
    assert not step.obstacle(RecordKind.PAIR)
    assert "is for pair records, not for triplet records" in step.obstacle(RecordKind.TRIPLET)


def test_a_sequence_to_sequence_model_gives_no_likelihoods() -> None:
    with pytest.raises(ValidationError, match="likelihoods is the LLM's"):
        GPLQueries.model_validate({"likelihoods": True, "seq2seq": {"model": "any"}})


LIKELY = Pair(id="0", anchor="a", positive="b", likelihood=0.3)
UNKNOWN = Pair(id="1", anchor="c", positive="d")


@pytest.mark.parametrize("ending", [ExportFormat.JSONL, ExportFormat.CSV])
def test_likelihoods_survive_storage_and_exchange(tmp_path: Path, ending: ExportFormat) -> None:
    data = SyntheticDataset.create(RecordKind.PAIR, [LIKELY, UNKNOWN])
    (tmp_path / "stored").mkdir()
    data.write(tmp_path / "stored")
    assert list(SyntheticDataset.read(tmp_path / "stored")) == [LIKELY, UNKNOWN]
    export_dataset(data, tmp_path / f"out.{ending}", ending)
    assert list(import_file(tmp_path / f"out.{ending}")) == [LIKELY, UNKNOWN]
    assert data.texts == ("a", "b", "c", "d")
    assert convert(data, RecordKind.SCORED_PAIR).manifest.notes[-1].endswith("lost: likelihoods")


@pytest.mark.parametrize("value", [1.5, -0.5, math.nan])
def test_a_likelihood_outside_its_range_is_refused(value: float, tmp_path: Path) -> None:
    with refused("record 0", "likelihood"):
        SyntheticDataset.create(RecordKind.PAIR, [Pair(id="0", anchor="a", positive="b", likelihood=value)])
    (tmp_path / "in.jsonl").write_text(json.dumps({"anchor": "a", "positive": "b", "likelihood": str(value)}))
    with refused("in.jsonl:1", "likelihood"):
        import_file(tmp_path / "in.jsonl")


def test_pairs_without_a_likelihood_keep_their_ids_and_mined_triplets_have_none() -> None:
    assert Pair(anchor="a", positive="q").content_id() == "baa68d4614a376346fa8"
    data = SyntheticDataset.create(RecordKind.PAIR, [LIKELY, UNKNOWN])
    mined = apply_steps(data, [MineNegatives(miner="bm25", number=1)])
    assert "likelihood" not in mined.table.column_names
