"""Leases across machines, without file locks or synchronised clocks.

A lease is an object `leases/<name>/<epoch>`, which can only be created once. Its holder renews it by
rewriting it with a new count. Waiting processes watch it: a lease unchanged for a while, by the watcher's own
clock, has expired. Another process takes the name over by creating the next epoch. A slow former holder may
go on: commits are create-only, so the first one counts.
"""

import json
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from socket import gethostname

from synthbench.base.durability import write_atomically
from synthbench.base.errors import UserError
from synthbench.base.patterns import linear_pattern
from synthbench.engine.leases import CLEANING, HeldLease, StageBusyError, described, this_process
from synthbench.engine.listing import at_once
from synthbench.engine.objects import ListedObject
from synthbench.engine.patience import Objects, PatientObjects
from synthbench.llm.database import lock

FOLDER = "leases/"
LEASE_SECONDS = 60.0
"""Seconds until a lease without renewal expires; holders renew it three times as often."""
SECONDS_BETWEEN_LOOKS = 1.0
MOST_BYTES = 10_000
"""Maximum size of a lease in bytes."""
_KEY = linear_pattern(r"leases/([0-9a-z-]{1,80})/([0-9]{8,12})")


@dataclass
class Lease:
    """A lease that this process holds; `left_behind` describes the previous, dead holder, "" if none."""

    key: str
    holder: dict[str, object]
    left_behind: str = ""
    num_renewals: int = 0

    @property
    def content(self) -> bytes:
        """The lease's content as JSON: its holder, and how often it was renewed."""
        return json.dumps({**self.holder, "renewed": self.num_renewals}).encode()


@dataclass
class Watch:
    """This process's observations of a store's leases, shared by all its jobs."""

    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    _seen: dict[str, tuple[ListedObject, bytes, float]] = field(default_factory=dict)
    """Each lease's last observed content, and since when it is unchanged, by this process's clock."""
    _guard: threading.Lock = field(default_factory=threading.Lock)

    def age(self, entry: ListedObject, content: bytes) -> float:
        """Return for how many seconds this process has seen the lease unchanged."""
        with self._guard:
            now, seen = self.clock(), self._seen.get(entry.key)
            if seen is None or seen[:2] != (entry, content):
                self._seen[entry.key] = seen = (entry, content, now)
            return now - seen[2]

    def forget(self, key: str) -> None:
        """Forget a lease that no longer exists."""
        with self._guard:
            self._seen.pop(key, None)


@cache
def watch_of(store: str) -> Watch:
    """Return this process's Watch of a store's leases."""
    return Watch()


