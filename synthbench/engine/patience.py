"""Objects that are asked again, for minutes, while their store is away: what was computed waits for it."""

import hashlib
import time
import uuid
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from synthbench.base.durability import MOST_BYTES
from synthbench.base.errors import UserError
from synthbench.engine.cloud_objects import CloudObjects
from synthbench.engine.objects import FolderObjects, ListedObject, UnavailableError, first_bytes

SECONDS = 600.0
"""How long a store may be away before a stage gives up; what it computed stays on this machine."""
SECONDS_AT_FIRST = 20.0
"""The same before the store has answered once: its name or address may be wrong."""
FIRST_PAUSE, SAID_FROM, LONGEST_PAUSE = 0.5, 4.0, 16.0
"""Seconds between attempts, each pause twice the one before; people are told before that of SAID_FROM."""
Answer = TypeVar("Answer")
Objects = FolderObjects | CloudObjects


@dataclass(frozen=True)
class Patience:
    """How long to go on asking, and by which clock."""

    seconds: float = SECONDS
    seconds_at_first: float = SECONDS_AT_FIRST
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep


class PatientObjects:
    """Objects, asked again while they are unavailable. `say` tells people once per outage.

    Methods raise UserError if the store refuses, UnavailableError if it stays away.
    """

    def __init__(
        self, inner: Objects, patience: Patience | None = None, *, has_answered: bool = False
    ) -> None:
        self.inner = inner
        self.patience = patience or Patience()
        self.say: Callable[[str], None] = lambda _: None
        self._has_answered = has_answered

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(PatientObjects, has_answered=self._has_answered), (self.inner, self.patience)

    def __str__(self) -> str:
        return str(self.inner)

    def probe(self) -> None:
        """Check that objects can be written, listed and read, and that what exists is never created again.

        Raises UserError: leases and commits rest on this.
        """
        key = f"probe/{uuid.uuid4().hex}"
        is_new, is_new_again = self.create(key, b"first"), self.create(key, b"second")
        try:
            found = self.read(key)
            listed = [entry.key for entry in self.list("probe/")]
        except FileNotFoundError:
            raise UserError(
                f"{self}: what was just written there is not found; it can't be a store"
            ) from None
        finally:
            self.delete([key])
        if not is_new or is_new_again or found != b"first" or key not in listed:
            raise UserError(
                f"{self}: what exists there can be created a second time, or is not listed, so two "
                "machines would take the same stage; use a file system with hard links (NFS, Lustre) or an "
                "object store that knows If-None-Match"
            )

    def create(self, key: str, content: bytes) -> bool:
        """Write an object, whole or not at all; False if there is another already, which stays as it is."""
        return self._ask(lambda: self.inner.create(key, content))

    def write(self, key: str, content: bytes | Path) -> None:
        """Write bytes, or what is in a file, as an object, or replace it."""
        self._ask(lambda: self.inner.write(key, content))

    def read(self, key: str) -> bytes:
        """Return an object's content, at most a byte more than MOST_BYTES; raises FileNotFoundError."""
        return self._ask(lambda: b"".join(first_bytes(self.inner.parts(key), MOST_BYTES + 1)))

    def download(self, key: str, file: Path, size: int) -> None:
        """Write an object's content to a file, at most a byte more than `size`; raises FileNotFoundError."""

        def download() -> None:
            with file.open("wb") as copy:  # whose disk, when it is full, is not the store's
                copy.writelines(first_bytes(self.inner.parts(key), size + 1))

        self._ask(download)

    def digest(self, key: str) -> str:
        """Return the SHA-256 of an object's content, in hex; raises FileNotFoundError."""

        def digest() -> str:
            found = hashlib.sha256()
            for part in self.inner.parts(key):
                found.update(part)
            return found.hexdigest()

        return self._ask(digest)

    def delete(self, keys: Iterable[str]) -> None:
        """Remove objects; those that are gone already make no difference."""
        found = list(keys)
        self._ask(lambda: self.inner.delete(found))

    def list(self, prefix: str) -> Sequence[ListedObject]:
        """Return the objects below a prefix, which ends with "/"."""
        return self._ask(lambda: list(self.inner.list(prefix)))

    def _ask(self, request: Callable[[], Answer]) -> Answer:
        patience, began, pause = self.patience, None, FIRST_PAUSE
        while True:
            try:
                answer = request()
            except FileNotFoundError:
                self._has_answered = True
                raise
            except UnavailableError as error:
                now = patience.clock()
                began = now if began is None else began
                left = began + (patience.seconds if self._has_answered else patience.seconds_at_first) - now
                if left <= 0:
                    raise
                if pause == SAID_FROM:
                    self.say(f"{error}; trying again for {max(1, round(left / 60))} min")
                patience.sleep(min(pause, left))
                pause = min(2 * pause, LONGEST_PAUSE)
            else:
                self._has_answered = True
                return answer
