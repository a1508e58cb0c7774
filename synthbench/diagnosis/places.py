"""Folders: the home with its store, the hub's cache, the standard data sets."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from synthbench.diagnosis.finding import Finding, fine, note, problem
from synthbench.errors import UserError
from synthbench.sources.folders import task_files
from synthbench.sources.tasks import TASKS

GB = 10**9
SCARCE_SPACE = 10 * GB
LEAST_SPACE = 1 * GB


def home_folder(home: Path) -> Iterator[Finding]:
    """Look whether the home can be written to, and at the space on its disk."""
    place = _existing(home)
    elsewhere = "set SYNTHBENCH_HOME to a folder that can be written to"
    if not place.is_dir() or not os.access(place, os.W_OK | os.X_OK):
        reason = "is no folder" if not place.is_dir() else "can't be written to"
        yield problem("home", f"{home}: {place} {reason}", elsewhere)
        return
    made = "" if home.is_dir() else "; made by the first run"
    yield fine("home", f"{home.absolute()}{made}")
    free = shutil.disk_usage(place).free
    if free >= SCARCE_SPACE:
        yield fine("disk", f"{_gigabytes(free)} free")
    else:
        finding = problem if free < LEAST_SPACE else note
        yield finding(
            "disk",
            f"only {_gigabytes(free)} free",
            "make room (`synthbench clean` says what it can give back)",
        )


def store(home: Path) -> Finding:
    """Say how much the store holds."""
    folder = home / "store"
    if not folder.is_dir():
        return fine("store", "empty")
    sizes = [size for path in folder.rglob("*") if (size := _size(path)) is not None]
    return fine("store", f"{_gigabytes(sum(sizes))} in {len(sizes):,} files; `synthbench clean` lists them")


def hub() -> Iterator[Finding]:
    """Look at the cache of the Hugging Face hub, and whether downloading is switched off."""
    from huggingface_hub import constants

    cache = Path(constants.HF_HUB_CACHE)
    place = _existing(cache)
    if not place.is_dir() or not os.access(place, os.W_OK | os.X_OK):
        yield note("hub cache", f"{cache} can't be written to", "set HF_HOME to a folder that can be")
    else:
        num_models = sum(1 for _ in cache.glob("models--*"))
        yield fine("hub cache", f"{cache}, {num_models} {'model' if num_models == 1 else 'models'}")
    if constants.HF_HUB_OFFLINE:
        yield note(
            "hub",
            "offline mode: only what is in the cache is used",
            "unset HF_HUB_OFFLINE to download models",
        )


def data() -> Finding:
    """Say which standard test sets are in the data folder; their content is read by `validate` and runs."""
    named = os.environ.get("SYNTHBENCH_DATA", "")
    advice = "point SYNTHBENCH_DATA (or --data) at a folder that holds SentEval's STS and SICK"
    if not named:
        return note(
            "data", "SYNTHBENCH_DATA is not set: tasks are found with --data or on the hub only", advice
        )
    if not Path(named).is_dir():
        return problem("data", f"SYNTHBENCH_DATA={named}: no such folder", advice)
    found = [name for name in TASKS if _has_task(name, Path(named))]
    absent = [name for name in TASKS if name not in found]
    if not found:
        return note("data", f"{named} holds none of {', '.join(TASKS)}", advice)
    if absent:
        return note("data", f"{named} holds {', '.join(found)}; not {', '.join(absent)}", advice)
    return fine("data", f"{named} holds {', '.join(found)}")


def _has_task(name: str, folder: Path) -> bool:
    task = TASKS[name]
    split = "test" if "test" in task.parts else next(iter(task.parts))
    try:
        task_files(task, split, folder)
    except UserError:
        return False
    return True


def _existing(path: Path) -> Path:
    """Return the path, or the nearest one above it that exists."""
    absolute = path.absolute()
    return next(each for each in (absolute, *absolute.parents) if each.exists())


def _size(path: Path) -> int | None:
    """Return the bytes of a file; None for folders, and what is gone meanwhile."""
    try:
        return path.lstat().st_size if path.is_file() else None
    except OSError:
        return None


def _gigabytes(size: int) -> str:
    return f"{size / GB:.1f} GB"
