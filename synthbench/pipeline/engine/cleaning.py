"""Cleaning a store: what it holds, what no experiment uses, removing that, and finding damage.

A run touches the `stage.json` of each artifact that it needs, so its modification time is the last use. The
store's addresses say what an experiment's last run used.
"""

import os
import shutil
import socket
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from synthbench.durability import DamagedFileError
from synthbench.errors import UserError, did_you_mean
from synthbench.pipeline.engine.result_cache import remove_orphans
from synthbench.pipeline.engine.store import (
    STAGE_FILE,
    ArtifactDamagedError,
    Store,
    describe_holder,
    write_holder,
)
from synthbench.runtime import Progress

CLEANING = "cleaning"
RUN = "run-"
UNFINISHED = "unfinished"
DISCARDED = "discarded"
SECONDS_PER_DAY = 24 * 60 * 60


@dataclass(frozen=True)
class Holding:
    """An artifact, unfinished work or the rest of a removal; size in bytes, last use in seconds since 1970.

    `kind` is the stage's, or UNFINISHED, DISCARDED or "damaged".
    """

    identity: str
    folder: Path
    kind: str
    size: int
    last_used: float


@dataclass(frozen=True)
class Inventory:
    """All that a store holds, and the identities behind each experiment's last run."""

    holdings: tuple[Holding, ...]
    used: Mapping[str, frozenset[str]]

    def of(self, experiment: str) -> list[Holding]:
        """Return what an experiment's last run used."""
        return [each for each in self.holdings if each.identity in self.used[experiment]]

    def only_of(self, experiments: Collection[str]) -> list[Holding]:
        """Return what only these experiments' last runs used."""
        own = self._used_by(experiments) - self._used_by(self.used.keys() - set(experiments))
        return [each for each in self.holdings if each.identity in own]

    def unused(self) -> list[Holding]:
        """Return what no experiment's last run used."""
        used = self._used_by(self.used)
        return [each for each in self.holdings if each.identity not in used]

    def removable(self, days: float, experiments: Collection[str] = ()) -> list[Holding]:
        """Return what has been unused for so many days, and all that only these experiments used.

        Raises UserError if an experiment is unknown.
        """
        unknown = [name for name in experiments if name not in self.used]
        if unknown:
            where = "the store knows no such experiment"
            raise UserError(*(f"{name}: {where}{did_you_mean(name, self.used)}" for name in unknown))
        limit = time.time() - days * SECONDS_PER_DAY
        return [*(each for each in self.unused() if each.last_used <= limit), *self.only_of(experiments)]

    def _used_by(self, experiments: Iterable[str]) -> frozenset[str]:
        return frozenset().union(*(self.used[name] for name in experiments))


def take_inventory(store: Store) -> Inventory:
    """List what a store holds; raises UserError if it is unknown what an experiment uses."""
    inputs: dict[str, tuple[str, ...]] = {}
    holdings: list[Holding] = []
    for folder in sorted((store.root / "artifacts").glob("*/*")):
        spec = (store.info(folder.name) or {}).get("spec", {})
        inputs[folder.name] = tuple(spec.get("inputs", {}).values())
        holdings.append(_holding(folder, str(spec.get("kind", "damaged"))))
    holdings += [_holding(folder, UNFINISHED) for folder in sorted((store.root / "partial").glob("*"))]
    holdings += [_holding(folder, DISCARDED) for folder in sorted((store.root / "discarded").glob("*"))]
    names = store.experiments()
    used = {name: _with_inputs(_addresses(store, name), inputs) for name in names}
    return Inventory(tuple(holdings), used)


def _addresses(store: Store, experiment: str) -> Iterable[str]:
    """Return the identities that an experiment's last run used."""
    try:
        return store.addresses(experiment).values()
    except DamagedFileError as damage:
        raise UserError(
            f"{store.addresses_file(experiment)} {damage}, so it is unknown what {experiment} "
            "uses; run it again, or remove the file"
        ) from damage


def _holding(folder: Path, kind: str) -> Holding:
    files = [file.lstat() for file in folder.rglob("*") if file.is_file()]
    size = sum(file.st_size for file in files)
    if kind == DISCARDED:
        return Holding(folder.name, folder, kind, size, last_used=0.0)
    touched = folder / STAGE_FILE if (folder / STAGE_FILE).is_file() else folder
    # Unfinished work is as old as its youngest file: the folder's own time is that of its start.
    ages = [file.st_mtime for file in files] if kind == UNFINISHED else []
    return Holding(folder.name, folder, kind, size, max([touched.stat().st_mtime, *ages]))


