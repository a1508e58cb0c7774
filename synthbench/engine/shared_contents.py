"""The content of a shared store: artifacts, unfinished work, leftovers of killed runs, notes on use."""

import json
import time
import uuid
from collections import defaultdict
from collections.abc import Collection, Iterator
from contextlib import suppress

from synthbench.base.durability import DamagedFileError
from synthbench.base.grouping import grouped
from synthbench.engine.holdings import DISCARDED, UNFINISHED, Holding, StoreEntry
from synthbench.engine.leases import CLEANING
from synthbench.engine.listing import Listing
from synthbench.engine.local_artifacts import LocalArtifacts
from synthbench.engine.objects import ListedObject
from synthbench.engine.patience import PatientObjects
from synthbench.engine.records import committed_identity, is_identity
from synthbench.engine.shared_artifacts import SharedArtifacts
from synthbench.engine.shared_leases import FOLDER as LEASES
from synthbench.engine.shared_work import SharedWork

Attempt = tuple[str, str]
"""A stage identity and an attempt id; instead of the id, UNFINISHED for work saved after the commit."""


class SharedContents:
    """A shared store's content.

    An artifact's last use is its commit or, if later, the start of the last run that needed it.
    """

    def __init__(
        self, objects: PatientObjects, artifacts: SharedArtifacts, copies: LocalArtifacts, work: SharedWork
    ) -> None:
        self._objects = objects
        self._artifacts = artifacts
        self._copies = copies
        self._work = work

    def exists(self) -> bool:
        """Return whether the store holds any object."""
        return bool(self._objects.list("artifacts/") or self._objects.list(""))

    def entries(self, beginning: str = "") -> Iterator[StoreEntry]:
        """Yield the artifacts whose identities start with `beginning`; here, the last use is the commit."""
        is_folder = len(beginning) > 1 and is_identity(beginning.ljust(64, "0"))
        for entry in self._objects.list(f"artifacts/{beginning[:2]}/" if is_folder else "artifacts/"):
            identity = committed_identity(entry.key)
            if identity and identity.startswith(beginning):
                yield StoreEntry(identity, entry.modified)

    def measured(self) -> Iterator[StoreEntry]:
        """Yield all artifacts with last use and size in bytes, in order of identity."""
        with self._artifacts.listed() as listing:
            used, behind = self._last_used(), self._seconds_behind()
            for identity, commit in sorted(listing.commits.items()):
                attempt = self._artifacts.attempt(identity)
                files = listing.files.get(identity, [])
                size = commit.size + sum(each.size for each in files if _attempt(each) == (identity, attempt))
                yield StoreEntry(identity, max(commit.modified, used.get(identity, 0.0)) + behind, size)

    def unfinished(self) -> Iterator[StoreEntry]:
        """Yield the unfinished work of stages without an artifact, with last use and size in bytes."""
        with self._artifacts.listed() as listing:
            used, behind = self._last_used(), self._seconds_behind()
            for identity, entries in sorted(self._saved().items()):
                if identity not in listing.commits:
                    last_used = max(used.get(identity, 0.0), *(each.modified for each in entries))
                    yield StoreEntry(identity, last_used + behind, sum(each.size for each in entries))

    def strays(self) -> list[str]:
        """Return the keys of foreign objects among artifacts and attempts, such as a file manager's files."""
        with self._artifacts.listed() as listing:
            return sorted(listing.strays)

    def mark_used(self, identities: Collection[str]) -> None:
        """Write a note that a run needs these artifacts now."""
        self._objects.write(f"used/{uuid.uuid4().hex}.json", json.dumps(sorted(identities)).encode())

    def lost(self) -> list[Holding]:
        """Return attempts without a commit, and saved work of stages that have an artifact.

        Call it while no run is active: attempts in progress have no commit, either.
        """
        with self._artifacts.listed() as listing:
            return [
                Holding(
                    f"{identity}-{attempt}",
                    self._copies.folder(identity),
                    DISCARDED,
                    sum(each.size for each in files),
                    last_used=0.0,
                )
                for (identity, attempt), files in self._lost(listing).items()
            ]

    def remove_lost(self) -> None:
        """Delete all that `lost` lists, and the notes of runs whose artifacts are all gone."""
        with self._artifacts.listed() as listing:
            for files in self._lost(listing).values():
                self._objects.delete([each.key for each in files])
            for entry in self._objects.list("used/"):
                if listing.commits.keys().isdisjoint(self._needed_by(entry)):
                    self._objects.delete([entry.key])

    def _lost(self, listing: Listing) -> dict[Attempt, list[ListedObject]]:
        found: dict[Attempt, list[ListedObject]] = defaultdict(list)
        for identity, files in sorted(listing.files.items()):
            committed = self._artifacts.attempt(identity)
            if committed is None and identity in listing.commits:
                continue  # the damaged record does not tell which attempt it commits
            for each in files:
                if (attempt := _attempt(each)) != (identity, committed):
                    found[attempt].append(each)
        for identity, entries in self._saved().items():
            if identity in listing.commits:
                found[identity, UNFINISHED] = entries
        return found

    def _saved(self) -> dict[str, list[ListedObject]]:
        """Return a stage's identity -> the objects of its unfinished work."""
        return grouped(self._work.entries())

    def _seconds_behind(self) -> float:
        """Return the seconds that the store's clock is behind this machine's clock; 0 outside a clean-up.

        A clean-up has just written its lease, so the lease's time is the store's present time.
        """
        seen = [entry.modified for entry in self._objects.list(f"{LEASES}{CLEANING}/")]
        return time.time() - max(seen) if seen else 0.0

    def _last_used(self) -> dict[str, float]:
        """Return identity -> time of the last note of a run that needs the artifact."""
        used: dict[str, float] = {}
        for entry in self._objects.list("used/"):
            for identity in self._needed_by(entry):
                used[identity] = max(used.get(identity, 0.0), entry.modified)
        return used

    def _needed_by(self, note: ListedObject) -> list[str]:
        """Return the identities in a run's note; [] if it is damaged or gone."""
        found = None
        with suppress(FileNotFoundError, DamagedFileError):
            found = self._objects.checked(note.key, _parsed)
        return [each for each in found if is_identity(each)] if isinstance(found, list) else []


def _parsed(note: bytes) -> object:
    try:
        return json.loads(note)
    except (ValueError, RecursionError) as error:
        raise DamagedFileError("is unreadable") from error


def _attempt(file: ListedObject) -> Attempt:
    """Return the identity and attempt of a listed file."""
    _, identity, attempt, _ = file.key.split("/", 3)
    return identity, attempt
