"""The ledger of LLM answers and costs that all machines of a shared store have in common.

The store holds the ledger as numbered entries `ledger/<number>`, each a list of changed rows. Each machine
has a copy in an SQLite file on a local disk. One machine at a time asks LLMs: it holds a lease, reads the
entries of the others, and creates an entry of its own. From then on, a former holder that still lives can add
nothing, since the next number is taken. An attempt is in the store before its request is sent, so budgets
hold on all machines together. At the end of its turn, the machine merges entries into
`ledger/merged/<first>-<last>`, so that a new machine reads few objects.
"""

import json
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from synthbench.base.durability import DamagedFileError, seal, unseal, write_atomically
from synthbench.base.errors import UserError
from synthbench.base.home import home
from synthbench.base.patterns import linear_pattern
from synthbench.engine.leases import StageBusyError, this_process
from synthbench.engine.patience import PatientObjects
from synthbench.llm.cache import FILE
from synthbench.llm.database import lock
from synthbench.llm.ledger_copy import LedgerCopy, Row

FOLDER = "ledger/"
LEASE = "llm-ledger"
TURN = "turn"
"""The file, beside the copy, with the id of this machine's last turn; the turn's entries have that id."""
BYTES_OF_A_MERGED_ENTRY = 8_000_000
"""Size at which a merged entry is closed; a machine reads at most `durability.MOST_BYTES` at once."""
MOST_READS = 5
"""How often entries are read while another machine merges them."""
_KEY = linear_pattern(r"ledger/(?:([0-9]{10})|merged/([0-9]{10})-([0-9]{10}))")


class LocalLedger:
    """The ledger of a store on one machine: a file that its processes share."""

    def held(self) -> AbstractContextManager[object]:
        """Return a context without effect: SQLite's locks suffice."""
        return ExitStack()

    def send(self) -> None:
        """Do nothing: all processes use one file."""

    def receive(self) -> None:
        """Do nothing: all processes use one file."""


@dataclass(frozen=True)
class LedgerEntry:
    """An entry of the shared ledger; a merged one replaces the entries with numbers `first` to `last`."""

    key: str
    first: int
    last: int

    @property
    def is_merged(self) -> bool:
        """Whether this entry replaces numbered entries."""
        return self.key.startswith(f"{FOLDER}merged/")


