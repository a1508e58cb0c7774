from pathlib import Path

from synthbench.training.checkpoints import Checkpoints


def write(checkpoints: Checkpoints, *steps: int) -> None:
    for step in steps:
        checkpoints.path(step).mkdir()
        (checkpoints.path(step) / "weights.pt").write_bytes(b"weights")


def test_a_checkpoint_counts_only_when_it_is_complete(tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path)
    write(checkpoints, 5, 10)
    assert checkpoints.last() is None
    checkpoints.complete(5)
    assert checkpoints.last() == 5


def test_steps_are_compared_as_numbers(tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path)
    write(checkpoints, 9, 10)
    checkpoints.complete(9)
    checkpoints.complete(10)
    assert checkpoints.last() == 10


def test_torn_checkpoints_are_deleted_and_nothing_else(tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path)
    write(checkpoints, 5, 10)
    checkpoints.complete(5)
    (tmp_path / "notes.txt").touch()
    checkpoints.delete_torn()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["checkpoint-5", "notes.txt"]


def test_only_the_named_checkpoints_are_kept(tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path)
    write(checkpoints, 1, 2, 3)
    for step in (1, 2, 3):
        checkpoints.complete(step)
    checkpoints.keep_only(3, 1)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["checkpoint-1", "checkpoint-3"]
