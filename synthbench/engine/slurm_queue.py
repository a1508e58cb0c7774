"""The queue between a run and its Slurm tasks: objects of the shared store.

`slurm/RUN/` holds for each job `jobs/GPUS/NUMBER`, then `claims/NUMBER`, which only one task can create, and
`ended/NUMBER` with its outcome. `refused/TASK` says why a task can't work. `code` names the run's version of
the code; without `code`, the run is over.
Others may write to the store, so pickles are signed with the run's key, which only its tasks get.
"""

import hashlib
import hmac
import pickle
import uuid
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from synthbench.base.durability import DamagedFileError
from synthbench.base.errors import UserError
from synthbench.base.patterns import linear_pattern
from synthbench.engine.jobs import JobOutcome, StageJob
from synthbench.engine.patience import PatientObjects

KEY_VARIABLE = "SYNTHBENCH_SLURM_KEY"
"""The environment variable that gives a task the run's key."""
FOLDER = "slurm"
SECONDS_BETWEEN_LOOKS = 2.0
"""Seconds between listings of the queue, each a request to the store."""
_KEY = linear_pattern(r"slurm/[0-9a-f]{32}/(jobs/[0-9]{1,3}|claims|ended|refused)/([0-9_]{1,40})")


@dataclass(frozen=True)
class Left:
    """Why a task left its job unfinished; `is_loss`: the task died, which counts as a failed try."""

    reason: str
    is_loss: bool = False


@dataclass(frozen=True)
class Entries:
    """A listing of the queue.

    `jobs`: number of GPUs -> numbers of jobs. `claims` and `ended`: numbers of the jobs taken and ended.
    `refused`: ids of the tasks that can't work.
    """

    is_open: bool = False
    jobs: dict[int, list[int]] = field(default_factory=dict)
    claims: frozenset[int] = frozenset()
    ended: frozenset[int] = frozenset()
    refused: tuple[str, ...] = ()


@dataclass(frozen=True)
class Queue:
    """A run's jobs, by number. Methods raise UserError if the store can't be used."""

    objects: PatientObjects
    run: str = field(default_factory=lambda: uuid.uuid4().hex)
    key: bytes = field(default_factory=lambda: uuid.uuid4().bytes + uuid.uuid4().bytes, repr=False)

    def open(self, code: str) -> None:
        """Open the queue to tasks that have this code."""
        self.objects.write(*self._signed("code", code))

    def code(self) -> str:
        """Return the run's code; "" if the run is over."""
        return self._unsigned("code") or ""

    def put(self, number: int, gpus: int, job: StageJob) -> None:
        """Add a job for a task with `gpus` GPUs."""
        self.objects.write(*self._signed(f"jobs/{gpus}/{number}", job))

    def look(self) -> Entries:
        """List the queue, in one request."""
        jobs: dict[int, list[int]] = {}
        found: dict[str, list[str]] = {"claims": [], "ended": [], "refused": []}
        names = [entry.key for entry in self.objects.list(f"{FOLDER}/{self.run}/")]
        for name in names:
            if matched := _KEY.fullmatch(name):
                kind, number = matched.groups()
                if kind in found:
                    found[kind].append(number)
                elif number.isdecimal():
                    jobs.setdefault(int(kind.partition("/")[2]), []).append(int(number))
        claims, ended = (
            frozenset(map(int, filter(str.isdecimal, found[kind]))) for kind in ("claims", "ended")
        )
        return Entries(self._name("code") in names, jobs, claims, ended, tuple(sorted(found["refused"])))

    def claim(self, number: int, task: str) -> bool:
        """Take a job for a task; False if another task has taken it."""
        return self.objects.create(*self._signed(f"claims/{number}", task))

    def taker(self, number: int) -> str:
        """Return the task that took a job, "" if none."""
        return self._unsigned(f"claims/{number}") or ""

    def job(self, number: int, gpus: int) -> StageJob | None:
        """Return a job; if it has ended meanwhile, remove its claim and return None.

        Raises UserError if the job lacks the run's signature.
        """
        found: StageJob | None = self._unsigned(f"jobs/{gpus}/{number}")
        if found is None:
            self.objects.delete([self._name(f"claims/{number}")])
        return found

    def end(self, number: int, outcome: JobOutcome | Left) -> None:
        """Report how a job ended, unless that is reported already."""
        self.objects.create(*self._signed(f"ended/{number}", outcome))

    def outcome(self, number: int) -> JobOutcome | Left:
        """Return how a job ended; if the report is gone, a `Left` with `is_loss`.

        Raises UserError if the report lacks the run's signature.
        """
        found = self._unsigned(f"ended/{number}")
        return found if isinstance(found, JobOutcome | Left) else Left("its outcome vanished", is_loss=True)

    def remove(self, number: int, gpus: int) -> None:
        """Remove a job, its claim and its outcome."""
        names = (f"jobs/{gpus}/{number}", f"ended/{number}", f"claims/{number}")
        self.objects.delete([self._name(name) for name in names])

    def refuse(self, task: str, reason: str) -> None:
        """Report that a task can't work."""
        self.objects.write(*self._signed(f"refused/{task}", reason))

    def refusal(self, task: str) -> str:
        """Return why a task can't work; raises UserError if the report lacks the run's signature."""
        return str(self._unsigned(f"refused/{task}") or f"Slurm's task {task} can't work; its log says why")

    def close(self) -> None:
        """Remove the queue; the run's tasks then end."""
        self.objects.delete([self._name("code")])
        self.objects.delete([entry.key for entry in self.objects.list(f"{FOLDER}/{self.run}/")])

    def _name(self, name: str) -> str:
        return f"{FOLDER}/{self.run}/{name}"

    def _signature(self, name: str, content: bytes) -> bytes:
        return hmac.digest(self.key, f"{self.run}/{name}\n".encode() + content, hashlib.sha256)

    def _signed(self, name: str, value: object) -> tuple[str, bytes]:
        content = pickle.dumps(value)
        return self._name(name), self._signature(name, content) + content

    def _unsigned(self, name: str) -> Any:  # noqa: ANN401 - what was put there
        """Return a signed object's value, None if there is none; raises UserError for a wrong signature."""
        try:
            return pickle.loads(self.objects.checked(self._name(name), partial(self._signed_part, name)))
        except FileNotFoundError:
            return None
        except DamagedFileError:
            reason = f"{self._name(name)} is not by this run or its tasks; remove it"
            raise UserError(f"{self.objects}: {reason}") from None

    def _signed_part(self, name: str, content: bytes) -> bytes:
        length = hashlib.sha256().digest_size
        if not hmac.compare_digest(content[:length], self._signature(name, content[length:])):
            raise DamagedFileError("has another signature")
        return content[length:]


def numbers(entries: Entries, gpus: int) -> Iterable[int]:
    """Return the numbers of the jobs that a task with `gpus` GPUs may take, the earliest first."""
    return sorted({*entries.jobs.get(gpus, ())} - entries.claims - entries.ended)


def remove_queues(objects: PatientObjects) -> None:
    """Remove the queues of killed runs; call it while no run is active."""
    objects.delete([entry.key for entry in objects.list(f"{FOLDER}/")])