class SharedLedger:
    """A shared store's ledger, with this machine's copy in `folder`. `hold` takes a lease by name and label.

    Methods raise UserError if the store or the file can't be used.
    """

    def __init__(
        self,
        objects: PatientObjects,
        folder: Path,
        hold: Callable[[str, str], AbstractContextManager[object]],
    ) -> None:
        self._objects = objects
        self._folder = folder
        self._hold = hold

    @contextmanager
    def held(self) -> Iterator[None]:
        """Within the block, let only this process and its workers ask LLMs and use the budgets.

        If the block ends without error, sends this machine's changes and merges entries.
        Raises StageBusyError while another process holds the ledger.
        """
        with self._hold(LEASE, "asking an LLM"):
            self._begin()
            yield
            self.send()
            self._merge()

    def send(self) -> None:
        """Add the unsent changes of this machine's copy to the store, if there are any.

        Raises UserError if another machine has taken over the ledger.
        """
        with self._copy() as copy:
            while (changes := copy.unsent()).rows:
                entry = copy.last_entry + 1
                if copy.has_turn and self._create(entry, changes.rows):
                    copy.sent(changes, entry)
                    continue
                # A killed process of this machine may have created the entry, and not noted it.
                self._receive(copy)
                # A turn is over, too, if this machine has read another's entries meanwhile: its last attempts
                # were booked before it knew of the other's.
                if not copy.has_turn or copy.last_entry < entry:
                    raise UserError(
                        f"{self._objects}: another machine took over the ledger of LLM answers, since this"
                        " one was silent for a while; run the same command again"
                    )

    def receive(self) -> None:
        """Add the store's new entries to this machine's copy."""
        if self._objects.list(FOLDER):
            with self._copy() as copy:
                self._receive(copy)

    def _begin(self) -> None:
        with self._copy() as copy:
            if not copy.last_entry:
                copy.add_answers(home() / "store" / "llm" / FILE)
            while True:
                self._receive(copy)
                entry = copy.last_entry + 1
                write_atomically(self._folder / TURN, uuid.uuid4().hex)
                if self._create(entry, []):
                    copy.begin_turn(entry)
                    return

    def _receive(self, copy: LedgerCopy) -> None:
        for _ in range(MOST_READS):
            entries = self._entries(copy.last_entry)
            missing = _gap(copy.last_entry, entries)
            try:
                for entry in entries if missing is None else ():
                    self._receive_one(copy, entry)
            except FileNotFoundError as gone:
                missing = str(gone)
            if missing is None:
                return
        raise UserError(f"{self._objects}: the ledger of LLM answers lacks {missing}; restore it")

    def _receive_one(self, copy: LedgerCopy, entry: LedgerEntry) -> None:
        try:
            found = self._objects.checked(entry.key, unseal)
            rows = found.get("rows")
            if not isinstance(rows, list):
                raise ValueError("no rows")
            turn = self._turn()
            if copy.has_turn and turn and found.get("turn") == turn:
                copy.begin_turn(entry.last)  # what a killed process of this turn sent; it is sent again
                return
            copy.receive(entry.last, rows, is_merged=entry.is_merged)
        except (DamagedFileError, ValueError) as error:
            damage = error if isinstance(error, DamagedFileError) else "is none of this ledger"
            raise UserError(
                f"{self._objects}/{entry.key}: {damage}; restore this part of the ledger of LLM answers"
            ) from error

    def _entries(self, after: int) -> list[LedgerEntry]:
        """Return the entries after a number, in order, without entries that a merged one replaces."""
        found = []
        for listed in self._objects.list(FOLDER):
            if matched := _KEY.fullmatch(listed.key):
                number, first, last = matched.groups()
                entry = LedgerEntry(listed.key, int(number or first), int(number or last))
                if entry.last > after:
                    found.append(entry)
        merged = [entry for entry in found if entry.is_merged]
        alone = (
            entry
            for entry in found
            if not entry.is_merged and not any(each.first <= entry.first <= each.last for each in merged)
        )
        return sorted((*merged, *alone), key=lambda entry: (entry.last, -entry.first))

    def _merge(self) -> None:
        with self._copy() as copy:
            entries = copy.unmerged()
            if len(entries) < 2:
                return
            rows: dict[tuple[object, ...], Row] = {}
            begun, size = entries[0], 0
            for entry in entries:
                found = {(table, *key): [table, key, values] for table, key, values in copy.rows_of(entry)}
                rows |= found
                size += len(json.dumps(list(found.values())))
                if size > BYTES_OF_A_MERGED_ENTRY or entry == entries[-1]:
                    content = seal({"rows": list(rows.values())})
                    self._objects.write(f"{FOLDER}merged/{begun:010}-{entry:010}", content.encode())
                    begun, size, rows = entry + 1, 0, {}
            # An entry that begins a machine's turn has no rows, and stays: else a former holder of the ledger
            # could add an entry of this number.
            self._objects.delete([_name(entry) for entry in entries])
            copy.merged(entries)

    def _create(self, number: int, rows: Sequence[Any]) -> bool:
        by = {**this_process("asking an LLM"), "token": uuid.uuid4().hex}
        content = seal({"by": by, "turn": self._turn(), "rows": rows})
        return self._objects.create(_name(number), content.encode())

    def _turn(self) -> str:
        file = self._folder / TURN
        return file.read_text(encoding="utf-8") if file.exists() else ""  # earlier versions wrote none

    @contextmanager
    def _copy(self) -> Iterator[LedgerCopy]:
        """Yield this machine's copy, locked: one process at a time sends or receives."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with lock(self._folder / "sending"), closing(LedgerCopy(self._folder / FILE)) as copy:
            yield copy


def _name(number: int) -> str:
    return f"{FOLDER}{number:010}"


def _gap(after: int, entries: Iterable[LedgerEntry]) -> str | None:
    """Return the name of the first missing entry after a number, None if none is missing."""
    for entry in entries:
        if entry.first > after + 1:
            return _name(after + 1)
        after = max(after, entry.last)
    return None


class CountedHold(AbstractContextManager["CountedHold"]):
    """Holds the ledger while any of several jobs uses it; the end of the `with` block releases it."""

    def __init__(self, hold: Callable[[], AbstractContextManager[object]]) -> None:
        self._hold = hold
        self._held = ExitStack()
        self._num_users = 0

    def __exit__(self, *error: object) -> None:
        self._held.close()

    def enter(self) -> str:
        """Register a job and return ""; if another process holds the ledger, return its description."""
        try:
            if not self._num_users:
                self._held.enter_context(self._hold())
        except StageBusyError as busy:
            return str(busy)
        self._num_users += 1
        return ""

    def leave(self) -> None:
        """Unregister a job; after the last one, the ledger is released."""
        self._num_users -= 1
        if not self._num_users:
            self._held.close()
