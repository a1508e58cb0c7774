"""The SQLite file of answers, attempts and batches, shared by experiments and processes.

To the cache a batch is a session that lives until it is collected: its requests are under way for every
process, also while none runs. The batch is written first, then its requests, then they leave. The service's
id comes later; until then the batch is found by its token, which the service keeps, too.
"""

import hashlib
import sqlite3
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from synthbench.errors import UserError
from synthbench.llm.endpoint import Endpoint

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


def new_token() -> str:
    """Return a name for a batch that no other has."""
    return f"{BATCH}{uuid.uuid4().hex}"


@dataclass(frozen=True)
class Batch:
    """A batch that is not collected; `id` is the service's, "" while nobody knows whether it arrived.

    `sent` is the time when it left, 0 if a kill came before.
    """

    token: str
    sent: float
    id: str


class BatchBook:
    """The batches in a database; used by one thread."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @contextmanager
    def holding(self, token: str) -> Iterator[None]:
        """Be alone in submitting or collecting the batch; others wait."""
        alone = lock(self._database.file.parent / "sessions" / token)
        with alone:
            try:
                yield
            finally:
                if self.find(token) is None:
                    Path(alone.lock_file).unlink(missing_ok=True)

    def begin(self, token: str, endpoint: Endpoint) -> None:
        """Write down that there will be a batch, before its requests."""
        with self._database.errors():
            self._database.execute(
                "INSERT INTO batches (token, endpoint, model) VALUES (?, ?, ?)",
                (token, endpoint.name, endpoint.model),
            )

    def leaves(self, token: str) -> Batch:
        """Write down that the batch leaves, and return it."""
        batch = Batch(token, time.time(), "")
        with self._database.errors():
            self._database.execute("UPDATE batches SET sent = ? WHERE token = ?", (batch.sent, token))
        return batch

    def submitted(self, token: str, batch_id: str) -> None:
        """Write down what the service calls it."""
        with self._database.errors():
            self._database.execute("UPDATE batches SET id = ? WHERE token = ?", (batch_id, token))

    def find(self, token: str) -> Batch | None:
        """Return the batch, None once it is closed."""
        with self._database.errors():
            row = self._database.execute(
                "SELECT token, sent, id FROM batches WHERE token = ? AND is_open", (token,)
            ).fetchone()
        return Batch(*row) if row else None

    def all_open(self) -> list[Batch]:
        """Return all batches that are not collected, the oldest first."""
        with self._database.errors():
            rows = self._database.execute("SELECT token, sent, id FROM batches WHERE is_open ORDER BY rowid")
            return [Batch(*row) for row in rows.fetchall()]

    def open_at(self, endpoint: Endpoint) -> list[str]:
        """Return the tokens of all batches of the endpoint's model that are not collected."""
        with self._database.errors():
            rows = self._database.execute(
                "SELECT token FROM batches WHERE is_open AND endpoint = ? AND model = ? ORDER BY rowid",
                (endpoint.name, endpoint.model),
            ).fetchall()
        return [token for (token,) in rows]

    def holder_of(self, key: str) -> str | None:
        """Return the token of the batch in which a request is under way."""
        with self._database.errors():
            row = self._database.execute(
                "SELECT session FROM attempts JOIN batches ON session = token"
                " WHERE key = ? AND state = 'sent' AND is_open",
                (key,),
            ).fetchone()
        return row[0] if row else None

    def attempt(self, token: str, key: str) -> tuple[int, int] | None:
        """Return a request's attempt and the tokens expected of its prompt, None once it is settled."""
        with self._database.errors():
            row = self._database.execute(
                "SELECT id, prompt_tokens FROM attempts WHERE key = ? AND state = 'sent' AND session = ?",
                (key, token),
            ).fetchone()
        return tuple(row) if row else None

    def num_open(self, token: str) -> int:
        """Return how many requests of the batch are not settled."""
        with self._database.errors():
            row = self._database.execute(
                "SELECT count(*) FROM attempts WHERE state = 'sent' AND session = ?", (token,)
            ).fetchone()
        return int(row[0])

    def num_tokens(self, endpoint: Endpoint) -> int:
        """Return how many tokens the prompts in all open batches of the endpoint's model have at most."""
        with self._database.errors():
            row = self._database.execute(
                "SELECT total(prompt_tokens) FROM attempts JOIN batches ON session = token"
                " WHERE state = 'sent' AND is_open AND attempts.endpoint = ? AND attempts.model = ?",
                (endpoint.name, endpoint.model),
            ).fetchone()
        return int(row[0])

    def num_in_vain(self, key: str) -> int:
        """Return how often a request was in a batch that did not answer it."""
        with self._database.errors():
            row = self._database.execute(
                "SELECT count(*) FROM attempts WHERE key = ? AND state IN ('refused', 'in doubt')"
                " AND session IN (SELECT token FROM batches)",
                (key,),
            ).fetchone()
        return int(row[0])

    def close(self, token: str, reason: str, *, is_free: bool) -> None:
        """Close the batch; what it still holds was turned away and `is_free`, or is in doubt."""
        with self._database.errors(), self._database.transaction():
            if is_free:
                self._database.execute(
                    "UPDATE accounts SET usd = usd - coalesce((SELECT sum(usd) FROM attempts WHERE"
                    " state = 'sent' AND session = ? AND attempts.experiment = accounts.experiment), 0)",
                    (token,),
                )
            self._database.execute(
                "UPDATE attempts SET state = ?, reason = ? WHERE state = 'sent' AND session = ?",
                ("refused" if is_free else "in doubt", reason, token),
            )
            self._database.execute("UPDATE batches SET is_open = 0 WHERE token = ?", (token,))
