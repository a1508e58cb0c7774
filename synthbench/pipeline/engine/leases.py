"""Leases: who works at what in a shared store; none rests on locks of a file system.

A lease is an object `leases/<name>/<epoch>`, which can only be created once. Its holder writes it again and
again. One that was not written for a while is expired: another process takes the name over by creating the
next epoch. A holder that was only slow may go on: a commit is create-only, so the first one counts.
"""

import json
import os
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from synthbench.errors import UserError
from synthbench.pipeline.engine.local_locks import StageBusyError, described, this_process
from synthbench.pipeline.engine.objects import Entry, Objects

FOLDER = "leases/"
LEASE_SECONDS = 60.0
"""A lease expires when it was not renewed for so long; holders renew it three times as often."""
CLOCK_SECONDS = 2.0
"""The clocks of some stores tell whole seconds only."""


@dataclass
class Lease:
    """A lease that this process holds; `left_behind` is the process it was taken over from, "" if none."""

    key: str
    content: bytes
    left_behind: str = ""


@dataclass
class Leases:
    """The leases of a store. `place` names this machine's cache, which no other machine uses."""

    objects: Objects
    place: str
    seconds: float = LEASE_SECONDS
    _held: dict[str, Lease] = field(default_factory=dict)
    _guard: threading.Lock = field(default_factory=threading.Lock)
    _renewer: threading.Thread | None = None
    _clock: tuple[float, float] | None = None
    """When the store's clock was read, by this process's clock, and what it said."""

    @contextmanager
    def hold(self, name: str, label: str) -> Iterator[str]:
        """Hold a lease; yield the process that it was taken over from, "" if none.

        Raises StageBusyError if another process holds it.
        """
        lease = self._acquire(name, label)
        with self._guard:
            self._held[lease.key] = lease
            if self._renewer is None:
                self._renewer = threading.Thread(target=self._renew, daemon=True)
                self._renewer.start()
        try:
            yield lease.left_behind
        finally:
            with self._guard:
                del self._held[lease.key]
            self.objects.delete([lease.key])

    def live(self, name: str = "") -> dict[str, str]:
        """Return the leases that have not expired, of one name or of all: key -> who holds it."""
        return {
            entry.key: self._holder(entry.key)
            for entry in self._entries(name)
            if self._is_live(entry) and not self._died_here(entry.key)
        }

    def _acquire(self, name: str, label: str) -> Lease:
        earlier = sorted(self._entries(name), key=lambda entry: entry.key)
        left_behind = ""
        for entry in earlier:
            if self._is_live(entry) and not self._died_here(entry.key):
                raise StageBusyError(self._holder(entry.key))
            left_behind = self._holder(entry.key)
        epoch = int(earlier[-1].key.rpartition("/")[2]) + 1 if earlier else 0
        holder = {**this_process(label), "place": self.place, "token": uuid.uuid4().hex}
        lease = Lease(f"{FOLDER}{name}/{epoch:08}", json.dumps(holder).encode(), left_behind)
        if not self.objects.create(lease.key, lease.content):
            raise StageBusyError(self._holder(lease.key))
        known = {entry.key for entry in earlier}
        # After a takeover has ended, another epoch may begin beside this one: each sees the other and yields.
        others = [each for each in self._entries(name) if each.key not in known and each.key != lease.key]
        if others:
            self.objects.delete([lease.key])
            raise StageBusyError(self._holder(others[0].key))
        self.objects.delete(known)
        return lease

    def _entries(self, name: str) -> list[Entry]:
        return list(self.objects.list(f"{FOLDER}{name}/" if name else FOLDER))

    def _is_live(self, entry: Entry) -> bool:
        return self._now() - entry.modified <= self.seconds + CLOCK_SECONDS

    def _now(self) -> float:
        """Return the time by the store's clock: those of machines may differ."""
        if self._clock is None or time.monotonic() - self._clock[0] > self.seconds:
            key = f"clock/{uuid.uuid4().hex}/0"
            self.objects.write(key, b"now")
            (entry,) = self.objects.list(f"{key.rpartition('/')[0]}/")
            self.objects.delete([key])
            self._clock = (time.monotonic(), entry.modified)
        read_at, time_then = self._clock
        return time_then + time.monotonic() - read_at

    def _holder(self, key: str) -> str:
        return described(self._content(key))

    def _died_here(self, key: str) -> bool:
        """Tell whether the holder was a process of this machine that is gone: nobody need wait for it."""
        try:
            holder = json.loads(self._content(key))
            return bool(holder["place"] == self.place and not _is_running(holder["pid"]))
        except (ValueError, KeyError, TypeError):
            return False

    def _content(self, key: str) -> bytes:
        try:
            return self.objects.read(key)
        except FileNotFoundError:
            return b""

    def _renew(self) -> None:
        while True:
            time.sleep(self.seconds / 3)
            with self._guard:
                held = list(self._held.values())
            for lease in held:
                try:
                    with self._guard:
                        if lease.key in self._held:
                            self.objects.write(lease.key, lease.content)
                except UserError:
                    continue  # the next round tries again; if the lease expires, the first commit counts


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # another user's
        return True
    return True
