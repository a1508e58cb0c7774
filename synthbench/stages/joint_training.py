"""Start the processes that share one training, and show the progress of the first."""

import io
import os
import sys
import tempfile
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from multiprocessing import connection
from pathlib import Path
from typing import TYPE_CHECKING, Any

from synthbench.base.errors import UserError
from synthbench.base.processes import disable_telemetry, follow_parent, threads_each
from synthbench.base.runtime import Progress, ProgressTask, Runtime, device_name, not_shared
from synthbench.engine.progress import QuietProgress
from synthbench.engine.workers import worker_context
from synthbench.engine.workspace import Workspace

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from multiprocessing.context import SpawnProcess

SECONDS_TO_END = 10.0
Train = Callable[[Mapping[str, Path], Workspace, Path], None]
"""Trains on the inputs in a workspace, and writes the model to a folder."""


def train_together(train: Train, num_devices: int, inputs: Mapping[str, Path], work: Workspace) -> None:
    """Call `train` in `num_devices` processes; the first one writes the output.

    Raises UserError if there are too few GPUs, if the device is neither CPU nor CUDA, or if a process raises
    UserError or dies. Raises RuntimeError, with the traceback, for any other error of a process.
    """
    devices = _devices(work.runtime, num_devices)
    threads = max(1, (work.runtime.threads or threads_each(1)) // num_devices)
    with tempfile.TemporaryDirectory() as scratch, ExitStack() as stack:
        processes = {}
        for rank, device in enumerate(devices):
            runtime = work.runtime.model_copy(update={"device": device, "threads": threads})
            share = _TrainingProcess(
                train, inputs, replace(work, runtime=runtime), rank, num_devices, Path(scratch)
            )
            receiver, process = stack.enter_context(_started(share))
            processes[receiver] = process
        _Relay(work.progress, work.save).until_all_end(processes)


def _devices(runtime: Runtime, number: int) -> Sequence[str]:
    """Return the device of each process: a GPU for each, or the CPU for all.

    Raises UserError if there are too few GPUs, or for another kind of device.
    """
    device = device_name(runtime)
    if device == "cpu":
        return ["cpu"] * number
    if device != "cuda":
        raise UserError(f"train.devices: {number} can't share the one device {device}; take devices: 1")
    import torch

    if (count := torch.cuda.device_count()) < number:
        raise UserError(
            f"train.devices: {number} needs as many GPUs, and there {'is' if count == 1 else 'are'} {count}"
        )
    return [f"cuda:{rank}" for rank in range(number)]


@dataclass(frozen=True)
class _TrainingProcess:
    """The work of one process. `scratch` is a folder that all processes share while they live."""

    train: Train
    inputs: Mapping[str, Path]
    work: Workspace
    rank: int
    num_devices: int
    scratch: Path


@contextmanager
def _started(share: _TrainingProcess) -> Iterator[tuple["Connection[Any, Any]", "SpawnProcess"]]:
    """Start a process; yield its connection and the process, which is ended on leaving."""
    context = worker_context()
    receiver, sender = context.Pipe()
    # This process shows the progress, on a terminal perhaps, and copies the checkpoints.
    sent = replace(share, work=replace(share.work, progress=QuietProgress(), save=not_shared))
    process = context.Process(target=_run, args=(sent, sender, os.getpid(), dict(os.environ)), daemon=True)  # type: ignore[attr-defined] # every context has it
    process.start()
    sender.close()
    try:
        yield receiver, process
    finally:
        process.terminate()
        process.join(SECONDS_TO_END)
        process.kill()
        receiver.close()


def _run(
    share: _TrainingProcess, sender: "Connection[Any, Any]", parent: int, variables: Mapping[str, str]
) -> None:
    """Train; send progress and, in the end, success or the error to the starting process."""
    os.environ.clear()
    os.environ.update(variables)
    follow_parent(parent)
    disable_telemetry()
    try:
        _train(share, sender)
        sender.send(_Ended())
    except UserError as error:
        sender.send(_Ended(error.messages, is_user_error=True))
    except Exception:  # noqa: BLE001 - sent to the starting process, which raises it
        sender.send(_Ended((traceback.format_exc(),)))


def _train(share: _TrainingProcess, sender: "Connection[Any, Any]") -> None:
    import torch

    from synthbench.training.joint import joined

    work, output = share.work, share.scratch / str(share.rank)
    is_gpu = work.runtime.device.startswith("cuda")
    if share.rank == 0:
        progress = _SentProgress(sender)
        work, output = replace(work, progress=progress, save=progress.save), work.output
    else:
        output.mkdir()
        # All processes would print the same warnings.
        sys.stderr = io.StringIO()
    # torch and accelerate call each other's deprecated functions.
    warnings.simplefilter("ignore", FutureWarning)
    # accelerate sets the number of threads unless this variable is set.
    os.environ.setdefault("OMP_NUM_THREADS", str(work.runtime.threads))
    if is_gpu:
        torch.cuda.set_device(share.rank)
    meeting = share.scratch / "meeting"
    with joined(share.rank, share.num_devices, meeting, "nccl" if is_gpu else "gloo"):
        share.train(share.inputs, work, output)


@dataclass(frozen=True)
class _Ended:
    """The last message of a process; no errors mean success."""

    errors: tuple[str, ...] = ()
    is_user_error: bool = False


class _SentProgress:
    """Progress that sends each call, as the method's name and arguments, to the starting process."""

    def __init__(self, sender: "Connection[Any, Any]") -> None:
        self._sender = sender

    @contextmanager
    def task(self, description: str, total: int) -> Iterator[ProgressTask]:
        """Open a task in the starting process."""
        self._sender.send(("task", description, total))
        try:
            yield self
        finally:
            self._sender.send(("end",))

    def advance(self, amount: int = 1) -> None:
        """Advance the task in the starting process."""
        self._sender.send(("advance", amount))

    def say(self, message: str) -> None:
        """Print a line in the starting process."""
        self._sender.send(("say", message))

    def save(self) -> None:
        """Have the starting process copy the checkpoints; wait until the copy has succeeded or failed."""
        self._sender.send(("save",))
        self._sender.recv()


class _Relay:
    """Shows the first process's progress, copies its checkpoints, and waits until all processes end."""

    def __init__(self, progress: Progress, save: Callable[[], None]) -> None:
        self._progress = progress
        self._save = save
        self._tasks: list[tuple[ExitStack, ProgressTask]] = []

    def until_all_end(self, processes: "Mapping[Connection[Any, Any], SpawnProcess]") -> None:
        """Return once all processes have succeeded; raise the error of the first process that fails."""
        running = dict(processes)
        try:
            while running:
                for ready in connection.wait(list(running)):
                    assert isinstance(ready, connection.Connection)
                    if self._take(ready):
                        del running[ready]
        finally:
            while self._tasks:
                self._tasks.pop()[0].close()

    def _take(self, receiver: "Connection[Any, Any]") -> bool:
        """Handle one message; return whether the process succeeded; raise the error if it failed or died."""
        try:
            message = receiver.recv()
        except (EOFError, ConnectionError):
            raise UserError(
                "one of the processes that share the training was killed (out of memory?); run the same"
                " command again, which goes on from the last checkpoint"
            ) from None
        if message == ("save",):
            self._save()
            # The next `recv` reports a process that was killed meanwhile.
            with suppress(ConnectionError):
                receiver.send(None)
            return False
        if not isinstance(message, _Ended):
            self._pass_on(*message)
            return False
        if message.is_user_error:
            raise UserError(*message.errors)
        if message.errors:
            raise RuntimeError("\n".join(message.errors))
        return True

    def _pass_on(self, name: str, *given: Any) -> None:  # noqa: ANN401 - what the method takes
        if name == "say":
            self._progress.say(*given)
        elif name == "advance":
            self._tasks[-1][1].advance(*given)
        elif name == "task":
            stack = ExitStack()
            self._tasks.append((stack, stack.enter_context(self._progress.task(*given))))
        else:
            self._tasks.pop()[0].close()
