"""What was found by looking at data of the store, kept there: looking again costs nothing but time."""

import hashlib
import json
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from synthbench.durability import DamagedFileError, read_sealed, write_sealed
from synthbench.pipeline.engine.artifacts import Artifacts
from synthbench.pipeline.engine.store import Store

FOLDER = "examined"
LAYOUT = 3
"""Of the files; it is in their names, so that those of another are not read."""


class ResultCache:
    """JSON values by what was looked at; `version` is raised whenever the same data give another value."""

    def __init__(self, artifacts: Artifacts, version: int) -> None:
        self._folder = artifacts.root / FOLDER
        self._say = artifacts.say
        self._version = version

    def kept(self, *key: object) -> Any:  # noqa: ANN401 - JSON
        """Return what was kept, None if nothing was, or what was is damaged, which is said."""
        try:
            return read_sealed(self._file(key))["value"]
        except FileNotFoundError:
            return None
        except DamagedFileError as damage:
            name = self._file(key).name
            self._say(f"{FOLDER}/{name} {damage}; looking at the data again")
            return None

    def keep(self, value: object, *key: object, of: Iterable[str]) -> None:
        """Keep a value, if there is room for it, as long as the stages whose data it is `of` are there."""
        with suppress(OSError):
            self._file(key).parent.mkdir(parents=True, exist_ok=True)
            write_sealed(self._file(key), {"of": list(of), "value": value})

    def _file(self, key: tuple[object, ...]) -> Path:
        digest = hashlib.sha256(json.dumps([LAYOUT, self._version, *key]).encode()).hexdigest()
        return self._folder / f"{digest}.json"


def forget_what_is_gone(store: Store) -> None:
    """Remove what was found in data that the store no longer holds, and what can't be read."""
    for file in (store.root / FOLDER).glob("*.json"):
        if not _is_of_what_is_there(file, store):
            file.unlink(missing_ok=True)


def _is_of_what_is_there(file: Path, store: Store) -> bool:
    try:
        return all(map(store.has, read_sealed(file)["of"]))
    except (FileNotFoundError, DamagedFileError):
        return False
