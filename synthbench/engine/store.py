"""The content-addressed store: stage identity -> artifact folder, written atomically."""

import errno
import os
import uuid
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from synthbench.base.durability import (
    DamagedFileError,
    file_hash,
    is_stray,
    sealed_bytes,
    sync_tree,
    write_sealed,
)
from synthbench.base.errors import UserError
from synthbench.engine.addresses import AddressFiles, AddressObjects
from synthbench.engine.holdings import UNFINISHED, Holding
from synthbench.engine.local_artifacts import LocalArtifacts, LocalContents
from synthbench.engine.local_leases import LocalLeases
from synthbench.engine.locks import Locks
from synthbench.engine.patience import PatientObjects
from synthbench.engine.records import STAGE_FILE, ArtifactDamagedError, is_identity, parsed_record
from synthbench.engine.shared_artifacts import SharedArtifacts
from synthbench.engine.shared_contents import SharedContents
from synthbench.engine.shared_leases import SharedLeases, cache_id, watch_of
from synthbench.engine.shared_ledger import LocalLedger, SharedLedger
from synthbench.engine.shared_work import SharedWork
from synthbench.engine.unfinished import Rubbish, UnfinishedWork


@dataclass(frozen=True)
class Shared:
    """The parts of a shared store: its objects, this machine's folder of LLM answers, a lease's lifetime."""

    objects: PatientObjects
    answers: Path
    lease_seconds: float


