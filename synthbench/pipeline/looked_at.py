"""What was found by looking at data of the store, kept there: looking again costs nothing but time."""

import hashlib
import json
from contextlib import suppress
from pathlib import Path
from typing import Any

from synthbench.pipeline.store import Store, write_atomically


class LookedAt:
    """JSON values by what was looked at; `version` is raised whenever the same data give another value."""

    def __init__(self, store: Store, version: int) -> None:
        self._folder = store.root / "examined"
        self._version = version

    def kept(self, *key: object) -> Any:  # noqa: ANN401 - JSON
        """Return what was kept, None if nothing was."""
        try:
            return json.loads(self._file(key).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None

    def keep(self, value: object, *key: object) -> None:
        """Keep a value, if there is room for it."""
        with suppress(OSError):
            self._file(key).parent.mkdir(parents=True, exist_ok=True)
            write_atomically(self._file(key), json.dumps(value, ensure_ascii=False) + "\n")

    def _file(self, key: tuple[object, ...]) -> Path:
        digest = hashlib.sha256(json.dumps([self._version, *key]).encode()).hexdigest()
        return self._folder / f"{digest}.json"
