"""Objects that are asked again, for minutes, while their store is away: what was computed waits for it."""

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from synthbench.engine.objects import ListedObject, Objects, UnavailableError

SECONDS = 600.0
"""How long a store may be away before a stage gives up; what it computed stays on this machine."""
SECONDS_AT_FIRST = 20.0
"""The same before the store has answered once: its name or address may be wrong."""
FIRST_PAUSE, SAID_FROM, LONGEST_PAUSE = 0.5, 4.0, 16.0
"""Seconds between attempts, each pause twice the one before; people are told before that of SAID_FROM."""
Answer = TypeVar("Answer")


@dataclass(frozen=True)
class Patience:
    """How long to go on asking, and by which clock."""

    seconds: float = SECONDS
    seconds_at_first: float = SECONDS_AT_FIRST
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep


class PatientObjects(Objects):
    """Other objects, asked again while they are unavailable. `say` tells people once per outage."""

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

    def create(self, key: str, content: bytes) -> bool:
        """Write an object, whole or not at all; False if there is one already."""
        return self._ask(lambda: self.inner.create(key, content))

    def write(self, key: str, content: bytes) -> None:
        """Write an object, or replace it."""
        self._ask(lambda: self.inner.write(key, content))

    def upload(self, key: str, file: Path) -> None:
        """Write a file's content as an object."""
        self._ask(lambda: self.inner.upload(key, file))

    def read(self, key: str) -> bytes:
        """Return an object's content; raises FileNotFoundError."""
        return self._ask(lambda: self.inner.read(key))

    def download(self, key: str, file: Path, size: int) -> None:
        """Write an object's content to a file; raises FileNotFoundError."""
        self._ask(lambda: self.inner.download(key, file, size))

    def digest(self, key: str) -> str:
        """Return the SHA-256 of an object's content; raises FileNotFoundError."""
        return self._ask(lambda: self.inner.digest(key))

    def delete(self, keys: Iterable[str]) -> None:
        """Remove objects."""
        found = list(keys)
        self._ask(lambda: self.inner.delete(found))

    def list(self, prefix: str) -> Iterator[ListedObject]:
        """Yield the objects below a prefix, each once."""
        seen: set[str] = set()
        outage = _Outage(self.patience, self.say)
        while True:
            try:
                for entry in self.inner.list(prefix):
                    self._has_answered = True
                    if entry.key not in seen:
                        seen.add(entry.key)
                        outage = _Outage(self.patience, self.say)
                        yield entry
                self._has_answered = True
                return
            except UnavailableError as error:
                outage.wait(error, has_answered=self._has_answered)

    def _ask(self, request: Callable[[], Answer]) -> Answer:
        outage = _Outage(self.patience, self.say)
        while True:
            try:
                answer = request()
            except UnavailableError as error:
                outage.wait(error, has_answered=self._has_answered)
            except FileNotFoundError:
                self._has_answered = True
                raise
            else:
                self._has_answered = True
                return answer


@dataclass
class _Outage:
    """The time since a request failed first, by a clock."""

    patience: Patience
    say: Callable[[str], None]
    began: float | None = None
    pause: float = FIRST_PAUSE

    def wait(self, error: UnavailableError, *, has_answered: bool) -> None:
        """Wait before the next attempt; raises the error if the store has been away for too long."""
        now = self.patience.clock()
        self.began = now if self.began is None else self.began
        seconds = self.patience.seconds if has_answered else self.patience.seconds_at_first
        left = self.began + seconds - now
        if left <= 0:
            raise error
        if self.pause == SAID_FROM:
            self.say(f"{error}; trying again for {max(1, round(left / 60))} min")
        self.patience.sleep(min(self.pause, left))
        self.pause = min(2 * self.pause, LONGEST_PAUSE)