@dataclass
class SharedLeases:
    """The leases of a shared store. `place` is the globally unique id of this machine's cache."""

    store: PatientObjects
    place: str
    seconds: float = LEASE_SECONDS
    watch: Watch = field(default_factory=Watch)
    _held: dict[str, Lease] = field(default_factory=dict)
    _released: set[object] = field(default_factory=set)
    """Tokens of leases that this process has released: a late renewal may recreate their objects."""
    _guard: threading.Lock = field(default_factory=threading.Lock)
    _renewer: threading.Thread | None = None

    @property
    def objects(self) -> PatientObjects:
        """Access with retries and short time-outs: a stalled request costs only seconds."""
        return self.store.quick

    @property
    def impatient(self) -> Objects:
        """Access without retries: after a failure, the next renewal tries again, or the lease expires."""
        return self.store.inner.quick

    @contextmanager
    def hold(self, name: str, label: str) -> Iterator[str]:
        """Hold a name; yield a description of the dead process that held it before, "" if none.

        Raises StageBusyError if the name is held, UserError if the store can't be used.
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
                self._released.add(lease.holder["token"])
            with suppress(UserError):  # a lease that can't be deleted expires
                self.impatient.delete([lease.key])

    def holder(self, name: str) -> str:
        """Return a description of a name's holder, "" if free; a lease counts as live when first seen."""
        live = (content for entry, content in self._found(name) if self._is_live(entry, content))
        return next((described(content) for content in live), "")

    def worker(self, say: Callable[[str], None]) -> str:
        """Return a description of a live holder of any lease but a clean-up's; "" once all have expired.

        Watches the leases until one is renewed or all have expired, for at most about two lease lifetimes.
        `say` reports which process it waits for.
        """
        began = self.watch.clock()
        first: dict[str, bytes] = {}
        cleaning = f"{FOLDER}{CLEANING}/"
        while found := [each for each in self._found() if not each[0].key.startswith(cleaning)]:
            contents = {entry.key: content for entry, content in found}
            live = [entry.key for entry, content in found if self._is_live(entry, content)]
            if not live:
                return ""
            first = first or contents
            alive = [key for key in live if self._runs_here(contents[key]) or contents[key] != first.get(key)]
            if alive or self.watch.clock() - began > 2 * self.seconds:
                return described(contents[(alive or live)[0]])
            if first is contents:
                say(f"waiting up to {self.seconds:.0f} s for a sign of {described(contents[live[0]])}")
            self.watch.sleep(min(SECONDS_BETWEEN_LOOKS, self.seconds / 3))
        return ""

    def held(self) -> list[HeldLease]:
        """Return all leases, expired ones too; leaves out those of this machine's dead processes.

        A lease's age is this machine's time minus the store's time of the last renewal.
        """
        now, found = time.time(), list[HeldLease]()
        for entry, content in self._found():
            if self._runs_here(content) is not False:
                found.append((entry.key.split("/")[1], content, max(0.0, now - entry.modified)))
        return found

    def remove_dead(self, name: str = "") -> str:
        """Remove the expired leases and those of this machine's dead processes.

        With `name`, removes only leases of this name. Returns a description of the last removed lease's
        holder, "" if none was removed.
        """
        holder = ""
        for entry, content in self._found(name):
            if not self._is_live(entry, content):
                self._delete(entry.key)
                holder = described(content)
        return holder

    def _acquire(self, name: str, label: str) -> Lease:
        earlier = sorted(self._found(name), key=lambda each: _epoch(each[0].key))
        left_behind = ""
        for entry, content in earlier:
            if self._is_live(entry, content):
                raise StageBusyError(described(content))
            left_behind = described(content)
        epoch = _epoch(earlier[-1][0].key) + 1 if earlier else 0
        holder = {**this_process(label), "place": self.place, "token": uuid.uuid4().hex}
        lease = Lease(f"{FOLDER}{name}/{epoch:08}", holder, left_behind)
        if not self.objects.create(lease.key, lease.content):
            raise StageBusyError(described(self._content(lease.key)))
        known = {entry.key for entry, _ in earlier}
        # After a takeover ends, two processes may create different epochs: each sees the other and yields.
        others = [each for each in self._entries(name) if each.key not in known and each.key != lease.key]
        if others:
            self.objects.delete([lease.key])
            raise StageBusyError(described(self._content(others[0].key)))
        self._delete(*known)
        return lease

    def _entries(self, name: str = "") -> list[ListedObject]:
        """Return the leases of a name, or all; ignores objects that are no leases."""
        found = self.objects.list(f"{FOLDER}{name}/" if name else FOLDER)
        return [entry for entry in found if _KEY.fullmatch(entry.key)]

    def _found(self, name: str = "") -> Iterator[tuple[ListedObject, bytes]]:
        """Yield the leases of a name, or all, with their contents; leaves out leases released meanwhile."""
        for entry in self._entries(name):
            with suppress(FileNotFoundError):
                yield entry, self.objects.read(entry.key)[:MOST_BYTES]

    def _is_live(self, entry: ListedObject, content: bytes) -> bool:
        """Return whether a lease has not expired and its holder is not known to be dead."""
        return self._runs_here(content) is not False and self.watch.age(entry, content) <= self.seconds

    def _runs_here(self, content: bytes) -> bool | None:
        """Return whether the holder is a live process of this machine; None if it may be on another one.

        Also False for a lease that this process has released. Cache id and host must both match, since
        machines with a common home folder share one cache.
        """
        import psutil

        try:
            holder = json.loads(content)
            if holder.get("token") in self._released:
                return False
            is_here = (holder["place"], holder["host"]) == (self.place, gethostname())
            return bool(psutil.pid_exists(holder["pid"])) if is_here else None
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError):
            return None

    def _content(self, key: str) -> bytes:
        try:
            return self.objects.read(key)[:MOST_BYTES]
        except FileNotFoundError:
            return b""

    def _delete(self, *keys: str) -> None:
        self.objects.delete(keys)
        for key in keys:
            self.watch.forget(key)

    def _renew(self) -> None:
        """Renew all held leases three times per lifetime, until none is held."""
        while True:
            time.sleep(self.seconds / 3)
            with self._guard:
                held = list(self._held.values())
                if not held:
                    self._renewer = None
                    return
            list(at_once(self._renew_one, held))

    def _renew_one(self, lease: Lease) -> None:
        lease.num_renewals += 1
        with suppress(UserError):  # the next round retries; if the lease expires, the first commit counts
            self.impatient.write(lease.key, lease.content)
        with self._guard:
            is_held = lease.key in self._held
        if not is_held:  # released meanwhile: the request may have recreated the lease
            with suppress(UserError):
                self.impatient.delete([lease.key])


def cache_id(root: Path) -> str:
    """Return the globally unique id of this machine's cache; creates it at the first call."""
    file = root / "place"
    if not file.exists():
        root.mkdir(parents=True, exist_ok=True)
        with lock(file):
            if not file.exists():
                write_atomically(file, uuid.uuid4().hex)
    return file.read_text(encoding="utf-8")


def _epoch(key: str) -> int:
    return int(key.rpartition("/")[2])
