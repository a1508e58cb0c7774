import json
from collections.abc import Callable
from pathlib import Path

import pytest
from disks import flip
from wording import worded

from synthbench.training.checkpoints import Checkpoints


def write(checkpoints: Checkpoints, *steps: int) -> None:
    for step in steps:
        checkpoints.path(step).mkdir()
        (checkpoints.path(step) / "weights.pt").write_bytes(b"weights")
        (checkpoints.path(step) / "trainer_state.json").write_text('{"log_history": [{"step": 1}]}')


def test_only_complete_checkpoints_are_valid(tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path)
    write(checkpoints, 5)
    assert checkpoints.fault(5) == "it is incomplete"
    checkpoints.complete(5)
    assert checkpoints.fault(5) == ""
    assert checkpoints.history(5) == [{"step": 1}]


def test_steps_are_ordered_as_numbers(tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path)
    write(checkpoints, 10, 9)
    assert checkpoints.steps() == [9, 10]


@pytest.mark.parametrize("name", ["checkpoint-5/.DS_Store", "checkpoint-5/.nfs0001", "checkpoint-5 copy/x"])
def test_stray_files_beside_checkpoints_are_ignored(name: str, tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path)
    write(checkpoints, 5)
    checkpoints.complete(5)
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).touch()
    assert checkpoints.steps() == [5]
    assert checkpoints.fault(5) == ""


@pytest.mark.parametrize(
    ("harm", "fault"),
    [
        (flip, "the checksum of weights.pt differs"),
        (lambda file: file.write_bytes(b"weight"), "the checksum of weights.pt differs"),
        (Path.unlink, "weights.pt is missing"),
    ],
)
def test_changed_checkpoint_files_are_reported(
    harm: Callable[[Path], object], fault: str, tmp_path: Path
) -> None:
    checkpoints = Checkpoints(tmp_path)
    write(checkpoints, 5)
    checkpoints.complete(5)
    harm(checkpoints.path(5) / "weights.pt")
    assert checkpoints.fault(5) == fault


@pytest.mark.parametrize("content", ["", "{", "[]", "\0"])
def test_without_checksums_nothing_can_be_verified(content: str, tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path)
    write(checkpoints, 5)
    (checkpoints.path(5) / "complete").write_text(content)  # an empty one is of an older release
    worded(checkpoints.fault(5), "checksums")


def test_only_faulty_checkpoints_are_dropped_and_reported(tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path)
    write(checkpoints, 5, 10, 15)
    checkpoints.complete(5)
    checkpoints.complete(10)
    flip(checkpoints.path(10) / "weights.pt")
    (tmp_path / "notes.txt").touch()
    worded(list(checkpoints.drop_faulty()), "10", "checksum", "weights.pt", "15")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["checkpoint-5", "notes.txt"]


def test_all_but_the_named_checkpoints_are_deleted(tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path)
    write(checkpoints, 1, 2, 3)
    for step in (1, 2, 3):
        checkpoints.complete(step)
    checkpoints.keep_only(3, 1)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["checkpoint-1", "checkpoint-3"]


def test_the_completion_marker_is_written_after_the_files_are_on_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoints = Checkpoints(tmp_path)
    write(checkpoints, 5)
    synced: list[str] = []
    monkeypatch.setattr("synthbench.base.durability._sync", lambda path: synced.append(path.name))
    checkpoints.complete(5)
    files, marker = {"weights.pt", "trainer_state.json", "checkpoint-5", tmp_path.name}, ".complete."
    first = next(place for place, name in enumerate(synced) if name.startswith(marker))
    assert set(synced[:first]) == files
    assert synced[first + 1 :] == ["checkpoint-5"]
    assert json.loads((checkpoints.path(5) / "complete").read_text()).keys() == {
        "weights.pt",
        "trainer_state.json",
    }


def test_a_copied_checkpoint_is_as_valid_as_the_original(tmp_path: Path) -> None:
    checkpoints, copy = Checkpoints(tmp_path / "here"), Checkpoints(tmp_path / "there")
    checkpoints.folder.mkdir()
    write(checkpoints, 5)
    checkpoints.complete(5)
    copy.path(5).mkdir(parents=True)
    (copy.path(5) / "weights.pt").write_bytes(b"cut o")  # what a kill left of an earlier attempt
    checkpoints.copy_to(copy.folder)
    assert (copy.steps(), copy.fault(5)) == ([5], "")


def test_the_curves_are_those_of_the_newest_complete_checkpoint(tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path)
    assert checkpoints.curves_so_far() == ()
    history = [{"step": 2, "loss": 0.5, "epoch": 1}, {"step": 3, "dev_score": 0.25}]
    for step, log in ((2, history[:1]), (3, history), (4, history)):
        checkpoints.path(step).mkdir()
        (checkpoints.path(step) / "trainer_state.json").write_text(json.dumps({"log_history": log}))
        checkpoints.complete(step)
    (checkpoints.path(4) / "complete").unlink()
    assert checkpoints.curves_so_far() == ((2, "loss", 0.5), (3, "dev_score", 0.25))
    # The newest is incomplete, as while another process deletes it.
    (checkpoints.path(3) / "trainer_state.json").unlink()
    assert checkpoints.curves_so_far() == ((2, "loss", 0.5),)
