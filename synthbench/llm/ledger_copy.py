"""A machine's copy of a shared ledger: it notes rows to send, and applies other machines' changes.

The shared ledger is a sequence of numbered entries, each a list of changed rows. A turn is the time in which
one machine alone may add entries (`engine.shared_ledger`). Triggers write a note on each changed
row. Once the row is sent or received, the note gets the entry's number. Merging entries deletes their notes.
"""

import json
import secrets
import shutil
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from synthbench.base.mounts import network_file_system
from synthbench.llm.database import Database

Row = list[Any]
"""A table's name, the key's values, and the row's values or None if it was deleted."""
KEYS = {
    "answers": ("key",),
    "logprobs": ("key",),
    "attempts": ("id",),
    "payers": ("attempt",),
    "replies": ("attempt",),
    "stage_models": ("stage", "model"),
    "usage_details": ("attempt",),
    "batches": ("token",),
}
"""Shared table -> its key's columns. `spending` is not sent: it is computed again from `attempts`."""
MOST_ROWS = 500
"""Maximum number of rows in an entry, which must stay small enough to be read at once."""
_RANDOM_BITS = 10
_SCHEMA = """
CREATE TABLE IF NOT EXISTS changes (
  number INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL, key TEXT NOT NULL, entry INTEGER
);
CREATE INDEX IF NOT EXISTS changes_by_entry ON changes (entry);
CREATE TABLE IF NOT EXISTS progress (entry INTEGER NOT NULL, has_turn INTEGER NOT NULL);
INSERT INTO progress SELECT 0, 0 WHERE NOT EXISTS (SELECT 1 FROM progress);
"""
_TRIGGER = """
CREATE TRIGGER IF NOT EXISTS {table}_{event} AFTER {event} ON {table} BEGIN
  INSERT INTO changes (name, key) VALUES ('{table}', json_array({keys}));
END;
"""
_SPENDING = """
INSERT INTO spending (experiment, llm, endpoint, model, usd, tokens)
SELECT experiment, llm, endpoint, model, total(usd), sum(prompt_tokens + completion_tokens)
FROM attempts JOIN payers ON attempt = id WHERE state <> 'refused'
GROUP BY experiment, llm, endpoint, model
"""


