"""An evaluation that is killed goes on where it was, and ends with the same bytes."""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar

import pytest
from fake_stages import RUNTIME, in_process, run_job
from fakes import Lines
from hub_cache import SENTENCES, tiny_bert

from synthbench.data.dataset import SyntheticDataset
from synthbench.data.records import RecordKind, ScoredPair
from synthbench.engine.artifacts import write_dataset
from synthbench.engine.jobs import StageJob
from synthbench.engine.stage import Operation, Stage
from synthbench.engine.store import Store
from synthbench.engine.workspace import Workspace
from synthbench.models import artifact, encoder
from synthbench.models.batching import TokenisedTexts
from synthbench.models.pretrained import Pretrained
from synthbench.stages.evaluation import Evaluate
from synthbench_sts import STS


@dataclass(frozen=True)
class Untrained(Operation):
    """A tiny untrained model."""

    kind: ClassVar[str] = "train"
    component: ClassVar[str] = "untrained"
    version: ClassVar[int] = 1
    base: str

    def config(self) -> Mapping[str, Any]:
        return {}

    def run(self, inputs: Mapping[str, Path], work: Workspace) -> None:
        artifact.save_untrained(Pretrained(model=self.base), work.output)


@dataclass(frozen=True)
class Pairs(Operation):
    """Every so many-th sentence beside its neighbour."""

    kind: ClassVar[str] = "source"
    component: ClassVar[str] = "pairs"
    version: ClassVar[int] = 1
    step: int

    def config(self) -> Mapping[str, Any]:
        return {"step": self.step}

    def run(self, inputs: Mapping[str, Path], work: Workspace) -> None:
        texts = [" ".join(SENTENCES[at : at + 1 + at % 4]) for at in range(0, len(SENTENCES), self.step)]
        pairs = [
            ScoredPair(sentence1=one, sentence2=other, score=(number % 7) / 7)
            for number, (one, other) in enumerate(pairwise(texts))
        ]
        write_dataset(SyntheticDataset.create(RecordKind.SCORED_PAIR, pairs), work)


def evaluations(bert: Path, store: Store) -> list[Stage]:
    """Return two evaluations of one model, with their inputs in the store."""
    model = Stage(Untrained(str(bert)))
    tasks = [Stage(Pairs(step)) for step in (2, 3)]
    for stage in (model, *tasks):
        assert not run_job(store, stage).error
    return [
        Stage(Evaluate("sts", STS()), {"model": model, "task": task}, f"of {task.identity}") for task in tasks
    ]


@contextmanager
def counted(kill_at: int = -1) -> Iterator[list[int]]:
    """Note the size of each batch that is encoded; die at the one with this number."""
    sizes: list[int] = []
    features = TokenisedTexts.features

    def noted(texts: TokenisedTexts, indices: Sequence[int], *arguments: Any) -> Any:
        if len(sizes) == kill_at:
            os._exit(9)
        sizes.append(len(indices))
        return features(texts, indices, *arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TokenisedTexts, "features", noted)
        patch.setattr(encoder, "SECONDS_BETWEEN_FILES", 0.0)
        yield sizes


def evaluate(root: Path, bert: Path, kill_at: int = -1) -> tuple[list[int], list[str]]:
    """Evaluate in a store; return the batch sizes and the messages."""
    store, lines = Store(root), Lines()
    stages = evaluations(bert, store)
    with counted(kill_at) as sizes:
        runtime = RUNTIME.model_copy(update={"batch_tokens": 128})
        outcome = StageJob(store, stages, runtime, lines).run()
    assert not outcome.error
    return sizes, lines.said


def results(root: Path, bert: Path) -> list[bytes]:
    store = Store(root)
    folders = [store.folder(stage.identity) for stage in evaluations(bert, store)]
    return [(folder / name).read_bytes() for folder in folders for name in ("scores.json", "items.parquet")]


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bert")
    tiny_bert(folder)
    return folder


@pytest.fixture(scope="module")
def whole(bert: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[int]]:
    """A store where nothing was killed, and the sizes of its batches."""
    root = tmp_path_factory.mktemp("whole")
    return root, evaluate(root, bert)[0]


def test_sentences_encoded_before_a_kill_are_not_encoded_again(
    bert: Path, whole: tuple[Path, list[int]], tmp_path: Path
) -> None:
    root, batches = whole
    half = len(batches) // 2
    process = in_process(evaluate, tmp_path, bert, half)
    process.join()
    assert process.exitcode == 9
    sizes, said = evaluate(tmp_path, bert)
    assert sizes == batches[half:]
    assert f"{sum(batches[:half])} of {sum(batches)} sentences were encoded earlier" in said
    assert results(tmp_path, bert) == results(root, bert)
    assert not list((tmp_path / "partial").iterdir())


class KilledError(BaseException):
    """Simulates a kill: nothing is written afterwards."""


def test_a_tasks_scores_survive_a_failure_of_the_next_task(
    bert: Path, whole: tuple[Path, list[int]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stages = evaluations(bert, Store(tmp_path))
    commit = Store.commit

    def commit_one(store: Store, identity: str, record: Mapping[str, Any]) -> None:
        if identity == stages[1].identity:
            raise KilledError
        commit(store, identity, record)

    with monkeypatch.context() as patch:
        patch.setattr(Store, "commit", commit_one)
        with pytest.raises(KilledError):
            evaluate(tmp_path, bert)
    assert [Store(tmp_path).has(stage.identity) for stage in stages] == [True, False]
    sizes, _ = evaluate(tmp_path, bert)
    assert sizes == []
    assert results(tmp_path, bert) == results(whole[0], bert)


def test_of_tasks_scored_together_only_the_failed_one_is_reported(
    bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(tmp_path)
    stages = evaluations(bert, store)
    evaluate_task = STS.evaluate

    def fail_second(evaluator: STS, model: Any, task: SyntheticDataset) -> Any:
        if store.has(stages[0].identity):
            raise ZeroDivisionError
        return evaluate_task(evaluator, model, task)

    monkeypatch.setattr(STS, "evaluate", fail_second)
    outcome = run_job(store, *stages)
    assert outcome.executed == (stages[0].identity,)
    assert "ZeroDivisionError" in outcome.error[0]
