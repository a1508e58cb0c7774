"""The content-addressed store: stage identity -> artifact folder, written whole or not at all."""

import errno
import json
import os
import shutil
import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from synthbench.durability import (
    DamagedFileError,
    file_hash,
    read_sealed,
    sync_folder,
    sync_tree,
    write_atomically,
    write_sealed,
)
from synthbench.errors import UserError

STAGE_FILE = "stage.json"
SMALL = 1_000_000
"""Files up to this many bytes are hashed at every check, which costs next to nothing."""


class StageBusyError(Exception):
    """Another process is computing the stage; the message says which."""


class ArtifactDamagedError(Exception):
    """A stored artifact is not what was committed; the message says which file and how."""

    def __init__(self, identity: str, message: str) -> None:
        super().__init__(message)
        self.identity = identity


class Store:
    """Artifacts, unfinished work and locks below one folder.

    Locks are advisory file locks, which the kernel drops with their process: a dead process holds none.
    """

    def __init__(self, root: Path) -> None:
        self.root = root

    def folder(self, identity: str) -> Path:
        """Return where the artifact of a stage is, or will be."""
        return self.root.joinpath("artifacts", identity[:2], identity)

    @property
    def answers(self) -> Path:
        """Folder of LLMs' answers, which belong to no stage."""
        return self.root / "llm"

    def has(self, identity: str) -> bool:
        """Tell whether the stage's artifact is there, whole or damaged."""
        return self.folder(identity).is_dir()

    def find(self, beginning: str) -> list[str]:
        """Return the identities of all artifacts with this beginning; `plan` shows identities shortened."""
        return sorted(
            folder.name for folder in (self.root / "artifacts").glob(f"{beginning[:2]}/{beginning}*")
        )

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
        if not isinstance(record.get("files"), dict):
            raise ArtifactDamagedError(identity, f"{STAGE_FILE} is unreadable")
        return record

    def check(self, identity: str, *, thorough: bool = False) -> None:
        """Compare an artifact with what was committed; raises ArtifactDamagedError.

        Unless `thorough`, large files of unchanged size and modification time are not read.
        """
        for name, recorded in self.record(identity)["files"].items():
            self.check_file(identity, name, recorded, thorough=thorough)

    def check_file(self, identity: str, name: str, recorded: Any, *, thorough: bool = True) -> None:  # noqa: ANN401
        """Compare one file of an artifact with what was recorded of it; raises as `check` does."""
        file = self.folder(identity) / name
        try:
            status = file.stat()
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
            raise ArtifactDamagedError(identity, f"{name} can't be read: {error.strerror}") from error
        except (KeyError, TypeError):
            raise ArtifactDamagedError(identity, f"{STAGE_FILE} is unreadable") from None

    def discard(self, identity: str) -> None:
        """Remove an artifact, in one step for other processes."""
        if self.folder(identity).exists():
            shutil.rmtree(self.set_aside(self.folder(identity)), ignore_errors=True)

    def set_aside(self, folder: Path) -> Path:
        """Move an artifact or unfinished work to the store's rubbish, in one step; return its new path."""
        rubbish = self.root / "discarded" / f"{folder.name}-{os.getpid()}-{time.monotonic_ns()}"
        rubbish.parent.mkdir(parents=True, exist_ok=True)
        return folder.rename(rubbish)

    def workspace(self, identity: str) -> Path:
        """Return the folder of a stage's unfinished work as a kill left it, but with an empty `output`."""
        folder = self.root / "partial" / identity
        self.clear_output(identity)
        for name in ("output", "checkpoints"):
            (folder / name).mkdir(parents=True, exist_ok=True)
        return folder

    def clear_output(self, identity: str) -> None:
        """Remove a stage's unfinished output, which no resumed run reads, to make room on the disk."""
        shutil.rmtree(self.root / "partial" / identity / "output", ignore_errors=True)

    def forget_partial(self, identity: str) -> None:
        """Remove a stage's unfinished work."""
        shutil.rmtree(self.root / "partial" / identity, ignore_errors=True)

    def commit(self, identity: str, record: Mapping[str, Any]) -> None:
        """Turn the workspace's output into the artifact, stored with `record`."""
        partial = self.root / "partial" / identity
        output = partial / "output"
        files = {}
        for file in sorted(path for path in output.rglob("*") if path.is_file()):
            status = file.stat()
            files[file.relative_to(output).as_posix()] = {
                "size": status.st_size,
                "mtime_ns": status.st_mtime_ns,
                "sha256": file_hash(file),
            }
        sync_tree(output)
        write_sealed(output / STAGE_FILE, {**record, "files": files})
        self.discard(identity)
        self.folder(identity).parent.mkdir(parents=True, exist_ok=True)
        output.rename(self.folder(identity))
        for parent in (self.folder(identity).parent, self.root / "artifacts"):
            sync_folder(parent)
        shutil.rmtree(partial, ignore_errors=True)

    @contextmanager
    def lock(self, identity: str, label: str) -> Iterator[str]:
        """Hold the stage's lock; yield the dead process whose work is taken over, "" if none.

        Raises StageBusyError if another process holds it.
        """
        from filelock import FileLock, Timeout

        folder = self.root / "locks"
        folder.mkdir(parents=True, exist_ok=True)
        holder_file = folder / f"{identity}.json"
        lock = FileLock(folder / f"{identity}.lock", timeout=0)
        try:
            lock.acquire()
        except Timeout:
            raise StageBusyError(describe_holder(holder_file)) from None
        try:
            left_behind = describe_holder(holder_file) if holder_file.exists() else ""
            write_holder(holder_file, label)
            try:
                yield left_behind
            finally:
                holder_file.unlink(missing_ok=True)
        finally:
            lock.release()

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
        return dict(known.get("addresses", known))

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


def write_holder(file: Path, label: str) -> None:
    """Write beside a lock which process holds it, and for which stage."""
    holder = {"pid": os.getpid(), "host": socket.gethostname(), "stage": label, "since": time.time()}
    write_atomically(file, json.dumps(holder))


def describe_holder(file: Path) -> str:
    """Return which process holds a lock, according to the file beside it."""
    try:
        holder = json.loads(file.read_text(encoding="utf-8"))
        return f"process {holder['pid']} on {holder['host']}"
    except (OSError, ValueError, KeyError):
        return "another process"


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
