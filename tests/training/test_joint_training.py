"""One training by two processes that share every batch: the losses of one process, nothing lost by kills."""

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import joint_toy
import psutil
import pytest
from datasets import Dataset
from joint_toy import STEPS_TO_LIVE, DyingToy, Toy
from toy_training import TRAINERS, RecordedProgress, largest_difference, write_tiny_bert
from wording import refused

from synthbench.base.runtime import Runtime
from synthbench.engine.workspace import Workspace
from synthbench.stages import joint_training
from synthbench.stages.joint_training import _Relay, train_together
from synthbench.training.joint import SharedBatches
from synthbench.training.trainers import DistinctBatches, ShuffledBatches


@pytest.fixture(scope="module")
def sober(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A base without dropout, since dropout masks differ between processes."""
    bert = write_tiny_bert(tmp_path_factory.mktemp("models") / "bert")
    file = bert / "config.json"
    config = json.loads(file.read_text(encoding="utf-8"))
    file.write_text(
        json.dumps({**config, "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}), "utf-8"
    )
    return bert


def workspace(folder: Path) -> Workspace:
    return Workspace(folder, Runtime(device="cpu", threads=1), RecordedProgress())


def settings_of(bert: Path, **settings: Any) -> dict[str, Any]:
    base = {"model": str(bert)}
    return {
        "base": base,
        "max_steps": 6,
        "learning_rate": 1e-3,
        "batch_size": 8,
        "evaluations": 3,
        **settings,
    }


def curve(work: Workspace) -> list[float]:
    return [float(line) for line in (work.output / "curve.txt").read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        pytest.param("bi-encoder", {"loss": {"name": "multiple-negatives"}}, id="the library's"),
        pytest.param("simcse", {"chunk_size": 3}, id="simcse, cached", marks=pytest.mark.experiments),
        pytest.param("simcse", {"chunk_size": None}, id="simcse", marks=pytest.mark.experiments),
        pytest.param("bi-encoder", {}, id="cosine", marks=pytest.mark.experiments),
        pytest.param("cross-encoder", {}, id="cross-encoder", marks=pytest.mark.experiments),
        pytest.param("bi-encoder", {"lora": {"rank": 2}}, id="adapters", marks=pytest.mark.experiments),
    ],
)
def test_the_losses_equal_those_of_one_process_with_the_whole_batch(
    kind: str, settings: Mapping[str, Any], sober: Path, tmp_path: Path
) -> None:
    one, two = workspace(tmp_path / "one"), workspace(tmp_path / "two")
    given = settings_of(sober, **settings)
    Toy(kind, given)({}, one, one.output)
    train_together(Toy(kind, {**given, "devices": 2}), 2, {}, two)
    assert curve(two) == pytest.approx(curve(one), rel=1e-5)
    assert len(curve(one)) == 6
    assert isinstance(two.progress, RecordedProgress)
    assert (two.progress.done, two.progress.total) == (6, 6)


@pytest.mark.experiments
def test_a_teacher_masks_the_same_false_negatives_as_in_the_whole_batch(sober: Path, tmp_path: Path) -> None:
    curves = {}
    for above in (0.9, 0.999):
        mask = {"teacher": {"model": str(sober)}, "above": above}
        given = settings_of(sober, false_negatives=mask)
        one, two = workspace(tmp_path / f"one {above}"), workspace(tmp_path / f"two {above}")
        Toy("simcse", given)({}, one, one.output)
        train_together(Toy("simcse", {**given, "devices": 2}), 2, {}, two)
        curves[above] = curve(one)
        assert curve(two) == pytest.approx(curve(one), rel=1e-5)
    assert curves[0.9] != pytest.approx(curves[0.999], rel=1e-3)  # it does mask


def test_a_kill_loses_no_checkpoint_and_the_resumed_training_gives_the_same_result(
    bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With dropout; the second process dies in the fifth of six steps, after two checkpoints."""
    settings = settings_of(bert, devices=2)
    whole, killed = workspace(tmp_path / "whole"), workspace(tmp_path / "killed")
    train_together(Toy("bi-encoder", settings), 2, {}, whole)
    monkeypatch.setenv(STEPS_TO_LIVE, "5")
    copied = []

    def copy() -> None:
        copied.append(sorted(path.parent.name for path in killed.checkpoints.glob("*/complete"))[-1:])

    with refused("processes that share the training was killed", "the last checkpoint"):
        train_together(DyingToy("bi-encoder", settings), 2, {}, replace(killed, save=copy))
    assert copied == [[], ["checkpoint-2"]], "before the next is written"
    assert sorted(path.parent.name for path in killed.checkpoints.glob("*/complete"))[-1] == "checkpoint-4"
    train_together(Toy("bi-encoder", settings), 2, {}, killed)
    assert isinstance(killed.progress, RecordedProgress)
    assert any("goes on after step 4 of 6" in line for line in killed.progress.said)
    assert curve(killed) == curve(whole)
    assert (killed.output / "summary.txt").read_bytes() == (whole.output / "summary.txt").read_bytes()
    assert largest_difference(tmp_path / "killed", tmp_path / "whole") == 0.0


@pytest.mark.parametrize("is_before", [True, False], ids=["before the answer", "before reading the answer"])
def test_a_process_killed_while_its_checkpoints_are_copied_is_reported(is_before: bool) -> None:
    receiver, sender = multiprocessing.Pipe()
    sender.send(("save",))
    relay = _Relay(RecordedProgress(), sender.close if is_before else lambda: None)
    assert not relay._take(receiver)
    sender.close()
    with refused("processes that share the training was killed", "the last checkpoint"):
        relay.until_all_end({receiver: None})  # type: ignore[dict-item] # processes are not looked at


@pytest.mark.experiments
def test_worker_processes_end_with_their_parent(bert: Path, tmp_path: Path) -> None:
    settings = settings_of(bert, devices=2, max_steps=100_000)
    process = subprocess.Popen([sys.executable, joint_toy.__file__, json.dumps(settings), str(tmp_path)])
    while not any((tmp_path / "checkpoints").glob("*")):
        time.sleep(0.1)
    children = psutil.Process(process.pid).children(recursive=True)
    assert len(children) >= 2
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    gone, alive = psutil.wait_procs(children, timeout=60)
    assert not alive, gone


def test_an_error_of_one_process_is_raised(bert: Path, tmp_path: Path) -> None:
    toy = Toy("bi-encoder", settings_of(bert, devices=2), num_pairs=1)
    with refused("devices: 2", "1 records"):
        train_together(toy, 2, {}, workspace(tmp_path))


@pytest.mark.parametrize(
    ("device", "count", "facts"),
    [("cuda", 1, ("train.devices: 2", "there is 1")), ("mps", 0, ("train.devices: 2", "one device mps"))],
)
def test_too_few_devices_are_refused(
    device: str, count: int, facts: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch

    monkeypatch.setattr(joint_training, "device_name", lambda _: device)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: count)
    with refused(*facts):
        train_together(Toy("bi-encoder", {}), 2, {}, workspace(tmp_path))


def test_every_usable_record_is_in_exactly_one_share(bert: Path) -> None:
    rows = list(range(21))
    batches = ShuffledBatches(rows, batch_size=8, drop_last=False)  # type: ignore[arg-type] # all it reads is their number
    shares = list(SharedBatches(batches, 2))
    assert list(map(len, shares)) == [4, 4, 4, 4, 2, 2]
    assert len(SharedBatches(batches, 2)) == 6
    whole = [row for batch in batches for row in batch]
    assert [row for share in shares for row in share] == whole[:20]
    trainer = TRAINERS["bi-encoder"](base={"model": str(bert)}, batch_size=8, devices=2)
    assert trainer.num_steps(21) == 3  # type: ignore[attr-defined] # of all our trainers
    assert trainer.num_steps(17) == 2  # type: ignore[attr-defined]


def test_a_record_alone_in_its_batch_is_joined_by_one_of_another_batch() -> None:
    """Nine of ten records share an anchor, so a batch can combine only the tenth with one of them."""
    anchors = ["same"] * 9 + ["other"]
    data = Dataset.from_dict({"anchor": anchors, "positive": [f"positive {row}" for row in range(10)]})
    batches = SharedBatches(DistinctBatches(data, batch_size=2, drop_last=False), 2)
    shares = list(batches)
    assert [len(share) for share in shares] == [1] * 10
    assert all(9 in shares[step] + shares[step + 1] for step in range(0, 10, 2))


def test_records_that_all_contain_the_same_text_are_refused() -> None:
    data = Dataset.from_dict({"anchor": ["same"] * 4, "positive": [f"positive {row}" for row in range(4)]})
    with refused("devices: 2", "1 of 4", "no_duplicates"):
        list(SharedBatches(DistinctBatches(data, batch_size=2, drop_last=False), 2))


@pytest.mark.parametrize(
    ("kind", "settings", "facts"),
    [
        ("bi-encoder", {"batch_size": 9}, ("batch_size 9", "devices: 2")),
        ("bi-encoder", {"loss": {"name": "cosent"}}, ("cosent", "devices: 2")),
        ("simcse", {"mlm_weight": 0.1}, ("mlm_weight", "devices: 2")),
    ],
)
def test_settings_that_devices_cannot_share_are_refused(
    kind: str, settings: Mapping[str, Any], facts: tuple[str, ...], bert: Path
) -> None:
    with pytest.raises(ValueError, match="devices") as caught:
        TRAINERS[kind](**settings_of(bert, devices=2, **settings))
    assert all(fact in str(caught.value) for fact in facts)


def test_one_device_is_left_out_of_the_identity(bert: Path) -> None:
    alone, shared = (
        TRAINERS["bi-encoder"](**settings_of(bert, devices=number)).model_dump(mode="json")
        for number in (1, 2)
    )
    assert "devices" not in alone
    assert shared["devices"] == 2
