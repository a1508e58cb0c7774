"""The SQLite file of answers, attempts and batches, shared by experiments and processes."""

import hashlib
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from synthbench.errors import UserError

if TYPE_CHECKING:
    from filelock import FileLock

SECONDS_TO_WAIT = 60.0
PAGES_TO_WRITE_BACK = 4000
"""The journal's length at which it is written back, which waits for the disk; SQLite's own is 1,000."""
BATCH = "batch-"
"""How the tokens of batches begin, which stand in the place of a session."""
HASH = (
    "hash_of(CAST(key AS BLOB), CAST(text AS BLOB), CAST(failure AS BLOB), prompt_tokens, completion_tokens)"
)
"""The hash of an answer's row: what is not as it was written is told by it."""
_PRIMARY_CODE = 0xFF
_SCHEMA = """
CREATE TABLE IF NOT EXISTS answers (
  key TEXT PRIMARY KEY, text TEXT, failure TEXT NOT NULL, prompt_tokens INTEGER NOT NULL,
  completion_tokens INTEGER NOT NULL, hash TEXT
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS attempts (
  id INTEGER PRIMARY KEY, key TEXT NOT NULL, endpoint TEXT NOT NULL, model TEXT NOT NULL,
  experiment TEXT NOT NULL, stage TEXT NOT NULL, session TEXT NOT NULL, sent REAL NOT NULL,
  state TEXT NOT NULL, reason TEXT NOT NULL DEFAULT '',
  prompt_tokens INTEGER NOT NULL, completion_tokens INTEGER NOT NULL, usd REAL NOT NULL
);
CREATE TABLE IF NOT EXISTS accounts (experiment TEXT PRIMARY KEY, usd REAL NOT NULL);
CREATE TABLE IF NOT EXISTS batches (
  token TEXT PRIMARY KEY, endpoint TEXT NOT NULL, model TEXT NOT NULL, sent REAL NOT NULL DEFAULT 0,
  id TEXT NOT NULL DEFAULT '', is_open INTEGER NOT NULL DEFAULT 1
);
CREATE INDEX IF NOT EXISTS under_way ON attempts (key) WHERE state = 'sent';
CREATE INDEX IF NOT EXISTS in_vain ON attempts (key) WHERE state IN ('refused', 'in doubt');
CREATE INDEX IF NOT EXISTS paid ON attempts (key) WHERE state = 'answered';
CREATE INDEX IF NOT EXISTS by_experiment ON attempts (experiment, stage);
"""


class Database:
    """A connection to the file; used by one thread, closed at the end.

    Raises UserError if the file can't be opened.
    """

    def __init__(self, file: Path) -> None:
        self.file = file
        with self.errors():
            file.parent.mkdir(parents=True, exist_ok=True)
            # One at a time: SQLite does not wait for another who changes the mode of the journal.
            with lock(file.parent / "opening").acquire(timeout=SECONDS_TO_WAIT):
                self._connection = sqlite3.connect(file, timeout=SECONDS_TO_WAIT, isolation_level=None)
                # A damaged text must be read before its hash can tell.
                self._connection.text_factory = _as_it_is
                self._connection.create_function("hash_of", -1, _hash_of, deterministic=True)
                self.execute("PRAGMA journal_mode = WAL")
                self.execute("PRAGMA synchronous = NORMAL")
                self.execute(f"PRAGMA wal_autocheckpoint = {PAGES_TO_WRITE_BACK}")
                self._connection.executescript(_SCHEMA)
                self._hash_old_answers()

    def execute(self, statement: str, values: tuple[Any, ...] = ()) -> sqlite3.Cursor:
        """Execute one statement; by itself it is a transaction of its own."""
        return self._connection.execute(statement, values)

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Make all of the block one transaction, which begins with the right to write."""
        self.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            with suppress(sqlite3.Error):
                self.execute("ROLLBACK")
            raise
        self.execute("COMMIT")

    def _hash_old_answers(self) -> None:
        """Hash the answers of a file from before there were hashes: they are paid, and taken as they are."""
        columns = [name for _, name, *_ in self.execute("PRAGMA table_info(answers)")]
        if "hash" not in columns:
            with self.transaction():
                self.execute("ALTER TABLE answers ADD COLUMN hash TEXT")
                self.execute(f"UPDATE answers SET hash = {HASH}")

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Make a UserError of what goes wrong with the file in the block."""
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            raise UserError(
                unusable(self.file, error)
                or f"the cache of LLM answers, {self.file}, can't be used: {error}; what it holds is kept,"
                " and the same command goes on from there"
            ) from error


def unusable(file: Path, error: Exception) -> str:
    """Return what to do about a file that is damaged, or none of SQLite's; "" if the error is another."""
    code = getattr(error, "sqlite_errorcode", None)
    if code is None or code & _PRIMARY_CODE not in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        return ""
    return (
        f"the cache of LLM answers, {file}, is damaged: {error}; nothing in it was deleted. Put a backup in"
        f" its place, recover it (sqlite3 {file.name} .recover | sqlite3 recovered.sqlite), or move it away:"
        " then all answers are asked for, and paid, again"
    )


def _as_it_is(text: bytes) -> str:
    return text.decode("utf-8", "surrogateescape")


def _hash_of(*columns: bytes | int | None) -> str:
    return hashlib.sha256(repr(columns).encode()).hexdigest()


def lock(name: Path) -> "FileLock":
    """Return the lock of a name, which the kernel frees with its holder."""
    from filelock import FileLock

    return FileLock(name.with_suffix(".lock"), thread_local=False)
