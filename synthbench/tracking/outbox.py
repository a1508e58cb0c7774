"""The outbox: results in the home folder that wait until the tracking server can be reached."""

import hashlib
import json
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from synthbench.base.durability import (
    DamagedFileError,
    file_hash,
    read_sealed,
    sync_folder,
    sync_tree,
    write_sealed,
)
from synthbench.reporting.results import ExperimentResult, RunResult
from synthbench.tracking.payload import experiment_digest

FOLDER = "untracked"
RESULT_FILE = "result.json"
ITEMS_FILE = "items.json"
REPORT_FOLDER = "report"
HASHES_FILE = "hashes.json"
UNFINISHED = ".unfinished"
FORMER = ".former"
"""Suffix of the entry that another with the same digest replaces; after a kill, it waits as others do."""


@dataclass(frozen=True)
class Outbox:
    """The results that wait for the server at `address`; only a hash of the address is on disk."""

    home: Path
    address: str

    @property
    def folder(self) -> Path:
        """The folder of the results."""
        return self.home / FOLDER / hashlib.sha256(self.address.encode()).hexdigest()[:16]

    def add(self, result: ExperimentResult, report_folder: Path) -> Path:
        """Add a result, already without secrets, and its report's files, all or none; return the folder."""
        folder = self.folder / experiment_digest(result)[:16]
        unfinished, former = folder.with_suffix(UNFINISHED), folder.with_suffix(FORMER)
        shutil.rmtree(unfinished, ignore_errors=True)
        (unfinished / REPORT_FOLDER).mkdir(parents=True)
        for file in report_folder.glob("*"):
            if file.is_file():
                shutil.copyfile(file, unfinished / REPORT_FOLDER / file.name)
        # A result does not record where its per-item scores are.
        files = [[(scores.items_file, scores.sentences_file) for scores in run.scores] for run in result.runs]
        (unfinished / ITEMS_FILE).write_text(json.dumps(files), encoding="utf-8")
        (unfinished / RESULT_FILE).write_text(result.model_dump_json(), encoding="utf-8")
        written = (file for file in sorted(unfinished.rglob("*")) if file.is_file())
        hashes = {file.relative_to(unfinished).as_posix(): file_hash(file) for file in written}
        write_sealed(unfinished / HASHES_FILE, hashes)
        sync_tree(unfinished)
        if folder.exists():
            shutil.rmtree(former, ignore_errors=True)
            folder.rename(former)
        unfinished.rename(folder)
        sync_folder(self.folder)
        shutil.rmtree(former, ignore_errors=True)
        return folder

    def waiting(self) -> list[Path]:
        """Return the folders of waiting results, oldest first."""
        folders = (file.parent for file in self.folder.glob(f"*/{RESULT_FILE}"))
        whole = [folder for folder in folders if folder.suffix != UNFINISHED]
        return sorted(whole, key=lambda folder: (folder / RESULT_FILE).stat().st_mtime_ns)

    def remove(self, folder: Path) -> None:
        """Remove the folder of a recorded result."""
        shutil.rmtree(folder, ignore_errors=True)
        for parent in (self.folder, self.folder.parent):
            if parent.is_dir() and not any(parent.iterdir()):
                parent.rmdir()


def read_entry(folder: Path) -> tuple[ExperimentResult, Path]:
    """Return a waiting result and the folder of its report; raises ValueError if it is damaged."""
    _check(folder)
    result = ExperimentResult.model_validate_json((folder / RESULT_FILE).read_text(encoding="utf-8"))
    items = json.loads((folder / ITEMS_FILE).read_text(encoding="utf-8"))
    runs = tuple(_with_items(run, files) for run, files in zip(result.runs, items, strict=True))
    return result.model_copy(update={"runs": runs}), folder / REPORT_FOLDER


def _check(folder: Path) -> None:
    """Raise ValueError if a file was changed or is missing; results of older versions are not checked."""
    try:
        hashes = read_sealed(folder / HASHES_FILE)
    except FileNotFoundError:
        return
    except DamagedFileError as damage:
        raise ValueError(f"{HASHES_FILE} {damage}") from damage
    for name, expected in hashes.items():
        if not (folder / name).is_file() or file_hash(folder / name) != expected:
            raise ValueError(f"{name} is damaged")


def _with_items(run: RunResult, files: Sequence[str | tuple[str, str]]) -> RunResult:
    """Return the run with the paths of its per-item scores and of the items' sentences.

    `files` are (items file, sentences file) by score; earlier versions recorded only the items file.
    """
    pairs = [(file, "") if isinstance(file, str) else file for file in files]
    scores = tuple(
        one.model_copy(update={"items_file": items, "sentences_file": sentences})
        for one, (items, sentences) in zip(run.scores, pairs, strict=True)
    )
    return run.model_copy(update={"scores": scores})
