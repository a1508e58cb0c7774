"""In shards, AugSBERT's sentences are encoded and searched for in parts; its pairs are those of one stage."""

import os
import signal
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from augsbert_context import Context, Vectors
from hub_cache import SENTENCES
from small_experiment import Project, new_project

from synthbench.api import GenerationContext, Method, RecordKind, ScoredPair, SyntheticDataset, Unit
from synthbench.config.overrides import Overrides
from synthbench.engine.plan import Plan
from synthbench.engine.stores import open_store
from synthbench.models.encoder import LengthBatchedEncoder
from synthbench.models.pretrained import Pretrained, build_encoder
from synthbench.pipeline.invocation import load_invocation
from synthbench.pipeline.planning import make_plan
from synthbench_augsbert import neighbours
from synthbench_augsbert.samplers import BI_ENCODER, SemanticSearchSampler
from synthbench_augsbert.searching import FoundPairs, SentenceVectors, vectors_of

ENCODED, FOUND = "generate augsbert/FoundPairs/SentenceVectors for", "generate augsbert/FoundPairs for"
TEXTS = tuple(SENTENCES[:40])
SAMPLER = SemanticSearchSampler(k=2, bi_encoder={"base": {"model": "some"}})
GOLD = SyntheticDataset.create(
    RecordKind.SCORED_PAIR,
    [
        ScoredPair(sentence1=first, sentence2=second, score=0.5)
        for first, second in zip(TEXTS[::2], TEXTS[1::2], strict=True)
    ],
)


@dataclass
class ShardContext(Context):
    """The context of one of several shards, with what was made for them before."""

    number: int = 0
    of: int = 1
    before: SyntheticDataset | None = None

    def is_mine(self, piece: int) -> bool:
        return piece % self.of == self.number

    def shared(self) -> SyntheticDataset | None:  # type: ignore[override]
        return self.before


def made(method: Method, context: Context) -> list[Unit]:
    return cast("list[Unit]", list(method.generate({"gold": GOLD}, cast("GenerationContext", context))))


def in_order(units: Sequence[Unit]) -> list[Unit]:
    return sorted(units, key=lambda unit: unit.position)


@pytest.fixture
def encoder(bert: Path) -> LengthBatchedEncoder:
    """An encoder that cuts the sentences into several batches."""
    return LengthBatchedEncoder(build_encoder(Pretrained(model=str(bert)), 0, "cpu"), batch_tokens=64)


@pytest.mark.parametrize("of", [1, 2, 3])
def test_vectors_of_shards_are_bit_by_bit_those_of_one_process(
    encoder: LengthBatchedEncoder, of: int
) -> None:
    method = SentenceVectors(sampler=SAMPLER, seed=0)
    parts = [made(method, ShardContext({BI_ENCODER: encoder}, number=number, of=of)) for number in range(of)]
    assert all(parts)
    records = list(chain.from_iterable(unit.records for part in parts for unit in part))
    assert len(records) == len(TEXTS)
    together = SyntheticDataset.create(RecordKind.SENTENCE, records)
    assert np.array_equal(vectors_of(together), encoder.encode(TEXTS))


def test_sentences_encoded_before_a_kill_are_not_encoded_again(encoder: LengthBatchedEncoder) -> None:
    method = SentenceVectors(sampler=SAMPLER, seed=0)
    whole = made(method, ShardContext({BI_ENCODER: encoder}))
    finished = frozenset(unit.key for unit in whole[:2])
    left = made(method, ShardContext({BI_ENCODER: encoder}, finished_units=finished))
    assert left == whole[2:]


@pytest.mark.parametrize("of", [1, 2, 3])
def test_shards_find_the_pairs_of_one_process(monkeypatch: pytest.MonkeyPatch, of: int) -> None:
    monkeypatch.setattr(neighbours, "TILE", 8)
    few_directions = np.random.default_rng(0).integers(-2, 3, (len(TEXTS), 3))
    encoder = Vectors(dict(zip(TEXTS, few_directions.tolist(), strict=True)))
    vectors = made(SentenceVectors(sampler=SAMPLER, seed=0), ShardContext({BI_ENCODER: encoder}))
    before = SyntheticDataset.create(
        RecordKind.SENTENCE, list(chain.from_iterable(unit.records for unit in vectors))
    )
    method = FoundPairs(sampler=SAMPLER, seed=0)
    whole = made(method, ShardContext({BI_ENCODER: encoder}))
    shards = [ShardContext(number=number, of=of, before=before) for number in range(of)]
    parts = [made(method, shard) for shard in shards]
    assert all(parts)
    assert in_order(list(chain.from_iterable(parts))) == whole
    assert len(whole) == 5
    assert all(shard.measured == shards[0].measured for shard in shards), (
        "so the whole stage measures nothing"
    )