def new_number() -> int:
    """Return an id for an attempt: its time in microseconds, with 10 random bits against equal ids."""
    return (time.time_ns() // 1000 << _RANDOM_BITS) | secrets.randbits(_RANDOM_BITS)


@dataclass(frozen=True)
class ChangedRows:
    """Rows to send, and the number of the last note (table `changes`) that they cover."""

    rows: list[Row]
    last_note: int


class LedgerCopy:
    """This machine's copy of the shared ledger, in one SQLite file; for one thread.

    Methods raise UserError if the file can't be used.
    """

    def __init__(self, file: Path) -> None:
        self._database = Database(file)
        self._columns: Mapping[str, Mapping[str, bool]] = {
            table: {row[1]: bool(row[3]) for row in self._database.execute(f"PRAGMA table_info({table})")}
            for table in KEYS
        }
        """Table -> its columns -> whether they are NOT NULL."""
        if not self._database.execute("SELECT 1 FROM sqlite_master WHERE name = 'progress'"):
            self._database.run_script(_SCHEMA + "".join(_triggers()))

    def close(self) -> None:
        """Close the file."""
        self._database.close()

    @property
    def last_entry(self) -> int:
        """The number of the last entry that the copy holds."""
        return self._database.number("SELECT entry FROM progress")

    @property
    def has_turn(self) -> bool:
        """Whether this machine began the last turn that the copy knows of."""
        return bool(self._database.number("SELECT has_turn FROM progress"))

    def begin_turn(self, entry: int) -> None:
        """Record that this machine has the turn, and that its copy holds all entries up to this one."""
        self._database.execute("UPDATE progress SET entry = ?, has_turn = 1", (entry,))

    def unsent(self) -> ChangedRows:
        """Return at most MOST_ROWS rows that this machine changed and has not sent yet."""
        with self._database.transaction():
            oldest = "SELECT number FROM changes WHERE entry IS NULL ORDER BY number LIMIT ?"
            last = self._database.number(f"SELECT coalesce(max(number), 0) FROM ({oldest})", MOST_ROWS)
            return ChangedRows(self._rows("entry IS NULL AND number <= ?", last), last)

    def sent(self, changes: ChangedRows, entry: int) -> None:
        """Record that these changes were sent as this entry."""
        with self._database.transaction():
            self._database.execute(
                "UPDATE changes SET entry = ? WHERE entry IS NULL AND number <= ?", (entry, changes.last_note)
            )
            self._database.execute("UPDATE progress SET entry = ?", (entry,))

    def receive(self, entry: int, rows: Iterable[object], *, is_merged: bool) -> None:
        """Apply the rows of another machine's entry, and end this machine's turn.

        A row that changed here and was not sent yet stays as it is here. `is_merged`: the entry
        combines several earlier entries.

        Raises ValueError if a row doesn't fit the ledger's tables; nothing is applied then.
        """
        with self._database.transaction():
            before = self._database.number("SELECT coalesce(max(number), 0) FROM changes")
            unsent = self._database.execute("SELECT name, key FROM changes WHERE entry IS NULL")
            own = {(name, *json.loads(key)) for name, key in unsent}
            num_rows = 0
            for row in rows:
                table, key, values = self._checked(row)
                num_rows += 1
                if (table, *key) not in own:
                    self._write(table, key, values)
            if is_merged:
                self._database.execute("DELETE FROM changes WHERE number > ?", (before,))
            else:
                self._database.execute("UPDATE changes SET entry = ? WHERE number > ?", (entry, before))
            self._database.execute("UPDATE progress SET entry = max(entry, ?), has_turn = 0", (entry,))
            if num_rows:
                self._database.execute("DELETE FROM spending")
                self._database.execute(_SPENDING)

    def unmerged(self) -> list[int]:
        """Return, in order, the numbers of the entries that have rows and were not merged yet."""
        query = "SELECT DISTINCT entry FROM changes WHERE entry IS NOT NULL ORDER BY entry"
        return [entry for (entry,) in self._database.execute(query)]

    def rows_of(self, entry: int) -> list[Row]:
        """Return the present content of the rows of an unmerged entry."""
        return self._rows("entry = ?", entry)

    def merged(self, entries: Iterable[int]) -> None:
        """Record that these entries have been merged."""
        with self._database.transaction():
            for entry in entries:
                self._database.execute("DELETE FROM changes WHERE entry = ?", (entry,))

    def add_answers(self, file: Path) -> None:
        """Copy the answers of this machine's unshared ledger, so that they are not paid for again.

        Answers that the copy has are kept; without the file, nothing is done.
        """
        if not file.exists():
            return
        with ExitStack() as opened:
            if network_file_system(file):
                folder = tempfile.TemporaryDirectory(dir=self._database.file.parent)
                file = _copied(file, Path(opened.enter_context(folder)))
            earlier = opened.enter_context(closing(Database(file)))
            for table in ("answers", "logprobs"):
                columns = ", ".join(self._columns[table])
                with self._database.transaction():
                    for row in earlier.execute(f"SELECT {columns} FROM {table}"):
                        self._insert(table, row, "IGNORE")

    def _rows(self, which: str, *values: int) -> list[Row]:
        """Return the rows whose notes meet the SQL condition `which`, each once, with their present values.

        A deleted row has None instead of values.
        """
        rows: list[Row] = []
        query = f"SELECT DISTINCT name, key FROM changes WHERE {which}"
        for table, text in self._database.execute(query, values):
            key = json.loads(text)
            condition = " AND ".join(f"{column} = ?" for column in KEYS[table])
            columns = ", ".join(self._columns[table])
            found = self._database.execute(f"SELECT {columns} FROM {table} WHERE {condition}", tuple(key))
            rows.append([table, key, [_sendable(value) for value in found[0]] if found else None])
        return rows

    def _checked(self, row: object) -> tuple[str, list[Any], list[Any] | None]:
        match row:
            case [str(table), list(key), (list() | None) as values] if table in KEYS:
                columns = self._columns[table]
                is_plain = all(map(_is_plain, [*key, *(values or ())]))
                if is_plain and len(key) == len(KEYS[table]) and (values is None or _fits(values, columns)):
                    return table, key, values
        raise ValueError("no row of a ledger")

    def _write(self, table: str, key: list[Any], values: list[Any] | None) -> None:
        if values is None:
            condition = " AND ".join(f"{column} = ?" for column in KEYS[table])
            self._database.execute(f"DELETE FROM {table} WHERE {condition}", tuple(key))
        else:
            self._insert(table, values, "REPLACE")

    def _insert(self, table: str, values: Iterable[Any], otherwise: str) -> None:
        columns = self._columns[table]
        marks = ", ".join("?" * len(columns))
        self._database.execute(
            f"INSERT OR {otherwise} INTO {table} ({', '.join(columns)}) VALUES ({marks})", tuple(values)
        )


def _copied(file: Path, folder: Path) -> Path:
    """Copy an SQLite file with its write-ahead log to a folder."""
    for each in (file, file.with_name(f"{file.name}-wal")):
        with suppress(FileNotFoundError):
            shutil.copyfile(each, folder / each.name)
    return folder / file.name


def _sendable(value: Any) -> Any:  # noqa: ANN401 - SQLite's
    """Return a value that JSON can hold: in damaged text, replace bytes that are not UTF-8."""
    if isinstance(value, str):
        return value.encode(errors="surrogateescape").decode(errors="replace")
    return value


def _is_plain(value: object) -> bool:
    """Return whether SQLite can hold a value from JSON; its integers have 64 bits."""
    return isinstance(value, str | float | None) or (isinstance(value, int) and -(2**63) <= value < 2**63)


def _fits(values: Sequence[Any], columns: Mapping[str, bool]) -> bool:
    """Return whether there is a value for each column; None is allowed only in columns without NOT NULL."""
    return len(values) == len(columns) and not any(
        value is None and is_required for value, is_required in zip(values, columns.values(), strict=True)
    )


def _triggers() -> Iterable[str]:
    for table, columns in KEYS.items():
        for event, row in (("INSERT", "NEW"), ("UPDATE", "NEW"), ("DELETE", "OLD")):
            keys = ", ".join(f"{row}.{column}" for column in columns)
            yield _TRIGGER.format(table=table, event=event, keys=keys)
