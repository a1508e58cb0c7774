"""Artifact keys in a shared store, and a snapshot of all artifacts."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TypeVar

from synthbench.engine.objects import ListedObject
from synthbench.engine.patience import PatientObjects
from synthbench.engine.records import STAGE_FILE, artifact_key, attempt_of, committed_identity

CONNECTIONS = 16
"""Concurrent requests when many objects are read or written."""
Given = TypeVar("Given")
Found = TypeVar("Found")


@dataclass
class Listing:
    """A snapshot of artifacts, their attempts' files, and the records read since, all by identity.

    `only`: the identities that the snapshot covers, None for all. `strays` are foreign keys, such as a file
    manager's files.
    """

    only: frozenset[str] | None = None
    commits: dict[str, ListedObject] = field(default_factory=dict)
    files: dict[str, list[ListedObject]] = field(default_factory=lambda: defaultdict(list))
    records: dict[str, bytes] = field(default_factory=dict)
    strays: list[str] = field(default_factory=list)

    def knows(self, identity: str) -> bool:
        """Return whether the snapshot covers this identity, whether or not its artifact exists."""
        return self.only is None or identity in self.only


def listing_of(objects: PatientObjects) -> Listing:
    """Return a listing of all commits, attempts' files and foreign keys; reads no records."""
    listing = Listing()
    for entry in objects.list("artifacts/"):
        if identity := committed_identity(entry.key):
            listing.commits[identity] = entry
        else:
            listing.strays.append(entry.key)
    for entry in objects.list("attempts/"):
        if found := attempt_of(entry.key):
            listing.files[found[0]].append(entry)
        else:
            listing.strays.append(entry.key)
    return listing


def attempt_key(identity: str, attempt: str, name: str = "") -> str:
    """Return the key of an attempt's file, or without `name` the prefix of all its files."""
    return f"attempts/{identity}/{attempt}/{name}"


def commit_key(identity: str) -> str:
    """Return the key of an artifact's commit."""
    return f"{artifact_key(identity)}/{STAGE_FILE}"


def at_once(function: Callable[[Given], Found], values: Iterable[Given]) -> Iterator[tuple[Given, Found]]:
    """Yield each value with the function's result, in order, computing up to CONNECTIONS concurrently."""
    given = list(values)
    if len(given) < 2:
        yield from ((value, function(value)) for value in given)
        return
    with ThreadPoolExecutor(min(CONNECTIONS, len(given))) as pool:
        yield from zip(given, pool.map(function, given), strict=True)
