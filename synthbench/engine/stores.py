"""Opens the user's store, local or shared."""

import hashlib
import os
import socket
import stat
import tempfile
from contextlib import suppress
from pathlib import Path

from synthbench.base.errors import UserError
from synthbench.base.home import home
from synthbench.base.mounts import network_file_system
from synthbench.engine.cloud_objects import SCHEMES, CloudObjects
from synthbench.engine.objects import FolderObjects
from synthbench.engine.patience import Objects, PatientObjects
from synthbench.engine.shared_leases import LEASE_SECONDS
from synthbench.engine.store import Shared, Store

VARIABLE = "SYNTHBENCH_STORE"
CACHE_VARIABLE = "SYNTHBENCH_CACHE"
LEASE_VARIABLE = "SYNTHBENCH_LEASE_SECONDS"


def open_store() -> Store:
    """Return the shared store at $SYNTHBENCH_STORE or, if that is not set, the home's store.

    Raises UserError if the shared store's folder is missing or a setting is invalid.
    """
    name = os.environ.get(VARIABLE, "")
    return shared_store(name) if name else Store(home() / "store")


def existing_store(name: str) -> Store:
    """Return the store, local or shared, at a URL or in a folder; the folder may be a home.

    Raises UserError if there is none.
    """
    if "://" in name:
        return shared_store(name, named_by="the store's URL")
    folder = Path(name)
    try:
        if (folder / "store").is_dir():
            folder /= "store"
        parts = {each for each in ("artifacts", "attempts", "leases", "locks") if (folder / each).is_dir()}
    except OSError as error:
        raise UserError(f"{name}: {error.strerror}") from None
    if not parts:
        raise UserError(f"{name}: there is no store; give a store's folder, a home or a URL such as s3://...")
    # A copy of a home's store may lack its locks.
    if "locks" in parts or parts == {"artifacts"}:
        return Store(folder.absolute())
    return shared_store(name)


def store_name() -> str:
    """Return the path or URL of `open_store`'s store; raises UserError."""
    name = os.environ.get(VARIABLE)
    return str(_objects(name)) if name else str((home() / "store").absolute())


def shared_store(name: str, answers: Path | None = None, *, named_by: str = VARIABLE) -> Store:
    """Return the store in a folder or at a URL, with a cache on this machine; raises UserError.

    `answers`: the folder of this machine's copy of LLM answers. Default: a folder on a local disk.
    `named_by`: what named the URL, for messages.
    """
    objects = _objects(name, named_by)
    place = f"{hashlib.sha256(str(objects).encode()).hexdigest()[:12]}-{socket.gethostname()}"
    cache = os.environ.get(CACHE_VARIABLE)
    answers = answers or _local_folder(Path(cache) if cache else None) / place / "llm"
    # Results show paths below "store", so the cache has that name.
    root = (Path(cache) if cache else home() / "shared") / place / "store"
    shared = Shared(PatientObjects(objects), answers.absolute(), _lease_seconds())
    return Store(root.absolute(), shared)


def _local_folder(cache: Path | None) -> Path:
    """Return a folder on a local disk: the cache if it is local, else this user's own temporary folder.

    Losing its files is harmless: the store has their content. Raises UserError if temporary files are on a
    network file system, or if the folder is another user's.
    """
    if cache is not None and not network_file_system(cache):
        return cache
    folder = Path(tempfile.gettempdir()) / f"synthbench-{os.getuid()}"
    if kind := network_file_system(folder):
        raise UserError(
            f"{folder} lies on a network file system ({kind}); set {CACHE_VARIABLE} to a local disk"
        )
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    status = folder.lstat()
    if status.st_uid != os.getuid() or not stat.S_ISDIR(status.st_mode):
        raise UserError(
            f"{folder}: is not yours; set {CACHE_VARIABLE} to a folder of your own on a local disk"
        )
    return folder


def _objects(name: str, named_by: str = VARIABLE) -> Objects:
    scheme, separator, path = name.partition("://")
    if not separator:
        folder = Path(name)
        if not folder.is_dir():
            raise UserError(f"{VARIABLE}={name}: there is no such folder; make it where all machines see it")
        return FolderObjects(folder.absolute())
    if scheme not in SCHEMES or not path.partition("/")[0] or "@" in path or "?" in path:
        kinds = ", ".join(f"{each}://BUCKET/PATH" for each in SCHEMES)
        raise UserError(f"{named_by}: not a store; write a folder or {kinds}, without credentials")
    return CloudObjects(name)


def _lease_seconds() -> float:
    text = os.environ.get(LEASE_VARIABLE, "")
    try:
        seconds = float(text or LEASE_SECONDS)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise UserError(f"{LEASE_VARIABLE}={text}: not a number of seconds above 0")
    return seconds
