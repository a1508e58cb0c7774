"""The content-addressed store: stage identity -> artifact folder, written whole or not at all.

`Store` is the kind that one machine uses, a local folder. `SharedStore` keeps artifacts where several
machines reach them.
"""

import errno
import os
import shutil
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any

from synthbench.base.durability import (
    PASSING,
    DamagedFileError,
    file_hash,
    not_now,
    read_sealed,
    sync_folder,
    sync_tree,
    write_sealed,
)
from synthbench.base.errors import UserError
from synthbench.engine.holdings import DISCARDED, UNFINISHED, Holding, spec_holding
from synthbench.engine.local_locks import exclusive_lock, run_lock, stage_lock
from synthbench.engine.records import STAGE_FILE, fault_of, is_identity

SMALL = 1_000_000
"""Files up to this many bytes are hashed at every check, which costs next to nothing."""


class ArtifactDamagedError(Exception):
    """A stored artifact is not what was committed; the message says which file and how.

    `is_foreign`: it is as it was committed, but such a stage writes no such file.
    """

    def __init__(self, identity: str, message: str, *, is_foreign: bool = False) -> None:
        super().__init__(message)
        self.identity = identity
        self.is_foreign = is_foreign


class Store:
    """Artifacts, unfinished work and locks below one folder."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.say: Callable[[str], None] = lambda _: None
        """Tells people what the store waits for, and what it passes over."""

    def __reduce__(self) -> tuple[Any, ...]:
        return Store, (self.root,)

    def __str__(self) -> str:
        return str(self.root)

    def exists(self) -> bool:
        """Tell whether anything was ever stored."""
        return self.root.is_dir()

    def prepare(self) -> None:
        """Check, before a run, that the store can be used; raises UserError."""

    def listed(self) -> AbstractContextManager[None]:
        """Let the store answer about many artifacts from few requests within the block; changes no answer."""
        return nullcontext()

    def folder(self, identity: str) -> Path:
        """Return where the artifact of a stage is on this machine, or will be.

        Raises ArtifactDamagedError if a store names what is no identity.
        """
        if not is_identity(identity):
            raise ArtifactDamagedError(identity, "is named by what is no identity")
        return self.root.joinpath("artifacts", identity[:2], identity)

    def fetch(self, identity: str) -> Path:
        """Return the folder of an artifact, all of it on this machine; raises ArtifactDamagedError."""
        return self.folder(identity)

    def fetch_file(self, identity: str, name: str) -> Path:
        """Return one file of an artifact, on this machine; raises ArtifactDamagedError."""
        return self.folder(identity) / name

    def identities(self) -> list[str]:
        """Return the identities of all artifacts."""
        return self.find("")

    def newest(self, number: int) -> list[str]:
        """Return the identities of the artifacts that were used last, the newest first."""
        aged = ((_age(self.folder(identity) / STAGE_FILE), identity) for identity in self.find(""))
        return [identity for _, identity in sorted(aged, key=lambda each: -each[0])[:number]]

    @property
    def answers(self) -> Path:
        """Folder of LLMs' answers, which belong to no stage."""
        return self.root / "llm"

    def has(self, identity: str) -> bool:
        """Tell whether the stage's artifact is there, whole or damaged."""
        return is_identity(identity) and self.folder(identity).is_dir()

    def find(self, beginning: str) -> list[str]:
        """Return the identities of all artifacts with this beginning; `plan` shows identities shortened."""
        found = (folder.name for folder in (self.root / "artifacts").glob("*/*") if self._is_own(folder))
        return sorted(identity for identity in found if identity.startswith(beginning))

    def _is_own(self, folder: Path) -> bool:
        """Tell whether this is an artifact's folder, where it belongs, and no stray file."""
        return is_identity(folder.name) and folder == self.folder(folder.name) and folder.is_dir()

    def strays(self) -> list[str]:
        """Return what lies among the artifacts and is none, such as a file manager's files."""
        artifacts = self.root / "artifacts"
        first = [path for path in artifacts.glob("*") if len(path.name) != 2 or not path.is_dir()]
        second = [
            path for path in artifacts.glob("*/*") if path.parent not in first and not self._is_own(path)
        ]
        return sorted(path.relative_to(self.root).as_posix() for path in (*first, *second))

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
        try:
            # Files are the last that earlier versions recorded.
            record = read_sealed(
                self.folder(identity) / STAGE_FILE,
                is_of_earlier_version=lambda record: list(record)[-1] == "files",
            )
        except FileNotFoundError:
            raise ArtifactDamagedError(identity, f"{STAGE_FILE} is missing") from None
        except DamagedFileError as damage:
            raise ArtifactDamagedError(identity, f"{STAGE_FILE} {damage}") from damage
        if fault := fault_of(record):
            raise ArtifactDamagedError(identity, f"{STAGE_FILE} {fault}")
        return record

    def check(self, identity: str, *, thorough: bool = False) -> None:
        """Compare an artifact with what was committed; raises ArtifactDamagedError.

        Unless `thorough`, large files of unchanged size and modification time are not read.
        """
        for name, recorded in self.record(identity)["files"].items():
            self.check_file(identity, name, recorded, thorough=thorough)

    def verify(self, identity: str) -> None:
        """Read every byte that is stored of an artifact; raises ArtifactDamagedError."""
        self.check(identity, thorough=True)

    def check_file(self, identity: str, name: str, recorded: Any, *, thorough: bool = True) -> None:  # noqa: ANN401
        """Compare one file of an artifact with what was recorded of it; raises as `check` does."""
        file = self.folder(identity) / name
        if _leaves(self.folder(identity), name):
            raise ArtifactDamagedError(identity, f"{name} is a link")
        try:
            status = file.stat()
            if not stat.S_ISREG(status.st_mode):
                raise ArtifactDamagedError(identity, f"{name} is not a regular file")
            if status.st_size != recorded["size"]:
                raise ArtifactDamagedError(
                    identity, f"{name} has {status.st_size} bytes, {recorded['size']} were written"
                )
            is_read = thorough or status.st_size <= SMALL or status.st_mtime_ns != recorded["mtime_ns"]
            if is_read and file_hash(file) != recorded["sha256"]:
                raise ArtifactDamagedError(identity, f"the checksum of {name} differs")
        except (FileNotFoundError, NotADirectoryError):
            raise ArtifactDamagedError(identity, f"{name} is missing") from None
        except PermissionError:
            raise
        except OSError as error:
            if error.errno in PASSING:
                raise not_now(file, error) from error
            raise ArtifactDamagedError(identity, f"{name} can't be read: {error.strerror}") from error

    def discard(self, identity: str) -> None:
        """Remove an artifact, in one step for other processes."""
        if self.folder(identity).exists():
            shutil.rmtree(self.set_aside(self.folder(identity)), ignore_errors=True)

    def set_aside(self, folder: Path) -> Path:
        """Move an artifact or unfinished work to the store's rubbish, in one step; return its new path."""
        rubbish = self.root / "discarded" / f"{folder.name}-{os.getpid()}-{time.monotonic_ns()}"
        rubbish.parent.mkdir(parents=True, exist_ok=True)
        return folder.rename(rubbish)

    def is_begun(self, identity: str) -> bool:
        """Tell whether unfinished work of the stage is on this machine."""
        return (self.root / "partial" / identity).is_dir()

    def checkpoints(self, identity: str) -> Path:
        """Return where a stage that works on this machine keeps its checkpoints, if it has any yet."""
        return self.root / "partial" / identity / "checkpoints"

    def workspace(self, identity: str) -> Path:
        """Return the folder of a stage's unfinished work as a kill left it, but with an empty `output`."""
        folder = self.root / "partial" / identity
        shutil.rmtree(folder / "output", ignore_errors=True)
        for name in ("output", "checkpoints"):
            (folder / name).mkdir(parents=True, exist_ok=True)
        return folder

    def clear_output(self, identity: str) -> None:
        """Remove a stage's unfinished output, which no resumed run reads, to make room on the disk.

        A finished one stays: the next run commits it.
        """
        output = self.root / "partial" / identity / "output"
        if not (output / STAGE_FILE).is_file():
            shutil.rmtree(output, ignore_errors=True)

    def forget_partial(self, identity: str) -> None:
        """Remove a stage's unfinished work."""
        shutil.rmtree(self.root / "partial" / identity, ignore_errors=True)

    def commit(self, identity: str, record: Mapping[str, Any]) -> bool:
        """Turn the workspace's output into the artifact, stored with `record`.

        False if another process committed one meanwhile, which counts. If that can't be done now, the output
        stays finished: `commit_finished` does it later.
        """
        output = self.root / "partial" / identity / "output"
        files = recorded_files(output)
        sync_tree(output)
        write_sealed(output / STAGE_FILE, {**record, **self._sealed_keys(), "files": files})
        return self._publish(identity)

    def commit_finished(self, identity: str) -> bool | None:
        """Commit what a former process finished; as `commit`, None if there is nothing such, or not whole."""
        output = self.root / "partial" / identity / "output"
        try:
            record = read_sealed(output / STAGE_FILE)
        except (FileNotFoundError, DamagedFileError):
            return None
        files = record.get("files")
        if fault_of(record) or _without_times(recorded_files(output)) != _without_times(files):
            return None
        return self._publish(identity)

    def _sealed_keys(self) -> dict[str, Any]:
        """Return what a kind of store records further of what it commits."""
        return {}

    def _publish(self, identity: str) -> bool:
        """Make the artifact of a finished output."""
        partial = self.root / "partial" / identity
        self.discard(identity)
        self.folder(identity).parent.mkdir(parents=True, exist_ok=True)
        (partial / "output").rename(self.folder(identity))
        for parent in (self.folder(identity).parent, self.root / "artifacts"):
            sync_folder(parent)
        shutil.rmtree(partial, ignore_errors=True)
        return True

    def lock(self, identity: str, label: str) -> AbstractContextManager[str]:
        """Hold the stage's lock; yield the dead process whose work is taken over, "" if none.

        Raises StageBusyError if another process holds it.
        """
        return stage_lock(self.root / "locks", identity, label)

    def run_in_progress(self, label: str, identities: Iterable[str]) -> AbstractContextManager[None]:
        """Keep clean-ups away while a run works, and mark what it needs as used now.

        Waits for a clean-up that has begun.
        """
        return run_lock(self.root / "locks", label, lambda: self._mark_used(identities), self.say)

    def exclusive(self) -> AbstractContextManager[None]:
        """Make new runs wait; raises UserError if a run or another clean-up is at work."""
        return exclusive_lock(self.root / "locks", self)

    def _mark_used(self, identities: Iterable[str]) -> None:
        for identity in identities:
            for path in (self.folder(identity) / STAGE_FILE, self.root / "partial" / identity):
                with suppress(OSError):
                    os.utime(path)

    def holdings(self) -> list[Holding]:
        """Return all that the store holds."""
        found = []
        for folder in map(self.folder, self.find("")):
            spec = (self.info(folder.name) or {}).get("spec") or {}
            size, _ = _files_in(folder)
            touched = folder / STAGE_FILE if (folder / STAGE_FILE).is_file() else folder
            found.append(spec_holding(folder, spec, size, touched.stat().st_mtime))
        return found + self.local_rest()

    def local_rest(self) -> list[Holding]:
        """Return the unfinished work and the rubbish on this machine."""
        found = []
        for folder in sorted(path for path in (self.root / "partial").glob("*") if path.is_dir()):
            # Unfinished work is as old as its youngest file: the folder's own time is that of its start.
            size, youngest = _files_in(folder)
            last_used = max(folder.stat().st_mtime, youngest)
            found.append(Holding(folder.name, folder, UNFINISHED, size, last_used))
        for folder in sorted((self.root / "discarded").glob("*")):
            found.append(Holding(folder.name, folder, DISCARDED, _files_in(folder)[0], last_used=0.0))
        return found

    def remove(self, holding: Holding) -> None:
        """Take what `holdings` returned out of the store, in one step for other processes."""
        if holding.kind != DISCARDED:
            self.set_aside(holding.folder)

    def remove_empty(self) -> None:
        """Remove folders that killed runs left empty; only while the store is held exclusively."""
        partial = self.root / "partial"
        for folder in partial.glob("*"):
            if folder.is_dir() and not any(path.is_file() for path in folder.rglob("*")):
                shutil.rmtree(folder, ignore_errors=True)
        with suppress(OSError):
            partial.rmdir()

    def empty_rubbish(self) -> None:
        """Delete what was set aside."""
        for folder in (self.root / "discarded").glob("*"):
            shutil.rmtree(folder, ignore_errors=True)

    def addresses(self, experiment: str) -> dict[str, str]:
        """Return the stage identities of an experiment's last run, by address (variant, seed, role).

        Raises DamagedFileError.
        """
        try:
            known = read_sealed(
                self.addresses_file(experiment),
                is_of_earlier_version=lambda known: all(isinstance(each, str) for each in known.values()),
            )
        except FileNotFoundError:
            return {}
        return as_addresses(known.get("addresses", known))

    def experiments(self) -> list[str]:
        """Return the names of all experiments that ran."""
        return sorted(file.stem for file in (self.root / "addresses").glob("[!.]*.json"))

    def forget_addresses(self, experiment: str) -> None:
        """Forget the addresses of an experiment's last run."""
        self.addresses_file(experiment).unlink(missing_ok=True)

    def remember_addresses(self, experiment: str, addresses: Mapping[str, str]) -> None:
        """Add the addresses of an experiment's run to those of earlier ones; raises DamagedFileError."""
        merged = {**self.addresses(experiment), **addresses}
        self.addresses_file(experiment).parent.mkdir(parents=True, exist_ok=True)
        write_sealed(self.addresses_file(experiment), {"addresses": merged})

    def addresses_file(self, experiment: str) -> Path:
        """Return the file of an experiment's addresses."""
        return self.root / "addresses" / f"{experiment}.json"


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


def as_addresses(found: object) -> dict[str, str]:
    """Return what was recorded of an experiment's last run; raises DamagedFileError."""
    if not isinstance(found, dict) or not all(isinstance(each, str) for each in found.values()):
        raise DamagedFileError("is unreadable")
    return found


def _leaves(folder: Path, name: str) -> bool:
    """Tell whether a file of an artifact, or a folder that it is in, is a link."""
    path = folder
    for part in name.split("/"):
        path /= part
        if path.is_symlink():
            return True
    return False


def _without_times(files: Any) -> Any:  # noqa: ANN401
    return {name: (entry["size"], entry["sha256"]) for name, entry in files.items()}


def _files_in(folder: Path) -> tuple[int, float]:
    """Return the size of all files below a folder, and when the youngest was written."""
    files = [file.lstat() for file in folder.rglob("*") if file.is_file()]
    return sum(file.st_size for file in files), max((file.st_mtime for file in files), default=0.0)


def _age(file: Path) -> float:
    try:
        return file.stat().st_mtime
    except OSError:
        return 0.0


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