def with_search(project: Project, bert: Path) -> Project:
    encoder = f'{{base: {{model: "{bert}", num_layers: 1}}, max_steps: 8, batch_size: 8}}'
    project.change("{name: bm25, k: 1}", f"{{name: semantic-search, k: 2, bi_encoder: {encoder}}}")
    project.change("    select:\n      over: {data.silver.sampler.k: [1, 2]}\n", "")
    return project


@pytest.fixture
def searching(project: Project, bert: Path) -> Project:
    return with_search(project, bert)


def plan_of(project: Project, shards: int) -> Plan:
    overrides = Overrides(assignments=(f"runtime.shards={shards}",), variants=("augsbert",), seeds=(0,))
    return make_plan(load_invocation(project.file, overrides).experiment)


def test_shards_read_the_results_of_earlier_shards(searching: Project) -> None:
    stages = plan_of(searching, 3).stages.values()
    encoded, found, labelled = (
        [stage for stage in stages if str(stage).startswith(name)]
        for name in (ENCODED, FOUND, "generate augsbert for")
    )
    assert len(encoded) == len(found) == len(labelled) == 3 + 1
    *_, vectors = encoded
    *searchers, pairs = found
    *labellers, _ = labelled
    assert all(vectors in shard.inputs.values() for shard in searchers)
    assert all(pairs in shard.inputs.values() for shard in labellers)


def test_without_shards_there_is_no_such_stage_and_the_data_are_the_same_stage(searching: Project) -> None:
    alone, divided = plan_of(searching, 1), plan_of(searching, 3)
    assert not [stage for stage in alone.stages.values() if str(stage).startswith((ENCODED, FOUND))]
    assert alone.stages.keys() < divided.stages.keys()


def run_of(shards: int) -> tuple[str, ...]:
    settings = (f"runtime.shards={shards}", "runtime.batch_tokens=64")
    changes = (argument for setting in settings for argument in ("--set", setting))
    return ("run", "small.yaml", "--variant", "augsbert", "--seeds", "0", "--jobs", "1", *changes)


def silver_of(project: Project, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Return the hashes of the files of the silver pairs."""
    monkeypatch.setenv("SYNTHBENCH_HOME", str(project.home))
    stages = plan_of(project, 1).stages.values()
    (stage,) = [stage for stage in stages if str(stage).startswith("generate augsbert")]
    files = open_store().record(stage.identity)["files"]
    return {name: file["sha256"] for name, file in files.items()}


@pytest.mark.experiments
def test_kills_do_not_change_the_bytes_of_the_data(
    tmp_path: Path, bert: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three shards are killed where the second begins to encode, and again where it begins to search."""
    contents = []
    for shards in (1, 2, 3):
        project = with_search(new_project(tmp_path / str(shards), bert), bert)
        for name in (ENCODED, FOUND) if shards == 3 else ():
            kill_within(project, name, run_of(shards))
        called = project.call(*run_of(shards))
        assert called.code == 0, called.err
        encoded = [stage for stage in called.executed if stage.startswith(ENCODED)]
        assert len(encoded) == {1: 0, 2: 3, 3: 0}[shards], (
            "what was encoded before a kill is not encoded again"
        )
        contents.append(silver_of(project, monkeypatch))
    assert contents[0] == contents[1] == contents[2]


def kill_within(project: Project, stage: str, command: Sequence[str]) -> None:
    """Run the command, and kill it when it begins the second shard of such a stage."""
    process = project.start(*command)
    assert process.stderr is not None
    assert any(f"running {stage}" in line and ", shard 2 of" in line for line in process.stderr)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