class Store:
    """Artifacts by identity, below `root`: a local store's, or local copies of a shared store's.

    `contents` lists the artifacts, `unfinished` this machine's work in progress, and `addresses` the
    artifacts that experiments used. `ledger` shares LLM answers and costs. `locks` coordinates processes;
    `rubbish` holds folders that are being deleted.
    """

    def __init__(self, root: Path, shared: Shared | None = None) -> None:
        self.root = root
        self.shared = shared
        self.say: Callable[[str], None] = lambda _: None
        """Reports what the store waits for."""
        self.answers = root / "llm" if shared is None else shared.answers
        """Folder of LLM answers, which all stages share."""
        self.rubbish = Rubbish(root / "discarded")
        self.unfinished = UnfinishedWork(root / "partial")
        self._folders = LocalArtifacts(root, self.rubbish)
        self._artifacts: LocalArtifacts | SharedArtifacts = self._folders
        self.contents: LocalContents | SharedContents = LocalContents(root)
        self.addresses: AddressFiles | AddressObjects = AddressFiles(root)
        self.ledger: LocalLedger | SharedLedger = LocalLedger()
        self.locks = Locks(str(self), LocalLeases(root / "locks"), self._tell, self._mark_used)
        self._shared_work: SharedWork | None = None
        if shared is not None:
            shared.objects.say = self._tell
            self._artifacts = artifacts = SharedArtifacts(shared.objects, self._folders)
            self._shared_work = work = SharedWork(shared.objects, self.unfinished, shared.lease_seconds)
            self.contents = SharedContents(shared.objects, artifacts, self._folders, work)
            self.addresses = AddressObjects(shared.objects)
            watch = watch_of(str(self))
            leases = SharedLeases(shared.objects, cache_id(root), shared.lease_seconds, watch)
            self.locks = replace(self.locks, shared=leases, look_again=artifacts.look_again)
            self.ledger = SharedLedger(shared.objects, self.answers, leases.hold)

    def __reduce__(self) -> tuple[Any, ...]:
        return Store, (self.root, self.shared)

    def __str__(self) -> str:
        return str(self.root if self.shared is None else self.shared.objects)

    def prepare(self) -> None:
        """Check before a run that the store works; raises UserError."""
        if self.shared is not None:
            self.shared.objects.probe()

    def listed(self, identities: Collection[str] | None = None) -> AbstractContextManager[object]:
        """Within the block, answer lookups of these artifacts (None: of all) from a snapshot.

        A local store needs no snapshot: the block then changes nothing.
        """
        return self._artifacts.listed(identities)

    def folder(self, identity: str) -> Path:
        """Return the local folder of a stage's artifact, which need not exist.

        Raises ArtifactDamagedError for a malformed identity.
        """
        return self._folders.folder(identity)

    def has(self, identity: str) -> bool:
        """Return whether the stage's artifact exists, whole or damaged."""
        return is_identity(identity) and self._artifacts.has(identity)

    def find(self, beginning: str = "") -> list[str]:
        """Return, sorted, the artifact identities that start with `beginning`; `plan` shows 8 digits."""
        return sorted(entry.identity for entry in self.contents.entries(beginning))

    def newest(self, number: int) -> list[str]:
        """Return the identities of the `number` artifacts last used, newest first.

        In a shared store, the commit counts as the last use.
        """
        found = sorted(self.contents.entries(), key=lambda entry: (-entry.last_used, entry.identity))
        return [entry.identity for entry in found[:number]]

    def info(self, identity: str) -> dict[str, Any] | None:
        """Return the artifact's record, None if it is damaged or missing."""
        try:
            return self.record(identity)
        except ArtifactDamagedError:
            return None

    def record(self, identity: str) -> dict[str, Any]:
        """Return the record written at the commit (spec, label, seconds, files).

        Raises ArtifactDamagedError if it is damaged or missing.
        """
        self.folder(identity)
        try:
            content = self._artifacts.read(identity)
            if content is None:
                raise ArtifactDamagedError(identity, f"{STAGE_FILE} is missing")
            return self._parsed(content)
        except DamagedFileError as damage:
            raise ArtifactDamagedError(identity, f"{STAGE_FILE} {damage}") from damage

    def check(self, identity: str, *, thorough: bool = False) -> None:
        """Compare an artifact with its record; raises ArtifactDamagedError.

        Unless `thorough`, files over 1 MB with unchanged size and modification time are not read. In a shared
        store, only sizes are compared; if `thorough`, all files are downloaded and hashed.
        """
        self._artifacts.check(identity, self.record(identity), None, thorough=thorough)

    def verify(self, identity: str) -> None:
        """Hash all stored files of an artifact; raises ArtifactDamagedError."""
        self._artifacts.verify(identity, self.record(identity))

    def fetch(self, identity: str) -> Path:
        """Download an artifact's missing files from a shared store, and return the local folder.

        Raises ArtifactDamagedError; a local store's files are not checked.
        """
        self._artifacts.fetch(identity, self.record(identity))
        return self.folder(identity)

    def file(self, identity: str, name: str) -> Path:
        """Fetch and hash one file of an artifact, and return its path.

        Raises ArtifactDamagedError if the artifact or the file is damaged or missing.
        """
        record = self.record(identity)
        if name not in record["files"]:
            raise ArtifactDamagedError(identity, f"{name} is missing")
        self._artifacts.check(identity, record, [name], thorough=True)
        return self.folder(identity) / name

    def discard(self, identity: str) -> None:
        """Remove an artifact atomically."""
        self._artifacts.discard(identity)

    def workspace(self, identity: str, check: Callable[[Path], object] = lambda _: None) -> Path:
        """Return the folder of a stage's unfinished work, with an empty `output`; other files stay.

        If another machine of a shared store has gone further, its work replaces this machine's.
        `check` gets the folder of the other machine's work, and raises UserError if the work is unusable.
        The commit will replace the artifact stored now, if any.
        """
        self._artifacts.begin(identity)
        if self._shared_work is not None:
            self._shared_work.bring(identity, check)
        return self.unfinished.begin(identity)

    def saving(self, identities: Collection[str]) -> AbstractContextManager[None]:
        """Within the block, save unfinished work to a shared store, for other machines to resume."""
        return nullcontext() if self._shared_work is None else self._shared_work.saving(identities)

    def save_work(self, identity: str) -> None:
        """Save unfinished work to a shared store now, if the work changed; errors are ignored."""
        if self._shared_work is not None:
            self._shared_work.save(identity)

    def forget_work(self, identity: str) -> None:
        """Remove a stage's unfinished work, here and in a shared store."""
        self.unfinished.forget(identity)
        if self._shared_work is not None:
            self._shared_work.forget(identity)

    def begun(self) -> set[str]:
        """Return the identities of stages with unfinished work, here or in a shared store."""
        there = () if self._shared_work is None else (each for each, _ in self._shared_work.entries())
        return {*self.unfinished.identities(), *there}

    def unfinished_work(self) -> list[Holding]:
        """Return all unfinished work, of this machine and in a shared store."""
        found = {each.identity: each for each in self.unfinished.holdings()}
        for entry in self.contents.unfinished():
            folder = self.unfinished.folder(entry.identity)
            here = found.get(entry.identity) or Holding(entry.identity, folder, UNFINISHED, 0, 0.0)
            size, last_used = here.size + entry.size, max(here.last_used, entry.last_used)
            found[entry.identity] = replace(here, size=size, last_used=last_used)
        return list(found.values())

    def commit(self, identity: str, record: Mapping[str, Any]) -> bool:
        """Commit the workspace's output as the artifact, with `record`.

        Returns False if another process committed first; its artifact then counts. If the commit fails, the
        output stays: `commit_finished` commits it later.
        """
        output = self.unfinished.output(identity)
        files = recorded_files(output)
        sync_tree(output)
        attempt = {} if self.shared is None else {"attempt": uuid.uuid4().hex}
        finished = {**record, **attempt, "files": files}
        write_sealed(output / STAGE_FILE, finished)
        return self._publish(identity, finished)

    def commit_finished(self, identity: str) -> bool | None:
        """Commit the output that an earlier process finished; return as `commit` does.

        Returns None if there is no complete output.
        """
        output = self.unfinished.output(identity)
        self._artifacts.begin(identity)
        try:
            finished = self._parsed(sealed_bytes(output / STAGE_FILE))
        except (FileNotFoundError, DamagedFileError):
            return None
        if _without_times(recorded_files(output)) != _without_times(finished["files"]):
            return None
        return self._publish(identity, finished)

    def _publish(self, identity: str, record: Mapping[str, Any]) -> bool:
        is_ours = self._artifacts.publish(identity, self.unfinished.output(identity), record)
        self.forget_work(identity)
        return is_ours

    def _parsed(self, content: bytes) -> dict[str, Any]:
        return parsed_record(content, is_shared=self.shared is not None)

    def _mark_used(self, identities: Collection[str]) -> None:
        self.contents.mark_used(identities)
        self.unfinished.mark_used(identities)

    def _tell(self, line: str) -> None:
        self.say(line)


