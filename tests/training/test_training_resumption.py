import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from itertools import cycle, product
from pathlib import Path

import pytest
import torch
import toy_training
from disks import flip
from toy_training import TRAINERS, RecordedProgress, context_in, largest_difference, spearman, toy_pairs
from wording import refused

from synthbench.models.interfaces import PairScorer
from synthbench.plugins.model_contracts import Trainer, TrainingContext, TrainingSummary
from synthbench.training import course
from synthbench.training.checkpoints import Checkpoints

Undisturbed = Callable[[str], tuple[TrainingSummary, Path]]


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


# 26 and 10 steps in two epochs; saved after each fifth of them, and killed while the third is saved.
@pytest.mark.parametrize(
    ("kind", "last", "torn"),
    [("bi-encoder", 10, 16), ("simcse", 4, 6)],
)
@pytest.mark.experiments
def test_a_killed_training_ends_like_an_undisturbed_one(
    kind: str, last: int, torn: int, bert: Path, tmp_path: Path
) -> None:
    command = [sys.executable, toy_training.__file__, kind, str(bert), str(tmp_path / "killed"), "3"]
    died = subprocess.run(command, check=False, capture_output=True, env={"OMP_NUM_THREADS": "1"})
    assert died.returncode == -signal.SIGKILL, died.stderr.decode()
    marked = {path.parent.name for path in (tmp_path / "killed" / "checkpoints").glob("*/complete")}
    unmarked = {path.name for path in (tmp_path / "killed" / "checkpoints").iterdir()} - marked
    assert f"checkpoint-{last}" in marked
    assert unmarked == {f"checkpoint-{torn}"}

    resumed = toy_training.train_to_be_killed(kind, bert, tmp_path / "killed")
    undisturbed = toy_training.train_to_be_killed(kind, bert, tmp_path / "undisturbed")
    assert resumed == undisturbed
    assert largest_difference(tmp_path / "killed", tmp_path / "undisturbed") < 1e-6


class Interrupted:
    """A selection that is interrupted once, at its n-th evaluation, and prefers an early checkpoint."""

    def __init__(self, at: int) -> None:
        self.at = at
        self.scores = [0.1, 0.9, 0.2, 0.9, 0.3, 0.4]
        self.turn = 0

    def __call__(self, scorer: PairScorer) -> float:
        if self.turn == self.at:
            self.at = -1
            raise KeyboardInterrupt
        self.turn += 1
        return self.scores[self.turn - 1]


def trainer_of(kind: str, bert: Path) -> Trainer:
    """A trainer of 12 steps in several epochs, saved every second one: in the middle and at their ends."""
    return TRAINERS[kind](
        base={"model": str(bert)}, max_steps=12, batch_size=8, learning_rate=1e-3, evaluations=6
    )


@pytest.fixture(scope="module")
def undisturbed(bert: Path, tmp_path_factory: pytest.TempPathFactory) -> Undisturbed:
    """The result and folder of each kind of trainer without interruption."""

    @cache
    def trained(kind: str) -> tuple[TrainingSummary, Path]:
        folder = tmp_path_factory.mktemp("undisturbed")
        context = context_in(folder, select=Interrupted(-1))
        return trainer_of(kind, bert).train([toy_pairs(40)], context), folder

    return trained


# At 0 there is no checkpoint yet, so all is trained again: test_the_seed_determines_the_model shows for each
# kind of trainer that this gives the same model.
@pytest.mark.parametrize(
    ("at", "kind"),
    [
        (0, "simcse"),
        *((3, kind) for kind in TRAINERS),
        *(pytest.param(at, kind, marks=pytest.mark.experiments) for at in (1, 5) for kind in TRAINERS),
    ],
)
def test_an_interrupted_training_ends_like_an_undisturbed_one(
    kind: str, at: int, bert: Path, tmp_path: Path, undisturbed: Undisturbed
) -> None:
    trainer, data, select = trainer_of(kind, bert), [toy_pairs(40)], Interrupted(at)
    with pytest.raises(KeyboardInterrupt):
        trainer.train(data, context_in(tmp_path, select=select))
    resumed = trainer.train(data, context_in(tmp_path, select=select))
    expected, folder = undisturbed(kind)
    assert resumed == expected
    assert resumed.best_step == 4
    assert largest_difference(tmp_path, folder) < 1e-6


def interrupted_training(bert: Path, folder: Path) -> TrainingContext:
    """Interrupt a static training at its third evaluation, after step 4 of 8, and return its context."""
    trainer = static_trainer(bert)
    context = context_in(folder, select=Interrupted(2))
    with pytest.raises(KeyboardInterrupt):
        trainer.train([toy_pairs(40)], context)
    return context


def static_trainer(bert: Path) -> toy_training.BiEncoder:
    return toy_training.BiEncoder(
        base={"model": str(bert), "static": True}, max_steps=8, learning_rate=1e-2, evaluations=4
    )


