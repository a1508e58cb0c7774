"""Retries requests to an unreachable store for an hour, so that computed results are not lost."""

import hashlib
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from synthbench.base.durability import MOST_BYTES, DamagedFileError
from synthbench.base.errors import UserError
from synthbench.engine.cloud_objects import CloudObjects
from synthbench.engine.objects import (
    TRIES,
    ExpiredError,
    FolderObjects,
    ListedObject,
    UnavailableError,
    first_bytes,
)

SECONDS = 3600.0
"""Seconds of outage before a stage gives up; its results stay on this machine."""
SECONDS_AT_FIRST = 20.0
"""The limit before the store's first response: its name or address may be wrong."""
FIRST_PAUSE, SAID_FROM, LONGEST_PAUSE = 0.5, 4.0, 16.0
"""Seconds between attempts, doubling each time; `say` reports the outage at the pause of SAID_FROM."""
Answer = TypeVar("Answer")
Objects = FolderObjects | CloudObjects


@dataclass(frozen=True)
class Patience:
    """The retry limits in seconds, and the clock."""

    seconds: float = SECONDS
    seconds_at_first: float = SECONDS_AT_FIRST
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep


class PatientObjects:
    """Objects whose requests are retried while the store is unavailable.

    Methods raise UserError if the store refuses, UnavailableError if it stays unreachable. `say` reports each
    outage once, after some seconds.
    """

    def __init__(
        self, inner: Objects, patience: Patience | None = None, *, has_answered: bool = False
    ) -> None:
        self.inner = inner
        self.patience = patience or Patience()
        self.say: Callable[[str], None] = lambda _: None
        self._has_answered = threading.Event()
        if has_answered:
            self._has_answered.set()

    def __reduce__(self) -> tuple[Any, ...]:
        has_answered = self._has_answered.is_set()
        return partial(PatientObjects, has_answered=has_answered), (self.inner, self.patience)

    def __str__(self) -> str:
        return str(self.inner)

    @property
    def quick(self) -> "PatientObjects":
        """The same objects, with a short time-out per request; failed requests are still retried."""
        found = PatientObjects(self.inner.quick, self.patience)
        found.say, found._has_answered = self.say, self._has_answered
        return found

    def probe(self) -> None:
        """Check that objects can be created only once, listed, read and deleted.

        Raises UserError if not, since leases and commits depend on this.
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
        """Create an object atomically; False if the key exists with other content, which stays unchanged."""
        return self._ask(lambda: self.inner.create(key, content))

    def write(self, key: str, content: bytes | Path) -> None:
        """Write or overwrite an object with bytes or a file's content."""
        self._ask(lambda: self.inner.write(key, content))

    def read(self, key: str) -> bytes:
        """Return an object's content, truncated to MOST_BYTES + 1 bytes; raises FileNotFoundError."""
        return self._ask(lambda: b"".join(first_bytes(self.inner.parts(key), MOST_BYTES + 1)))

    def checked(self, key: str, parse: Callable[[bytes], Answer]) -> Answer:
        """Return an object's content, converted by `parse`; raises FileNotFoundError.

        If `parse` raises DamagedFileError, the network may have truncated the reply: reads up to TRIES times.
        """
        for _ in range(TRIES - 1):
            with suppress(DamagedFileError):
                return parse(self.read(key))
        return parse(self.read(key))

    def download(self, key: str, file: Path, size: int) -> None:
        """Write an object's content to a file, truncated to `size` + 1 bytes; raises FileNotFoundError."""

        def download() -> None:
            with file.open("wb") as copy:  # outside the store's error handling: a full disk here is not the
                # store's
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
        """Delete objects; missing ones are ignored."""
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
                self._has_answered.set()
                raise
            except UnavailableError as error:
                has_answered = self._has_answered.is_set()
                if isinstance(error, ExpiredError) and not has_answered:
                    raise  # whoever starts a command can renew them at once
                now = patience.clock()
                began = now if began is None else began
                left = began + (patience.seconds if has_answered else patience.seconds_at_first) - now
                if left <= 0:
                    raise
                if pause == SAID_FROM:
                    self.say(f"{error}; trying again for {max(1, round(left / 60))} min")
                patience.sleep(min(pause, left))
                pause = min(2 * pause, LONGEST_PAUSE)
            else:
                self._has_answered.set()
                return answer
