"""Commands like Slurm's: sbatch starts each task of an array as a process of this machine.

`FAKE_SLURM` names the folder of the tasks' states. There is the partition "gpu" (the default) and the
account "lab". `python fake_slurm.py COMMAND ARGUMENTS` is what the commands in `install`'s folder run. A
requeued task starts again at once. With `FAKE_SLURM_NODES`, tasks run on so many nodes, each with a cache of
its own. Within `preloaded`, tasks are forks of one process.
"""

import json
import os
import runpy
import shlex
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from multiprocessing.connection import Client, Listener
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

    import pytest

COMMANDS = ("sbatch", "squeue", "scancel", "scontrol")
FOLDER, NODES, FORKS = "FAKE_SLURM", "FAKE_SLURM_NODES", "FAKE_SLURM_FORKS"
LIVE = ("PENDING", "RUNNING")


def install(folder: Path, patch: "pytest.MonkeyPatch") -> Path:
    """Put the commands first on the path of this process and its children; return the folder of states."""
    commands, states = folder / "bin", folder / "slurm"
    commands.mkdir(parents=True)
    states.mkdir()
    for name in COMMANDS:
        file = commands / name
        file.write_text(f'#!/bin/sh\nexec {sys.executable} -S -E {__file__} {name} "$@"\n')
        file.chmod(0o755)
    patch.setenv("PATH", f"{commands}{os.pathsep}{os.environ['PATH']}")
    patch.setenv(FOLDER, str(states))
    return states


@contextmanager
def preloaded(module: str, patch: "pytest.MonkeyPatch") -> Iterator[None]:
    """Fork tasks from a process that has imported a module, which takes each of them seconds otherwise."""
    command = [sys.executable, __file__, "fork", module]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        patch.setenv(FORKS, server.stdout.readline().strip())
        yield
        server.kill()


def tasks(states: Path) -> dict[str, dict[str, object]]:
    """Return the tasks by id: name, state, pid of the process, number of starts."""
    return {file.stem: json.loads(file.read_text()) for file in sorted(states.glob("*.json"))}


def signal_task(states: Path, task: str, number: int) -> None:
    """Send a task's process a signal, as Slurm does before its time limit, or a node that fails."""
    os.kill(int(str(tasks(states)[task]["pid"])), number)


def node(task: str, num_nodes: int) -> str:
    """Return the name of the node on which a task runs."""
    return f"node{int(task.partition('_')[2]) % num_nodes}"


def running(states: Path) -> dict[str, dict[str, object]]:
    """Return the tasks whose processes run."""
    return {task: each for task, each in tasks(states).items() if each["state"] == "RUNNING"}


def _states() -> Path:
    return Path(os.environ[FOLDER])


def _write(task: str, **state: object) -> None:
    file = _states() / f"{task}.json"
    new = file.with_suffix(f".{os.getpid()}")
    new.write_text(json.dumps(state))
    new.replace(file)


def _sbatch(arguments: list[str]) -> None:
    options = dict(argument.lstrip("-").partition("=")[::2] for argument in arguments)
    script = sys.stdin.read()
    with (_states() / "submitted").open("a") as stream:
        stream.write(json.dumps(arguments) + "\n")
    if options.get("partition", "gpu") != "gpu":
        name = options["partition"]
        sys.exit(
            f"sbatch: error: invalid partition specified: {name}\n"
            "sbatch: error: Batch job submission failed: Invalid partition name specified"
        )
    if options.get("account", "lab") != "lab":
        sys.exit(
            "sbatch: error: Batch job submission failed: Invalid account or account/partition combination"
            " specified"
        )
    if int(options["mem"].removesuffix("M")) > 256_000:
        sys.exit("sbatch: error: Batch job submission failed: Requested node configuration is not available")
    if "test-only" in options:
        return
    array = str(1 + sum('"--parsable"' in line for line in (_states() / "submitted").open()))
    first, _, last = options["array"].partition("-")
    for index in range(int(first), int(last) + 1):
        task = f"{array}_{index}"
        _write(task, name=options["job-name"], state="PENDING", pid=0, starts=0)
        log = options["output"].replace("%A", array).replace("%a", str(index))
        with open(log, "a") as stream:  # noqa: PTH123
            subprocess.Popen(
                [sys.executable, "-S", "-E", __file__, "serve", task, script, options["cpus-per-task"]],
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=stream,
                start_new_session=True,
            )
    print(array)


