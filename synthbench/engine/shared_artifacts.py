"""Artifacts that machines share through a network folder or an object store.

    artifacts/<2 digits>/<identity>/stage.json   the commit: written last, created once
    attempts/<identity>/<attempt>/...            the files of one computation of an artifact
    unfinished/<identity>/<epoch>-<save>/...     work in progress, for another machine to resume
    leases/<name>/<epoch>                        which process holds a stage, run, clean-up or ledger
    addresses/<experiment>/<entry>.json          what an experiment's last run used
    used/<random id>.json                        the artifacts that a run needs; written at its start

Correctness never depends on leases, which only avoid duplicate work: the first commit counts.
"""

import os
import uuid
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from synthbench.base.durability import DamagedFileError, file_hash, read_sealed, seal, write_atomically
from synthbench.base.errors import UserError
from synthbench.engine.listing import Listing, at_once, attempt_key, commit_key, listing_of
from synthbench.engine.local_artifacts import LocalArtifacts
from synthbench.engine.objects import TRIES, ListedObject
from synthbench.engine.patience import PatientObjects
from synthbench.engine.records import STAGE_FILE, ArtifactDamagedError, check_size, parsed_record

FEW = 500
"""Up to this many artifacts are looked up one by one; for more, the whole store is listed."""


class SharedArtifacts:
    """Artifacts of a shared store, each a commit with one attempt's files. `copies` are on this machine."""

    def __init__(self, objects: PatientObjects, copies: LocalArtifacts) -> None:
        self._objects = objects
        self._copies = copies
        self._listing: Listing | None = None
        self._replaced: dict[str, bytes | None] = {}

    @contextmanager
    def listed(self, identities: Collection[str] | None = None) -> Iterator[Listing]:
        """Yield a snapshot of these artifacts (None: of all), which answers lookups within the block.

        After `look_again`, lookups ask the store again.
        """
        known = self._listing
        if known is not None and (known.only is None or identities is not None):
            yield known
            return
        self._listing = listing = self._snapshot(None if identities is None else frozenset(identities))
        try:
            yield listing
        finally:
            self._listing = None

    def _snapshot(self, identities: frozenset[str] | None) -> Listing:
        is_few = identities is not None and len(identities) <= FEW
        listing = Listing() if is_few else listing_of(self._objects)
        listing.only = identities
        wanted = identities if is_few else [each for each in listing.commits if listing.knows(each)]
        for identity, content in at_once(self._read, wanted or ()):
            if content is None:
                listing.commits.pop(identity, None)
            else:
                listing.records[identity] = content
        if is_few:
            listing.files |= at_once(self._files, listing.records)
        return listing

    def _files(self, identity: str) -> list[ListedObject]:
        return list(self._objects.list(f"attempts/{identity}/"))

    def look_again(self) -> None:
        """Drop the snapshot: other machines may have changed the store."""
        self._listing = None

    def has(self, identity: str) -> bool:
        """Return whether the artifact exists, whole or damaged."""
        return self.read(identity) is not None

    def read(self, identity: str) -> bytes | None:
        """Return the content of the artifact's record, which may be damaged; None if there is no artifact."""
        if self._listing is None or not self._listing.knows(identity):
            return self._read(identity)
        return self._listing.records.get(identity)

    def _read(self, identity: str) -> bytes | None:
        for _ in range(TRIES):
            try:
                content = self._objects.read(commit_key(identity))
                parsed_record(content, is_shared=True)
            except FileNotFoundError:
                return None
            except DamagedFileError:
                continue  # the network may have truncated the record
            break
        return content

    def attempt(self, identity: str) -> str | None:
        """Return the id of the committed attempt; None if there is no commit or its record is damaged."""
        content = self.read(identity)
        with suppress(DamagedFileError):
            return None if content is None else str(parsed_record(content, is_shared=True)["attempt"])
        return None

    def check(
        self, identity: str, record: Mapping[str, Any], names: Collection[str] | None, *, thorough: bool
    ) -> None:
        """Compare the sizes of all files with the record; if `thorough`, also hash the files.

        `thorough` first downloads the files that this machine lacks. With `names`, only these files are
        hashed, and no sizes are compared: the hashes find every fault. Raises ArtifactDamagedError.
        """
        if names is None:
            sizes = self._sizes(identity, record["attempt"])
            for name, recorded in record["files"].items():
                if name not in sizes:
                    raise ArtifactDamagedError(identity, f"{name} is missing")
                check_size(identity, name, recorded, sizes[name])
        if thorough:
            self._bring(identity, record, record["files"] if names is None else names)

    def verify(self, identity: str, record: Mapping[str, Any]) -> None:
        """Hash every file in the shared store, not this machine's copies; raises ArtifactDamagedError."""
        self.check(identity, record, None, thorough=False)
        for name, recorded in record["files"].items():
            key = attempt_key(identity, record["attempt"], name)
            digests = (self._objects.digest(key) for _ in range(TRIES))
            try:
                if recorded["sha256"] not in digests:
                    raise ArtifactDamagedError(identity, f"the checksum of {name} differs")
            except FileNotFoundError:  # another process has discarded the artifact meanwhile
                raise ArtifactDamagedError(identity, f"{name} is missing") from None

    def fetch(self, identity: str, record: Mapping[str, Any]) -> None:
        """Download the files that this machine lacks; raises ArtifactDamagedError."""
        self._bring(identity, record, record["files"])

    def begin(self, identity: str) -> None:
        """Remember the artifact's present commit; `publish` replaces only this commit or a damaged one."""
        self._replaced[identity] = self._read(identity)

    def publish(self, identity: str, output: Path, record: Mapping[str, Any]) -> bool:
        """Upload and commit a finished output; False if another machine's commit came first.

        Raises UserError if the store can't be used; the output then stays on this machine.
        """
        attempt = record["attempt"]
        try:
            for _ in at_once(
                lambda name: self._objects.write(attempt_key(identity, attempt, name), output / name),
                record["files"],
            ):
                pass
            is_ours = self._create_commit(identity, (output / STAGE_FILE).read_bytes())
        except UserError as error:
            kept = "what was computed is kept on this machine, and the same command goes on from there"
            raise UserError(f"{error}; {kept}") from None
        if is_ours:
            with self._copies.alone():
                if not self._is_of_attempt(identity, record):
                    self._copies.publish(identity, output, record)
        else:
            self._delete_attempt(identity, attempt)
        return is_ours

    def _create_commit(self, identity: str, content: bytes) -> bool:
        """Create the commit; False if another machine has created an undamaged one since `begin`."""
        while not self._objects.create(commit_key(identity), content):
            there = self._read(identity)
            if there is not None and there != self._replaced.get(identity) and self.attempt(identity):
                return there == content
            self.discard(identity)
        return True

    def discard(self, identity: str) -> None:
        """Remove a commit, its attempt and this machine's copy; attempts in progress elsewhere stay."""
        self.look_again()
        attempt = self.attempt(identity)
        self._objects.delete([commit_key(identity)])
        if attempt:
            self._delete_attempt(identity, attempt)
        self._copies.discard(identity)

    def _delete_attempt(self, identity: str, attempt: str) -> None:
        self._objects.delete([entry.key for entry in self._objects.list(attempt_key(identity, attempt))])

    def _sizes(self, identity: str, attempt: str) -> dict[str, int]:
        """Return the size of each file of an artifact, by its relative path."""
        prefix = attempt_key(identity, attempt)
        listing = self._listing
        if listing is not None and listing.knows(identity):
            entries: Sequence[ListedObject] = listing.files.get(identity, [])
        else:
            entries = self._objects.list(prefix)
        return {each.key.removeprefix(prefix): each.size for each in entries if each.key.startswith(prefix)}

    def _bring(self, identity: str, record: Mapping[str, Any], names: Collection[str]) -> None:
        """Download the named files that this machine lacks.

        Raises ArtifactDamagedError for a damaged object, after the artifact was withdrawn.
        """
        folder = self._copies.folder(identity)
        self._keep_one_attempt(identity, record)
        missing = [name for name in names if not _is_copy(folder / name, record["files"][name])]

        def get(name: str) -> str:
            key = attempt_key(identity, record["attempt"], name)
            return download(self._objects, key, folder / name, name, record["files"][name])

        for _, fault in at_once(get, missing):
            if fault:
                self._withdraw(identity, record)
                raise ArtifactDamagedError(identity, fault)

    def _keep_one_attempt(self, identity: str, record: Mapping[str, Any]) -> None:
        """If this machine's copy is missing or of another attempt, start a new copy with only the record."""
        # Another process of this machine may be copying the same artifact.
        with self._copies.alone():
            if not self._is_of_attempt(identity, record):
                self._copies.discard(identity)
                here = self._copies.folder(identity) / STAGE_FILE
                here.parent.mkdir(parents=True, exist_ok=True)
                write_atomically(here, seal(record))

    def _is_of_attempt(self, identity: str, record: Mapping[str, Any]) -> bool:
        """Return whether this machine's copy, complete or not, is of the recorded attempt."""
        with suppress(FileNotFoundError, DamagedFileError):
            found = read_sealed(self._copies.folder(identity) / STAGE_FILE)
            return bool(found.get("attempt") == record["attempt"])
        return False

    def _withdraw(self, identity: str, record: Mapping[str, Any]) -> None:
        """Remove a damaged artifact's commit and this machine's copy, unless it was recomputed since.

        If the commit stayed, machines with good copies would not notice the damage.
        """
        self.look_again()
        if self.attempt(identity) == record["attempt"]:
            self._objects.delete([commit_key(identity)])
            self._copies.discard(identity)


def download(objects: PatientObjects, key: str, file: Path, name: str, recorded: Mapping[str, Any]) -> str:
    """Download an object to a file; return "" or why it is unusable: missing, or unlike its record.

    `name`: the file's name in the message. The file gets the recorded modification time.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    new = file.with_name(f".{uuid.uuid4().hex}")
    try:
        for _ in range(TRIES):
            try:
                objects.download(key, new, recorded["size"])
            except FileNotFoundError:
                return f"{name} is missing"
            if file_hash(new) == recorded["sha256"]:
                os.utime(new, ns=(recorded["mtime_ns"], recorded["mtime_ns"]))
                new.replace(file)
                return ""
        return f"the checksum of {name} differs"
    finally:
        new.unlink(missing_ok=True)


def _is_copy(file: Path, recorded: Mapping[str, Any]) -> bool:
    """Return whether a file has the recorded size, modification time and SHA-256."""
    if file.is_symlink() or not file.is_file():
        return False
    status = file.stat()
    if (status.st_size, status.st_mtime_ns) != (recorded["size"], recorded["mtime_ns"]):
        return False
    return file_hash(file) == str(recorded["sha256"])
