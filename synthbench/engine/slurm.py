"""Slurm's commands: submit arrays of tasks, list their states, cancel them."""

import os
import shlex
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from synthbench.base.errors import UserError
from synthbench.base.runtime import SECONDS_OF_NOTICE, SlurmSettings
from synthbench.engine.ray_nodes import Needs

MB_PER_GB = 1000
SECONDS_TO_ANSWER = 120
WORKING = frozenset({"RUNNING", "SUSPENDED", "STOPPED", "SIGNALING"})
"""States of a task whose process lives."""
WAITING = frozenset({"PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "SPECIAL_EXIT"})
"""States of a task that Slurm has yet to start."""
_HINTS = {
    "account": "`sacctmgr show associations user=$USER` lists your accounts",
    "partition": "`sinfo --summarize` lists the partitions",
}


@dataclass(frozen=True)
class TaskState:
    """A task's state, such as RUNNING, and why it is pending."""

    state: str
    reason: str = ""


@dataclass(frozen=True)
class Script:
    """What each task of an array runs: a Python module with arguments.

    `variables` are set in the script, not in the command line, which other users of a node can read.
    """

    module: str
    arguments: Sequence[str]
    variables: Mapping[str, str]

    def __str__(self) -> str:
        exports = (f"export {name}={shlex.quote(value)}" for name, value in self.variables.items())
        # `exec`: Slurm signals the script's own process.
        command = shlex.join([sys.executable, "-m", self.module, *self.arguments])
        return "\n".join(["#!/bin/bash", *exports, f"exec {command}", ""])


@dataclass(frozen=True)
class Slurm:
    """The tasks of one run, which Slurm knows by the name `name`; their logs go to the folder `logs`."""

    name: str
    settings: SlurmSettings
    logs: Path

    def check(self, script: Script, needs: Needs) -> None:
        """Raise UserError if Slurm would refuse a task with this script and these needs."""
        self._sbatch(script, needs, 1, "--test-only")

    def submit(self, script: Script, needs: Needs, number: int) -> str:
        """Submit an array of `number` tasks, and return its id; raises UserError if Slurm refuses it."""
        return self._sbatch(script, needs, number, "--parsable").strip().partition(";")[0]

    def tasks(self) -> dict[str, TaskState] | None:
        """Return the tasks that Slurm still knows, by id (ARRAY_INDEX); None if Slurm does not answer.

        Raises UserError if Slurm's commands are not installed here.
        """
        command = ("squeue", "--noheader", "--array", "--states=all", f"--name={self.name}")
        found = _called(*command, "--format=%i|%T|%r")
        if found.returncode:
            return None
        rows = (line.split("|", 2) for line in found.stdout.splitlines() if line.count("|") > 1)
        return {task: TaskState(state, reason) for task, state, reason in rows}

    def cancel(self) -> None:
        """Cancel all tasks of the run, if Slurm answers."""
        _called("scancel", f"--name={self.name}")

    def _sbatch(self, script: Script, needs: Needs, number: int, *options: str) -> str:
        chosen = {"partition": self.settings.partition, "account": self.settings.account}
        command = [
            *("sbatch", *options, f"--job-name={self.name}", f"--array=0-{number - 1}"),
            *(f"--output={self.logs}/%A_%a.log", "--open-mode=append"),
            *("--requeue", f"--signal=B:USR1@{SECONDS_OF_NOTICE}", f"--time={self.settings.time}"),
            *("--nodes=1", "--ntasks=1", f"--cpus-per-task={needs.cpus}"),
            f"--mem={int(needs.memory_gb * MB_PER_GB)}M",
            *([f"--gpus-per-node={needs.gpus:g}"] if needs.gpus else []),
            *(f"--{key}={value}" for key, value in chosen.items() if value),
        ]
        found = _called(*command, text=str(script))
        if found.returncode:
            raise UserError(_refusal(found.stderr or found.stdout, chosen, needs))
        return found.stdout


def requeue(task: str) -> None:
    """Put the calling task back into Slurm's queue; `task` is its id."""
    _called("scontrol", "requeue", task)


def _called(*command: str, text: str = "") -> "subprocess.CompletedProcess[str]":
    try:
        return subprocess.run(
            command, input=text, capture_output=True, text=True, timeout=SECONDS_TO_ANSWER, check=False
        )
    except FileNotFoundError:
        raise UserError(
            f"runtime.executor slurm needs Slurm's commands, and there is no {command[0]} here; run it on a"
            " login node of the cluster"
        ) from None
    except subprocess.TimeoutExpired:
        said = f"{command[0]}: error: no answer within {SECONDS_TO_ANSWER} s"
        return subprocess.CompletedProcess(command, os.EX_TEMPFAIL, "", said)


def _refusal(said: str, chosen: Mapping[str, str], needs: Needs) -> str:
    """Return one line: why Slurm refused an array, and which key of the experiment file to change."""
    lines = (line.partition(" error: ")[2] or line for line in map(str.strip, said.splitlines()) if line)
    reason = "; ".join(dict.fromkeys(lines)) or "no reason given"
    for key, hint in _HINTS.items():
        if key in reason.lower():
            value = f" {chosen[key]}" if chosen[key] else ""
            return f"runtime.slurm.{key}{value}: Slurm refuses it: {reason}; {hint}"
    return (
        f"runtime.slurm: Slurm refuses tasks with {needs}: {reason}; state less in runtime.resources, or"
        " another partition"
    )