def _serve(arguments: list[str]) -> None:
    """Run a task until it ends without having been requeued."""
    task, script, cpus = arguments
    array, _, index = task.partition("_")
    variables = {"SLURM_ARRAY_JOB_ID": array, "SLURM_ARRAY_TASK_ID": index, "SLURM_CPUS_PER_TASK": cpus}
    if nodes := os.environ.get(NODES):
        variables["SYNTHBENCH_CACHE"] = str(_states() / node(task, int(nodes)))
    state = json.loads((_states() / f"{task}.json").read_text())
    requeued, cancelled = (_states() / f"{task}.{end}" for end in ("requeued", "cancelled"))
    while not cancelled.exists():
        requeued.unlink(missing_ok=True)
        start = _Fork if FORKS in os.environ else _started
        process = start(script, {**os.environ, **variables})
        state = {**state, "state": "RUNNING", "pid": process.pid, "starts": state["starts"] + 1}
        _write(task, **state)
        code = process.wait()
        if not requeued.exists():
            ended = "CANCELLED" if cancelled.exists() else "FAILED" if code else "COMPLETED"
            _write(task, **{**state, "state": ended})
            return


def _started(script: str, variables: dict[str, str]) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(["bash", "-c", script], env=variables)


class _Fork:
    """A task as a fork of the server; its script exports variables and then runs a Python module."""

    def __init__(self, script: str, variables: dict[str, str]) -> None:
        lines = [shlex.split(line) for line in script.splitlines()]
        exports = dict(line[1].split("=", 1) for line in lines if line[:1] == ["export"])
        (command,) = (line[3:] for line in lines if line[:1] == ["exec"])
        self._server = Client(os.environ[FORKS])
        self._server.send((command, {**variables, **exports}, str(Path("/proc/self/fd/1").readlink())))
        self.pid: int = self._server.recv()

    def wait(self) -> int:
        code: int = self._server.recv()
        return code


def _fork(arguments: list[str]) -> None:
    """Serve `_Fork`s."""
    import_module(*arguments)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the processes that wait for tasks
    with Listener() as listener:
        print(listener.address, flush=True)
        while True:
            with listener.accept() as client:
                if not os.fork():
                    _wait_for_fork(client)


def _wait_for_fork(client: "Connection[int, tuple[list[str], dict[str, str], str]]") -> NoReturn:
    """Start a task, and tell its pid and in the end its exit code."""
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        command, variables, log = client.recv()
        task = os.fork()
        if task:
            client.send(task)
            client.send(os.waitstatus_to_exitcode(os.waitpid(task, 0)[1]))
        else:
            output = os.open(log, os.O_WRONLY | os.O_APPEND)
            os.dup2(output, 1)
            os.dup2(output, 2)
            os.environ.clear()
            os.environ.update(variables)
            module, *sys.argv[1:] = command
            runpy.run_module(module, run_name="__main__", alter_sys=True)
    except SystemExit as ending:
        os._exit(int(ending.code or 0))
    except BaseException:  # noqa: BLE001 - a fork must not go on in the loop that made it
        traceback.print_exc()
        os._exit(1)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(0)


def _squeue(arguments: list[str]) -> None:
    name = next(each.partition("=")[2] for each in arguments if each.startswith("--name="))
    for task, state in tasks(_states()).items():
        if state["name"] == name:
            print(f"{task}|{state['state']}|Resources")


def _scancel(arguments: list[str]) -> None:
    name = arguments[0].partition("=")[2]
    for task, state in tasks(_states()).items():
        if state["name"] == name and state["state"] in LIVE:
            (_states() / f"{task}.cancelled").touch()
            if state["pid"]:
                os.kill(int(str(state["pid"])), signal.SIGTERM)


def _scontrol(arguments: list[str]) -> None:
    command, task = arguments
    assert command == "requeue"
    (_states() / f"{task}.requeued").touch()


def wait_for_state(states: Path, count: int, *state: str, seconds: float = 60.0) -> list[str]:
    """Wait until so many tasks are in one of these states; return them."""
    end = time.monotonic() + seconds
    while len(found := [task for task, each in tasks(states).items() if each["state"] in state]) < count:
        assert time.monotonic() < end, f"tasks: {tasks(states)}"
        time.sleep(0.05)
    return found


if __name__ == "__main__":
    command, *rest = sys.argv[1:]
    called = {"sbatch": _sbatch, "squeue": _squeue, "scancel": _scancel, "scontrol": _scontrol}
    {**called, "serve": _serve, "fork": _fork}[command](rest)