def recorded_files(output: Path) -> dict[str, dict[str, Any]]:
    """Return relative path -> record (size, time, SHA-256) of an output's files, without `stage.json`."""
    files = {}
    found = {path for path in output.rglob("*") if path.is_file() and not is_stray(path.name)}
    for file in sorted(found - {output / STAGE_FILE}):
        status = file.stat()
        files[file.relative_to(output).as_posix()] = {
            "size": status.st_size,
            "mtime_ns": status.st_mtime_ns,
            "sha256": file_hash(file),
        }
    return files


def _without_times(files: Any) -> Any:  # noqa: ANN401
    return {name: (entry["size"], entry["sha256"]) for name, entry in files.items()}


def _is_about(root: Path, error: Exception) -> bool:
    """Return whether an error's path is the root, below it or above it; True if the error has no path."""
    name = getattr(error, "filename", None)
    if name is None:
        return True
    file, root = Path(os.fsdecode(name)).absolute(), root.absolute()
    return file.is_relative_to(root) or root.is_relative_to(file)


@contextmanager
def disk_errors(root: Path) -> Iterator[None]:
    """Turn "no space left", on any disk, and "permission denied" below the store into a UserError."""
    try:
        yield
    except UserError:
        raise
    except Exception as error:
        number = getattr(error, "errno", None)
        # Rust and C++ libraries report a full disk only in the message.
        if number in (errno.ENOSPC, errno.EDQUOT) or os.strerror(errno.ENOSPC) in str(error):
            message = f"no space left on the disk of {root}; free some and run the same command again"
        elif number in (errno.EACCES, errno.EPERM, errno.EROFS) and _is_about(root, error):
            message = f"can't write below {root}: {error}; set SYNTHBENCH_HOME to a folder you may write"
        else:
            raise
        raise UserError(message) from error
