"""The store's registrations: files that are only ever added, each named by the hash of its content.

    registrations/<hash>.json       a registration, with a checksum
    registrations/items/<hash>      the keys of a test set's items: sorted 64-bit numbers
    registrations/scored/<hash>     a run of the registration has made scores

`clean` keeps these files. Each is written whole or not at all, so several machines may register at once.
"""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pydantic import ValidationError

from synthbench.base.durability import DamagedFileError, seal, unseal
from synthbench.base.errors import first_fault
from synthbench.base.patterns import linear_pattern
from synthbench.engine.listing import at_once
from synthbench.engine.objects import FolderObjects
from synthbench.engine.patience import PatientObjects
from synthbench.engine.store import Store
from synthbench.registration.record import DeclaredSet, Identity, Registration

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Keys = NDArray[np.uint64]

FOLDER = "registrations/"
KEY_BYTES = 8
"""Bytes of an item's key."""
_RECORD = linear_pattern(r"registrations/([0-9a-f]{64})\.json")
_SCORED = linear_pattern(r"registrations/scored/([0-9a-f]{64})")


@dataclass(frozen=True)
class KnownRegistrations:
    """The registrations in a store, oldest first, and which of them have scores."""

    records: Mapping[Identity, Registration]
    scored: frozenset[Identity] = frozenset()
    num_unreadable: int = 0
    stages: Mapping[Identity, DeclaredSet] = field(default_factory=dict)
    """Stage -> the test set that it read."""

    def equal_to(self, declared: str) -> Identity | None:
        """Return the hash of the first registration whose `declared` is this hash; None if there is none."""
        return next((name for name, each in self.records.items() if each.declared == declared), None)


class Registrations:
    """Reads and adds the registrations of a store; `say` reports unreadable ones."""

    def __init__(self, store: Store, say: Callable[[str], None]) -> None:
        local = PatientObjects(FolderObjects(store.root))
        self._objects = local if store.shared is None else store.shared.objects
        self._say = say
        self._items: dict[Identity, Keys | None] = {}
        self._files: dict[Identity, Registration | str] = {}

    def known(self) -> KnownRegistrations:
        """Return the readable registrations; report and count damaged ones and those of other versions."""
        keys = sorted(entry.key for entry in self._objects.list(FOLDER))
        names = [found[1] for key in keys if (found := _RECORD.fullmatch(key))]
        # Files never change, so each is read once.
        for name, read in at_once(self._read, [name for name in names if name not in self._files]):
            self._files[name] = read
            if isinstance(read, str):
                self._say(f"{_key(name)}: {read}; passed over")
        records = {name: each for name in names if isinstance(each := self._files[name], Registration)}
        oldest_first = dict(sorted(records.items(), key=lambda item: (item[1].time, item[0])))
        return KnownRegistrations(
            oldest_first,
            frozenset(found[1] for key in keys if (found := _SCORED.fullmatch(key))),
            len(names) - len(records),
            {test.stage: test for each in oldest_first.values() for test in each.tests},
        )

    def content(self, name: Identity) -> bytes:
        """Return the bytes of a registration's file; raises FileNotFoundError if it is gone."""
        return self._objects.read(_key(name))

    def add(self, registration: Registration) -> Identity:
        """Add a registration and return its hash."""
        content = seal(registration.model_dump(mode="json")).encode()
        name = hashlib.sha256(content).hexdigest()
        self._objects.write(_key(name), content)
        return name

    def mark_scored(self, name: Identity) -> None:
        """Record that a run of the registration has made scores, since the scores may be removed later."""
        self._objects.write(f"{FOLDER}scored/{name}", b"scored\n")

    def add_items(self, keys: "Keys") -> Identity:
        """Add the keys of a test set's items and return their hash."""
        content = keys.astype("<u8").tobytes()
        name = hashlib.sha256(content).hexdigest()
        if self.items(name) is None:
            self._objects.write(f"{FOLDER}items/{name}", content)
            self._items[name] = keys
        return name

    def items(self, name: Identity) -> "Keys | None":
        """Return the keys of a test set's items, given their hash; None if they are damaged or gone."""
        import numpy as np

        if name not in self._items:
            try:
                content = self._objects.read(f"{FOLDER}items/{name}")
            except FileNotFoundError:
                content = b""
            is_hashed = hashlib.sha256(content).hexdigest() == name
            is_whole = content and len(content) % KEY_BYTES == 0 and is_hashed
            self._items[name] = np.frombuffer(content, "<u8").astype(np.uint64) if is_whole else None
        return self._items[name]

    def _read(self, name: Identity) -> Registration | str:
        """Return a registration, or why it is unreadable."""
        try:
            content = self.content(name)
            if hashlib.sha256(content).hexdigest() != name:
                return "damaged: its content does not have this hash"
            return Registration.model_validate(unseal(content))
        except FileNotFoundError:
            return "gone"
        except DamagedFileError as damage:
            return f"damaged: it {damage}"
        except ValidationError as error:
            return f"not a registration of this version: {first_fault(error)}"


def _key(name: Identity) -> str:
    return f"{FOLDER}{name}.json"
