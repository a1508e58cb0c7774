"""The content-addressed store: stage identity -> artifact folder, written whole or not at all."""

import errno
import os
import uuid
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from synthbench.base.durability import DamagedFileError, file_hash, sealed_bytes, sync_tree, write_sealed
from synthbench.base.errors import UserError
from synthbench.engine.addresses import AddressFiles, AddressObjects
from synthbench.engine.local_artifacts import LocalArtifacts, LocalContents
from synthbench.engine.local_leases import LocalLeases
from synthbench.engine.locks import Locks
from synthbench.engine.patience import PatientObjects
from synthbench.engine.records import STAGE_FILE, ArtifactDamagedError, is_identity, parsed_record
from synthbench.engine.shared_artifacts import SharedArtifacts
from synthbench.engine.shared_contents import SharedContents
from synthbench.engine.shared_leases import SharedLeases, cache_id, watch_of
from synthbench.engine.unfinished import Rubbish, UnfinishedWork


@dataclass(frozen=True)
class Shared:
    """What makes a store a shared one: its objects, and the folder of LLMs' answers on this machine."""

    objects: PatientObjects
    answers: Path
    lease_seconds: float


class Store:
    """Artifacts by identity, below `root`: all of a local store's, or copies of a shared one's.

    `contents` tells what is stored, `unfinished` has the work of stages on this machine, `addresses` what
    experiments used, `locks` who works here, and `rubbish` what is being deleted.
    """

    def __init__(self, root: Path, shared: Shared | None = None) -> None:
        self.root = root
        self.shared = shared
        self.say: Callable[[str], None] = lambda _: None
        """Tells people what the store waits for."""
        self.answers = root / "llm" if shared is None else shared.answers
        """Folder of LLMs' answers, which belong to no stage."""
        self.rubbish = Rubbish(root / "discarded")
        self.unfinished = UnfinishedWork(root / "partial")
        self._folders = LocalArtifacts(root, self.rubbish)
        self._artifacts: LocalArtifacts | SharedArtifacts = self._folders
        self.contents: LocalContents | SharedContents = LocalContents(root)
        self.addresses: AddressFiles | AddressObjects = AddressFiles(root)
        self.locks = Locks(str(self), LocalLeases(root / "locks"), self._tell, self._mark_used)
        if shared is not None:
            shared.objects.say = self._tell
            self._artifacts = artifacts = SharedArtifacts(shared.objects, self._folders)
            self.contents = SharedContents(shared.objects, artifacts, self._folders)
            self.addresses = AddressObjects(shared.objects)
            watch = watch_of(str(self))
            leases = SharedLeases(shared.objects, cache_id(root), shared.lease_seconds, watch)
            self.locks = replace(self.locks, shared=leases, look_again=artifacts.look_again)

    def __reduce__(self) -> tuple[Any, ...]:
        return Store, (self.root, self.shared)

    def __str__(self) -> str:
        return str(self.root if self.shared is None else self.shared.objects)

    def prepare(self) -> None:
        """Check, before a run, that the store can be used; raises UserError."""
        if self.shared is not None:
            self.shared.objects.probe()

    def listed(self) -> AbstractContextManager[object]:
        """Let the store answer about many artifacts from few requests within the block; changes no answer."""
        return self._artifacts.listed()

    def folder(self, identity: str) -> Path:
        """Return where the artifact of a stage is on this machine, or will be.

        Raises ArtifactDamagedError if a store names what is no identity.
        """
        return self._folders.folder(identity)

    def has(self, identity: str) -> bool:
        """Tell whether the stage's artifact is there, whole or damaged."""
        return is_identity(identity) and self._artifacts.has(identity)

    def find(self, beginning: str = "") -> list[str]:
        """Return the identities of all artifacts that begin so; `plan` shows identities shortened."""
        return sorted(entry.identity for entry in self.contents.entries(beginning))

    def newest(self, number: int) -> list[str]:
        """Return the identities of the artifacts that were used last, the newest first."""
        found = sorted(self.contents.entries(), key=lambda entry: -entry.last_used)
        return [entry.identity for entry in found[:number]]

    def info(self, identity: str) -> dict[str, Any] | None:
        """Return what `record` does, None if it is damaged or missing."""
        try:
            return self.record(identity)
        except ArtifactDamagedError:
            return None

    def record(self, identity: str) -> dict[str, Any]:
        """Return what was recorded at the commit (spec, label, seconds, files).

        Raises ArtifactDamagedError.
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
        """Compare an artifact with what was committed; raises ArtifactDamagedError.

        Unless `thorough`, large files of unchanged size and modification time are not read. Of a shared
        store, sizes are compared; if `thorough`, all files are brought to this machine and hashed.
        """
        self._artifacts.check(identity, self.record(identity), None, thorough=thorough)

    def verify(self, identity: str) -> None:
        """Read every byte that is stored of an artifact; raises ArtifactDamagedError."""
        self._artifacts.verify(identity, self.record(identity))

    def fetch(self, identity: str) -> Path:
        """Return the folder of an artifact, all of it on this machine; raises ArtifactDamagedError."""
        self._artifacts.fetch(identity, self.record(identity))
        return self.folder(identity)

    def file(self, identity: str, name: str) -> Path:
        """Return one file of an artifact, on this machine and hashed; raises ArtifactDamagedError."""
        record = self.record(identity)
        if name not in record["files"]:
            raise ArtifactDamagedError(identity, f"{name} is missing")
        self._artifacts.check(identity, record, [name], thorough=True)
        return self.folder(identity) / name

    def discard(self, identity: str) -> None:
        """Remove an artifact, in one step for other processes."""
        self._artifacts.discard(identity)

    def workspace(self, identity: str) -> Path:
        """Return the folder of a stage's unfinished work as a kill left it, but with an empty `output`.

        What is stored now, damaged or to be computed again, will be replaced.
        """
        self._artifacts.begin(identity)
        return self.unfinished.begin(identity)

    def commit(self, identity: str, record: Mapping[str, Any]) -> bool:
        """Turn the workspace's output into the artifact, stored with `record`.

        False if another process committed one meanwhile, which counts. If that can't be done now, the output
        stays finished: `commit_finished` does it later.
        """
        output = self.unfinished.output(identity)
        files = recorded_files(output)
        sync_tree(output)
        attempt = {} if self.shared is None else {"attempt": uuid.uuid4().hex}
        finished = {**record, **attempt, "files": files}
        write_sealed(output / STAGE_FILE, finished)
        return self._publish(identity, finished)

    def commit_finished(self, identity: str) -> bool | None:
        """Commit what a former process finished; as `commit`, None if there is nothing such, or not whole."""
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
        self.unfinished.forget(identity)
        return is_ours

    def _parsed(self, content: bytes) -> dict[str, Any]:
        return parsed_record(content, is_shared=self.shared is not None)

    def _mark_used(self, identities: Collection[str]) -> None:
        self.contents.mark_used(identities)
        self.unfinished.mark_used(identities)

    def _tell(self, line: str) -> None:
        self.say(line)


def recorded_files(output: Path) -> dict[str, dict[str, Any]]:
    """Return what is recorded of each file of an output, by its path in there."""
    files = {}
    for file in sorted(path for path in output.rglob("*") if path.is_file() and path != output / STAGE_FILE):
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
    """Tell whether the file that an error names is in the root, or is one of its parents."""
    name = getattr(error, "filename", None)
    if name is None:
        return True
    file, root = Path(os.fsdecode(name)).absolute(), root.absolute()
    return file.is_relative_to(root) or root.is_relative_to(file)


@contextmanager
def disk_errors(root: Path) -> Iterator[None]:
    """Turn "no space left" and "permission denied" below the store into a UserError."""
    try:
        yield
    except Exception as error:
        number = getattr(error, "errno", None)
        # Libraries written in Rust and C++ report a full disk in words only.
        if number in (errno.ENOSPC, errno.EDQUOT) or os.strerror(errno.ENOSPC) in str(error):
            message = f"no space left on the disk of {root}; free some and run the same command again"
        elif number in (errno.EACCES, errno.EPERM, errno.EROFS) and _is_about(root, error):
            message = f"can't write below {root}: {error}; set SYNTHBENCH_HOME to a folder you may write"
        else:
            raise
        raise UserError(message) from error
