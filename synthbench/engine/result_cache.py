"""A cache of figures computed from artifacts (data checks, item noise); no stage depends on it."""

import hashlib
import json
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from synthbench.base.durability import DamagedFileError, read_sealed, write_sealed
from synthbench.engine.artifacts import Artifacts
from synthbench.engine.store import Store

FOLDER = "examined"
LAYOUT = 3
"""Version of the file layout. File names contain it, so files of other layouts are ignored."""


class ResultCache:
    """Caches JSON values by key. Increment `version` when a change of code alters the values."""

    def __init__(self, artifacts: Artifacts, version: int) -> None:
        self._artifacts = artifacts
        self._version = version

    def get(
        self,
        compute: Callable[[], Any],
        *key: object,
        of: Iterable[str],
        keeps: Callable[[], bool] = lambda: True,
    ) -> Any:  # noqa: ANN401 - JSON
        """Return the cached value of a key, else compute it and cache it if `keeps` then returns True.

        The value stays cached while all artifacts in `of` (their identities) are in the store. Damaged values
        are reported and recomputed. If the disk is full or read-only, nothing is cached.
        """
        file = self.file(*key)
        try:
            return read_sealed(file)["value"]
        except FileNotFoundError:
            pass
        except DamagedFileError as damage:
            self._artifacts.say(f"{FOLDER}/{file.name} {damage}; computing it again")
        value = compute()
        if not keeps():
            return value
        with suppress(OSError):
            file.parent.mkdir(parents=True, exist_ok=True)
            write_sealed(file, {"of": list(of), "value": value})
        return value

    def file(self, *key: object) -> Path:
        """Return the JSON file, with a checksum, that caches a key's value; it may not exist yet."""
        digest = hashlib.sha256(json.dumps([LAYOUT, self._version, *key]).encode()).hexdigest()
        return self._artifacts.root / FOLDER / f"{digest}.json"


def remove_orphans(store: Store) -> None:
    """Remove cached values that are damaged or whose artifacts are not all in the store."""
    for file in (store.root / FOLDER).glob("*.json"):
        with suppress(FileNotFoundError, DamagedFileError):
            if all(map(store.has, read_sealed(file)["of"])):
                continue
        file.unlink(missing_ok=True)