def _with_inputs(identities: Iterable[str], inputs: Mapping[str, Iterable[str]]) -> frozenset[str]:
    reached: set[str] = set()
    waiting = list(identities)
    while waiting:
        identity = waiting.pop()
        if identity not in reached:
            reached.add(identity)
            waiting += inputs.get(identity, ())
    return frozenset(reached)


def clean(store: Store, days: float, experiments: Collection[str] = ()) -> list[Holding]:
    """Remove what `Inventory.removable` returns, and what killed removals left; return what was removed.

    Cached figures of removed data go, too. Folders are renamed before they are deleted, so a kill leaves no
    half artifact. Raises UserError, and removes nothing, if a run or another clean-up works in the store.
    """
    with exclusive(store):
        removable = take_inventory(store).removable(days, experiments)
        for holding in removable:
            if holding.kind != DISCARDED:
                store.set_aside(holding.folder)
        for name in experiments:
            store.forget_addresses(name)
        remove_orphans(store)
    for grave in (store.root / "discarded").glob("*"):
        shutil.rmtree(grave, ignore_errors=True)
    return removable


@contextmanager
def run_in_progress(store: Store, label: str, identities: Iterable[str]) -> Iterator[None]:
    """Keep clean-ups away while a run works, and mark what it needs as used now.

    Waits for a clean-up that has begun.
    """
    from filelock import FileLock

    folder = store.root / "locks"
    folder.mkdir(parents=True, exist_ok=True)
    name = f"{RUN}{socket.gethostname()}-{os.getpid()}-{time.time_ns()}"
    with FileLock(folder / f"{name}.lock"):
        write_holder(folder / f"{name}.json", label)
        try:
            with FileLock(folder / f"{CLEANING}.lock"):
                _touch(store, identities)
            yield
        finally:
            (folder / f"{name}.json").unlink(missing_ok=True)
            (folder / f"{name}.lock").unlink(missing_ok=True)


def _touch(store: Store, identities: Iterable[str]) -> None:
    for identity in identities:
        for path in (store.folder(identity) / STAGE_FILE, store.root / "partial" / identity):
            with suppress(OSError):
                os.utime(path)


@contextmanager
def exclusive(store: Store) -> Iterator[None]:
    """Make new runs wait; raises UserError if a run or another clean-up is at work."""
    from filelock import FileLock, Timeout

    folder = store.root / "locks"
    folder.mkdir(parents=True, exist_ok=True)
    with ExitStack() as held:
        try:
            held.enter_context(FileLock(folder / f"{CLEANING}.lock", timeout=0))
        except Timeout:
            raise UserError(f"{store.root}: another `clean` is running; nothing was removed") from None
        for lock in sorted(folder.glob("[!.]*.lock")):
            if lock.stem == CLEANING:
                continue
            try:
                with FileLock(lock, timeout=0):
                    if lock.stem.startswith(RUN):  # of a run that was killed: no other will have its name
                        lock.with_suffix(".json").unlink(missing_ok=True)
                        lock.unlink(missing_ok=True)
            except Timeout:
                holder = describe_holder(lock.with_suffix(".json"))
                raise UserError(f"{store.root}: {holder} works there; nothing was removed") from None
        yield


@dataclass(frozen=True)
class Damage:
    """A damaged artifact: its identity, its stage's label, and which file is damaged how."""

    identity: str
    label: str
    what: str


def discard_damaged(store: Store, progress: Progress) -> tuple[int, list[Damage]]:
    """Hash every artifact and discard the damaged ones; return the number of artifacts, and the damage.

    Raises UserError, and discards nothing, if something is damaged while a run or a clean-up works there.
    """
    identities = sorted(folder.name for folder in (store.root / "artifacts").glob("*/*"))
    found: list[Damage] = []
    with progress.task("reading artifacts", len(identities)) as task:
        for identity in identities:
            found += _damage(store, identity)
            task.advance()
    if found:
        with exclusive(store):
            # A damaged artifact may have been computed again meanwhile.
            found = [again for damage in found for again in _damage(store, damage.identity)]
            for damage in found:
                store.discard(damage.identity)
    return len(identities), found


def _damage(store: Store, identity: str) -> list[Damage]:
    try:
        if store.has(identity):
            store.check(identity, thorough=True)
    except ArtifactDamagedError as damage:
        label = str((store.info(identity) or {}).get("label", "stage unknown"))
        return [Damage(identity, label, str(damage))]
    return []
