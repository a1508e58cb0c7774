"""Trainings that go on on another machine, from checkpoints in a shared store."""

import os
import shutil
import signal
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
import torch
from fake_stages import in_process
from shared_stores import on_machine
from toy_training import TRAINERS, RecordedProgress, context_in, largest_difference, toy_pairs

from synthbench.plugins.model_contracts import Trainer
from synthbench.training.checkpoints import Checkpoints

A = "a" * 64


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


class Lost:
    """A selection on a machine that is lost at its fourth evaluation; the second score is the best."""

    def __init__(self, at: int = 4) -> None:
        self.at = at
        self.turn = 0

    def __call__(self, scorer: object) -> float:
        self.turn += 1
        if self.turn == self.at:
            raise KeyboardInterrupt
        return [0.1, 0.9, 0.2, 0.9, 0.3, 0.4][self.turn - 1]


def trainer_of(kind: str, bert: Path) -> Trainer:
    return TRAINERS[kind](
        base={"model": str(bert)}, max_steps=12, batch_size=8, learning_rate=1e-3, evaluations=6
    )


@pytest.mark.parametrize(
    "kind",
    [
        kind if kind == "bi-encoder" else pytest.param(kind, marks=pytest.mark.experiments)
        for kind in TRAINERS
    ],
)
def test_a_training_goes_on_on_another_machine_and_ends_with_the_same_weights(
    kind: str, bert: Path, tmp_path: Path
) -> None:
    (tmp_path / "network").mkdir()
    here, there = (on_machine(str(tmp_path / "network"), tmp_path / name) for name in ("here", "there"))
    trainer, data = trainer_of(kind, bert), [toy_pairs(40)]
    folder = here.workspace(A)
    with pytest.raises(KeyboardInterrupt), here.saving([A]):
        trainer.train(data, replace(context_in(folder), select=Lost()))
    saved = Checkpoints(folder / "checkpoints").steps()

    select, progress = Lost(at=0), RecordedProgress()
    select.turn = 3
    other = there.workspace(A)
    assert Checkpoints(other / "checkpoints").steps() == saved == [4, 6]
    resumed = trainer.train(data, replace(context_in(other), select=select, progress=progress))
    assert progress.said == ["training goes on after step 6 of 12"]
    assert resumed == trainer.train(data, context_in(tmp_path / "undisturbed", select=Lost(at=0)))
    assert largest_difference(other, tmp_path / "undisturbed") == 0


def train_until_killed(network: Path, cache: Path, bert: Path) -> None:
    """Train until the fifth evaluation, in a store that copies nothing by itself meanwhile."""
    store = on_machine(str(network), cache, 3600.0)
    folder, lost = store.workspace(A), Lost(at=0)

    def select(scorer: object) -> float:
        score = lost(scorer)
        if lost.turn == 5:
            os.kill(os.getpid(), signal.SIGKILL)
        return score

    torch.set_num_threads(1)
    context = replace(context_in(folder), select=select, copy_checkpoints=partial(store.save_work, A))
    with store.saving([A]):
        trainer_of("bi-encoder", bert).train([toy_pairs(40)], context)


@pytest.mark.experiments
def test_a_training_on_a_machine_that_is_killed_loses_one_checkpoint_interval(
    bert: Path, tmp_path: Path
) -> None:
    network = tmp_path / "network"
    network.mkdir()
    process = in_process(train_until_killed, network, tmp_path / "lost", bert)
    process.join()
    assert process.exitcode == -signal.SIGKILL
    shutil.rmtree(tmp_path / "lost")
    folder = on_machine(str(network), tmp_path / "there").workspace(A)
    select, progress = Lost(at=0), RecordedProgress()
    select.turn = 3
    trainer, data = trainer_of("bi-encoder", bert), [toy_pairs(40)]
    resumed = trainer.train(data, replace(context_in(folder), select=select, progress=progress))
    assert progress.said == ["training goes on after step 6 of 12"], "of 8 that were made"
    assert resumed == trainer.train(data, context_in(tmp_path / "undisturbed", select=Lost(at=0)))
    assert largest_difference(folder, tmp_path / "undisturbed") == 0


class Attack:
    """Makes a folder when it is unpickled."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.mkdir, (str(self.folder),)


@pytest.mark.parametrize("name", ["optimizer.pt", "scheduler.pt", "rng_state.pth", "weights.pt"])
def test_a_strangers_checkpoint_runs_no_code(name: str, bert: Path, tmp_path: Path) -> None:
    trainer, data = trainer_of("bi-encoder", bert), [toy_pairs(40)]
    context = context_in(tmp_path, select=Lost())
    with pytest.raises(KeyboardInterrupt):
        trainer.train(data, context)
    checkpoints = Checkpoints(context.checkpoints)
    file = checkpoints.path(6) / name
    assert file.is_file()
    torch.save({"state": Attack(tmp_path / "attacked")}, file)
    checkpoints.complete(6)
    with pytest.raises(Exception, match=r"(?i)unpickl|weights.only"):
        trainer.train(data, replace(context, select=Lost(at=0)))
    assert not (tmp_path / "attacked").exists()
