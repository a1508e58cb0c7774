"""The files of attempts in a shared store: each attempt to compute a stage has a prefix of its own."""

import os
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from synthbench.base.durability import file_hash
from synthbench.engine.objects import ListedObject, Objects
from synthbench.engine.records import STAGE_FILE, attempt_of, committed_identity

CONNECTIONS = 16
"""Requests at a time, where many objects are read or written."""
TRIES = 3
"""A file that arrives damaged is fetched again: the network may have cut it."""
Given = TypeVar("Given")
Found = TypeVar("Found")


@dataclass
class Listing:
    """The objects of all artifacts and attempts at one moment, and the records that were read since.

    `strays` are keys that are no artifact's: a file manager's files, and what strangers left.
    """

    commits: dict[str, ListedObject] = field(default_factory=dict)
    files: dict[str, list[ListedObject]] = field(default_factory=lambda: defaultdict(list))
    records: dict[str, bytes] = field(default_factory=dict)
    strays: list[str] = field(default_factory=list)


def listing_of(objects: Objects) -> Listing:
    """List all commits and attempts."""
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


@dataclass(frozen=True)
class Attempts:
    """Puts attempts' files into objects, and brings them to this machine."""

    objects: Objects

    def upload(self, identity: str, attempt: str, output: Path, names: Iterable[str]) -> None:
        """Write files of an output as those of an attempt; files that are there already are written again."""
        for _ in at_once(
            lambda name: self.objects.upload(key(identity, attempt, name), output / name), names
        ):
            pass

    def delete(self, identity: str, attempt: str) -> None:
        """Remove the files of one attempt."""
        self.objects.delete([entry.key for entry in self.objects.list(f"attempts/{identity}/{attempt}/")])

    def digest(self, identity: str, attempt: str, name: str) -> str:
        """Return the SHA-256 of a file; raises FileNotFoundError."""
        return self.objects.digest(key(identity, attempt, name))

    def download(self, identity: str, record: Mapping[str, Any], name: str, file: Path) -> str:
        """Bring a recorded file to this machine; return what is wrong with it, "" if nothing is."""
        recorded = record["files"].get(name)
        if recorded is None:
            return f"{name} is missing"
        file.parent.mkdir(parents=True, exist_ok=True)
        new = file.with_name(f".{uuid.uuid4().hex}")
        try:
            for _ in range(TRIES):
                fault = self._fault((identity, record["attempt"], name), new, recorded)
                if not fault:
                    os.utime(new, ns=(recorded["mtime_ns"], recorded["mtime_ns"]))
                    new.replace(file)
                    return ""
            return fault
        finally:
            new.unlink(missing_ok=True)

    def _fault(self, of: tuple[str, str, str], new: Path, recorded: Mapping[str, Any]) -> str:
        try:
            self.objects.download(key(*of), new, recorded["size"])
        except FileNotFoundError:
            return f"{of[2]} is missing"
        return "" if file_hash(new) == recorded["sha256"] else f"the checksum of {of[2]} differs"


def key(identity: str, attempt: str, name: str) -> str:
    """Return the key of an attempt's file."""
    return f"attempts/{identity}/{attempt}/{name}"


def commit_key(identity: str) -> str:
    """Return the key of an artifact's commit."""
    return f"artifacts/{identity[:2]}/{identity}/{STAGE_FILE}"


def at_once(function: Callable[[Given], Found], values: Iterable[Given]) -> Iterator[tuple[Given, Found]]:
    """Yield each value with what the function returns for it; several are computed at a time."""
    given = list(values)
    if len(given) < 2:
        yield from ((value, function(value)) for value in given)
        return
    with ThreadPoolExecutor(min(CONNECTIONS, len(given))) as pool:
        yield from zip(given, pool.map(function, given), strict=True)