def test_a_resumption_is_reported_and_visible_in_the_progress(bert: Path, tmp_path: Path) -> None:
    progress = RecordedProgress()
    context = replace(interrupted_training(bert, tmp_path), progress=progress)
    static_trainer(bert).train([toy_pairs(40)], context)
    assert progress.said == ["training goes on after step 4 of 8"]
    assert (progress.done, progress.total) == (8, 8)


def test_a_training_killed_after_its_last_step_is_not_repeated(bert: Path, tmp_path: Path) -> None:
    context = context_in(tmp_path / "first", select=Interrupted(-1))
    finished = static_trainer(bert).train([toy_pairs(40)], context)
    again = replace(context, output=tmp_path / "again" / "output", select=Interrupted(0))
    again.output.mkdir(parents=True)
    assert static_trainer(bert).train([toy_pairs(40)], again) == finished
    assert largest_difference(tmp_path / "first", tmp_path / "again") == 0


def test_without_evaluations_checkpoints_are_written_at_intervals(
    bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(course, "SECONDS_BETWEEN_CHECKPOINTS", 0.0)
    context = context_in(tmp_path)
    static_trainer(bert).train([toy_pairs(40)], context)
    assert [path.name for path in context.checkpoints.iterdir()] == ["checkpoint-8"]


def test_checkpoints_remain_valid_if_their_store_is_moved(bert: Path, tmp_path: Path) -> None:
    interrupted_training(bert, tmp_path / "here")
    (tmp_path / "here").rename(tmp_path / "there")
    moved = static_trainer(bert).train(
        [toy_pairs(40)], context_in(tmp_path / "there", select=lambda scorer: 0.5)
    )
    assert moved.best_step == 4
    static_trainer(bert).model_copy(update={"max_steps": 4}).train(
        [toy_pairs(40)], context_in(tmp_path / "short")
    )
    assert largest_difference(tmp_path / "there", tmp_path / "short") == 0


@pytest.mark.parametrize(("kind", "until"), [("bi-encoder", 0.2), ("cross-encoder", 0.5), ("simcse", 0.2)])
def test_a_paused_training_ends_like_an_undisturbed_one(
    kind: str, until: float, bert: Path, tmp_path: Path, undisturbed: Undisturbed
) -> None:
    trainer, data, select = trainer_of(kind, bert), [toy_pairs(40)], Interrupted(-1)
    early = context_in(tmp_path / "early", select=select)
    paused = trainer.train(data, replace(early, until=until))
    # A fifth of 12 is 2.4 steps: the training pauses after step 3, where no evaluation is due.
    scores = {0.2: (3, 0.9), 0.5: (6, 0.2)}
    assert (paused.num_steps, paused.dev_score) == scores[until]
    # The score at the pause does not count when the training resumes.
    select.turn = {0.2: 1, 0.5: 3}[until]
    late = context_in(tmp_path / "late", select=select)
    resumed = trainer.train(data, replace(late, resume=early.output))
    expected, folder = undisturbed(kind)
    assert resumed == expected
    assert resumed.best_step == 4
    assert largest_difference(tmp_path / "late", folder) < 1e-6


DEV = toy_pairs(30, seed=1)
FILES = ["weights.pt", "optimizer.pt", "scheduler.pt", "rng_state.pth", "trainer_state.json", "complete"]
HARMS: dict[str, Callable[[Path], object]] = {
    "cut": lambda file: os.truncate(file, file.stat().st_size // 2),
    "flipped": flip,
    "removed": Path.unlink,
}


class GetsWorse:
    """A selection that depends on the model alone, prefers the least trained one, and is interrupted once."""

    def __init__(self, at: int | None = None) -> None:
        self.left = at

    def __call__(self, scorer: PairScorer) -> float:
        if self.left == 0:
            raise KeyboardInterrupt
        self.left = None if self.left is None else self.left - 1
        return -spearman(scorer, DEV)


@pytest.fixture(scope="module")
def ended(bert: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[TrainingSummary, Path]:
    """A static training of 8 steps that nothing happens to; the best of its 4 evaluations is the first."""
    folder = tmp_path_factory.mktemp("ended")
    return static_trainer(bert).train([toy_pairs(40)], context_in(folder, select=GetsWorse())), folder


@pytest.fixture(scope="module")
def cut_short(bert: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A training interrupted at its last evaluation: the best checkpoint is of step 2, the last of step 6."""
    folder = tmp_path_factory.mktemp("cut_short")
    with pytest.raises(KeyboardInterrupt):
        static_trainer(bert).train([toy_pairs(40)], context_in(folder, select=GetsWorse(3)))
    return folder


def resumed(bert: Path, folder: Path) -> tuple[TrainingSummary, list[str]]:
    """Resume a training; return its summary and messages."""
    progress = RecordedProgress()
    context = replace(context_in(folder, select=GetsWorse()), progress=progress)
    return static_trainer(bert).train([toy_pairs(40)], context), progress.said


@pytest.mark.parametrize(
    ("step", "file", "harm"),
    [
        *((6, file, harm) for file, harm in zip(FILES, cycle(HARMS))),
        (2, "weights.pt", "flipped"),
        (2, "complete", "removed"),
    ],
)
def test_a_damaged_checkpoint_is_reported_and_the_training_ends_like_an_undisturbed_one(
    step: int, file: str, harm: str, bert: Path, tmp_path: Path,
    cut_short: Path, ended: tuple[TrainingSummary, Path],
) -> None:  # fmt: skip
    shutil.copytree(cut_short, tmp_path, dirs_exist_ok=True)
    HARMS[harm](tmp_path / "checkpoints" / f"checkpoint-{step}" / file)
    summary, said = resumed(bert, tmp_path)
    assert said[0].startswith(f"the checkpoint of step {step} can't be used and was dropped: ")
    # Resumes from the checkpoint before; if the best one is damaged, no checkpoint is usable.
    assert (
        said[1:]
        == {
            6: ["training goes on after step 2 of 8"],
            2: ["the checkpoint of step 6 was dropped: that of step 2, the best so far, is gone"],
        }[step]
    )
    assert summary == ended[0]
    assert largest_difference(tmp_path, ended[1]) == 0


def test_every_harm_to_every_file_of_a_checkpoint_is_found(tmp_path: Path, cut_short: Path) -> None:
    for file, harm in product(FILES, HARMS):
        folder = shutil.copytree(cut_short / "checkpoints", tmp_path / f"{file} {harm}")
        HARMS[harm](folder / "checkpoint-6" / file)
        (said,) = Checkpoints(folder).drop_faulty()
        assert said.startswith("the checkpoint of step 6 can't be used and was dropped: ")
        assert Checkpoints(folder).steps() == [2]


def test_a_checkpoint_without_checksums_is_not_used(
    bert: Path, tmp_path: Path, cut_short: Path, ended: tuple[TrainingSummary, Path]
) -> None:
    shutil.copytree(cut_short, tmp_path, dirs_exist_ok=True)
    for marker in tmp_path.glob("checkpoints/*/complete"):
        marker.write_text("")
    summary, said = resumed(bert, tmp_path)
    fault = "can't be used and was dropped: there are no checksums to verify it by"
    assert said == [f"the checkpoint of step {step} {fault}" for step in (2, 6)]
    assert summary == ended[0]
    assert largest_difference(tmp_path, ended[1]) == 0


@pytest.mark.parametrize(("until", "step"), [(0.25, 2), (0.5, 4)])
def test_a_paused_training_with_a_damaged_checkpoint_restarts_from_the_beginning(
    until: float, step: int, bert: Path, tmp_path: Path, ended: tuple[TrainingSummary, Path]
) -> None:
    early = context_in(tmp_path / "early", select=GetsWorse())
    static_trainer(bert).train([toy_pairs(40)], replace(early, until=until))
    flip(early.output / "paused" / f"checkpoint-{step}" / "optimizer.pt")
    progress = RecordedProgress()
    late = replace(context_in(tmp_path / "late", select=GetsWorse()), progress=progress, resume=early.output)
    assert static_trainer(bert).train([toy_pairs(40)], late) == ended[0]
    fault = "can't be used and was dropped: the checksum of optimizer.pt differs"
    assert progress.said[0] == f"the checkpoint of step {step} {fault}"
    assert largest_difference(tmp_path / "late", ended[1]) == 0


def test_a_training_paused_after_its_last_step_ends_like_an_undisturbed_one(
    bert: Path, tmp_path: Path, ended: tuple[TrainingSummary, Path]
) -> None:
    early = context_in(tmp_path / "early", select=GetsWorse())
    static_trainer(bert).train([toy_pairs(40)], replace(early, until=0.99))
    assert not (early.output / "paused").exists()
    late = replace(context_in(tmp_path / "late", select=GetsWorse()), resume=early.output)
    assert static_trainer(bert).train([toy_pairs(40)], late) == ended[0]
    assert largest_difference(tmp_path / "late", ended[1]) == 0


def test_damaged_best_weights_are_never_used(
    bert: Path, tmp_path: Path, ended: tuple[TrainingSummary, Path]
) -> None:
    class Rot(GetsWorse):
        def __call__(self, scorer: PairScorer) -> float:
            if self.left == 1:
                flip(tmp_path / "checkpoints" / "checkpoint-2" / "weights.pt")
            return super().__call__(scorer)

    with refused("2", "dev", "score"):
        static_trainer(bert).train([toy_pairs(40)], context_in(tmp_path, select=Rot(4)))
    summary, _ = resumed(bert, tmp_path)
    assert summary == ended[0]
    assert largest_difference(tmp_path, ended[1]) == 0
