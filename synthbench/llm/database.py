"""The SQLite file of answers, attempts and batches, shared by experiments and processes.

Each attempt belongs to a session (one process's access to the file) or to a batch. The requests of an open
batch count as in flight, even while no process runs, so no process sends them again.

A batch is recorded first, then its requests; then it is submitted. The service's id of the batch is recorded
last. Until then, the batch is found by our token, which the service keeps in the batch's metadata.
"""

import hashlib
import sqlite3
import stat
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from synthbench.base.errors import UserError
from synthbench.base.mounts import network_file_system
from synthbench.llm.endpoint import Endpoint

if TYPE_CHECKING:
    from filelock import FileLock

LOCK_TIMEOUT = 60.0
CHECKPOINT_PAGES = 4000
"""Length of the write-ahead log at which SQLite writes it back and waits for the disk (default: 1,000)."""
BATCH = "batch-"
"""Prefix of batch tokens, which the column `session` holds in place of a session."""
HASH = (
    "hash_of(CAST(key AS BLOB), CAST(text AS BLOB), CAST(failure AS BLOB), prompt_tokens, completion_tokens)"
)
"""The hash of an answer's row, which reveals damage."""
LOGPROBS_HASH = "iif(content IS NULL, NULL, hash_of(CAST(key AS BLOB), CAST(content AS BLOB)))"
"""The hash of an answer's log-probabilities; NULL if it has none."""
_PRIMARY_CODE = 0xFF
_SCHEMA = """
CREATE TABLE IF NOT EXISTS answers (
  key TEXT PRIMARY KEY, text TEXT, failure TEXT NOT NULL, prompt_tokens INTEGER NOT NULL,
  completion_tokens INTEGER NOT NULL, hash TEXT
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS logprobs (
  key TEXT PRIMARY KEY, content TEXT NOT NULL, digest TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS attempts (
  id INTEGER PRIMARY KEY, key TEXT NOT NULL, endpoint TEXT NOT NULL, model TEXT NOT NULL,
  experiment TEXT NOT NULL, stage TEXT NOT NULL, session TEXT NOT NULL, sent REAL NOT NULL,
  state TEXT NOT NULL, reason TEXT NOT NULL DEFAULT '',
  prompt_tokens INTEGER NOT NULL, completion_tokens INTEGER NOT NULL, usd REAL NOT NULL
);
CREATE TABLE IF NOT EXISTS spending (
  experiment TEXT NOT NULL, llm TEXT NOT NULL, endpoint TEXT NOT NULL, model TEXT NOT NULL, usd REAL NOT NULL,
  tokens INTEGER NOT NULL DEFAULT 0, PRIMARY KEY (experiment, llm, endpoint, model)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS payers (attempt INTEGER PRIMARY KEY, llm TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS replies (
  attempt INTEGER PRIMARY KEY, kind TEXT NOT NULL, model TEXT NOT NULL, fingerprint TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS stage_models (
  stage TEXT NOT NULL, model TEXT NOT NULL, PRIMARY KEY (stage, model)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS usage_details (
  attempt INTEGER PRIMARY KEY, cached_tokens INTEGER NOT NULL, reasoning_tokens INTEGER NOT NULL,
  is_cut_off INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS batches (
  token TEXT PRIMARY KEY, endpoint TEXT NOT NULL, model TEXT NOT NULL, sent REAL NOT NULL DEFAULT 0,
  id TEXT NOT NULL DEFAULT '', is_open INTEGER NOT NULL DEFAULT 1
);
CREATE INDEX IF NOT EXISTS under_way ON attempts (key) WHERE state = 'sent';
CREATE INDEX IF NOT EXISTS in_vain ON attempts (key) WHERE state IN ('refused', 'in doubt');
CREATE INDEX IF NOT EXISTS unfinished ON attempts (key) WHERE state = 'unfinished';
CREATE INDEX IF NOT EXISTS paid ON attempts (key) WHERE state = 'answered';
CREATE INDEX IF NOT EXISTS by_experiment ON attempts (experiment, stage);
DROP TABLE IF EXISTS accounts;
"""
"""Creates the tables. Drops `accounts`, where earlier versions kept sums over the rows of `attempts`."""


class Database:
    """A connection to the file; used by one thread, closed at the end.

    Raises UserError if the file can't be opened, or lies on a network file system.
    """

    def __init__(self, file: Path) -> None:
        self.file = file
        if kind := network_file_system(file):
            raise UserError(
                f"the cache of LLM answers, {file}, would lie on a network file system ({kind}), where SQLite"
                " can lose answers; set SYNTHBENCH_HOME to a local disk, or SYNTHBENCH_STORE to a folder or"
                " bucket, which then keeps the answers"
            )
        with self.errors():
            file.parent.mkdir(parents=True, exist_ok=True)
            file.touch(OWNER_ALONE)
            # One process at a time: SQLite does not wait while another changes the journal mode.
            with lock(file.parent / "opening").acquire(timeout=LOCK_TIMEOUT):
                self._connection = sqlite3.connect(file, timeout=LOCK_TIMEOUT, isolation_level=None)
                # Damaged text must still load, so that its hash can reveal the damage.
                self._connection.text_factory = _lenient_text
                self._connection.create_function("hash_of", -1, _hash_of, deterministic=True)
                self.execute("PRAGMA journal_mode = WAL")
                self.execute("PRAGMA synchronous = NORMAL")
                self.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}")
                self._connection.executescript(_SCHEMA)
                self._hash_old_answers()
                self._count_old_tokens()
                keep_private(file)

    def execute(self, statement: str, values: tuple[Any, ...] = ()) -> list[Any]:
        """Execute one statement and return its rows; outside `transaction` it is committed at once."""
        with self.errors():
            return self._connection.execute(statement, values).fetchall()

    def first(self, query: str, *values: object) -> tuple[Any, ...] | None:
        """Return the first row of a query, None if there is none."""
        return next(iter(self.execute(query, values)), None)

    def number(self, query: str, *values: object) -> int:
        """Return the only value of a query as an integer."""
        return int(self.execute(query, values)[0][0])

    def run_script(self, statements: str) -> None:
        """Execute SQL statements, each with a semicolon at the end, as one transaction."""
        with self.errors(), self._connection:
            self._connection.executescript(f"BEGIN IMMEDIATE;{statements}")

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Run the block as one transaction that holds the write lock from the start."""
        with self.errors(), self._connection:
            self.execute("BEGIN IMMEDIATE")
            yield

    def _hash_old_answers(self) -> None:
        """Add hashes to a file written by a version without them; trusts its answers."""
        if "hash" not in self._columns("answers"):
            with self.transaction():
                self.execute("ALTER TABLE answers ADD COLUMN hash TEXT")
                self.execute(f"UPDATE answers SET hash = {HASH}")

    def _count_old_tokens(self) -> None:
        """Add the column `tokens` to a file written by a version that counted only US dollars; fill it."""
        if "tokens" not in self._columns("spending"):
            with self.transaction():
                self.execute("ALTER TABLE spending ADD COLUMN tokens INTEGER NOT NULL DEFAULT 0")
                self.execute(f"UPDATE spending SET tokens = {_SUM.format(what=_TOKENS, which=_PAID)}")

    def _columns(self, table: str) -> list[str]:
        return [name for _, name, *_ in self.execute(f"PRAGMA table_info({table})")]

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Turn errors of SQLite and the file system in the block into UserErrors."""
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            raise UserError(
                damage_message(self.file, error)
                or f"the cache of LLM answers, {self.file}, can't be used: {error}. Its answers are kept;"
                " run the same command again to resume"
            ) from error


OWNER_ALONE = 0o600


def keep_private(file: Path) -> None:
    """Restrict an SQLite file, and the files beside it with the same content, to their owner."""
    for path in (file, *(file.with_name(f"{file.name}{end}") for end in ("-wal", "-shm", "-journal"))):
        # Another user's file keeps its mode: only its owner can change it.
        with suppress(FileNotFoundError, PermissionError):
            if stat.S_IMODE(path.stat().st_mode) & ~OWNER_ALONE:
                path.chmod(OWNER_ALONE)


def damage_message(file: Path, error: Exception) -> str:
    """Return advice if the error says that the file is damaged or is no SQLite file, else ""."""
    code = getattr(error, "sqlite_errorcode", None)
    if code is None or code & _PRIMARY_CODE not in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        return ""
    return (
        f"the cache of LLM answers, {file}, is damaged: {error}. Nothing in it was deleted. Restore a backup,"
        f" recover it (sqlite3 {file.name} .recover | sqlite3 recovered.sqlite), or move it away: then all"
        " answers are requested, and paid for, again"
    )


def _lenient_text(text: bytes) -> str:
    return text.decode("utf-8", "surrogateescape")


def _hash_of(*columns: bytes | int | None) -> str:
    return hashlib.sha256(repr(columns).encode()).hexdigest()


def lock(name: Path) -> "FileLock":
    """Return a lock on the file NAME.lock, not yet acquired; the kernel frees it when its holder dies."""
    from filelock import FileLock

    return FileLock(name.with_suffix(".lock"), thread_local=False)


def new_token() -> str:
    """Return a globally unique token for a batch."""
    return f"{BATCH}{uuid.uuid4().hex}"


@dataclass(frozen=True)
class OpenBatch:
    """An open batch; `id` is the service's, "" until the service has confirmed it.

    `sent` is the Unix time in seconds just before submission, 0 until then.
    """

    token: str
    sent: float
    id: str


_SUM = """coalesce((
  SELECT sum({what}) FROM attempts LEFT JOIN payers ON attempt = attempts.id
  WHERE {which} AND attempts.experiment = spending.experiment
  AND attempts.endpoint = spending.endpoint AND attempts.model = spending.model
  AND coalesce(payers.llm, spending.llm) = spending.llm
), 0)"""
"""SQL: the sum of {what} over those attempts of a row of `spending` that meet the condition {which}."""
_TOKENS = "attempts.prompt_tokens + attempts.completion_tokens"
_PAID, _IN_BATCH = "state <> 'refused'", "state = 'sent' AND session = ?1"
_REFUND = (
    f"UPDATE spending SET usd = usd - {_SUM.format(what='attempts.usd', which=_IN_BATCH)},"
    f" tokens = tokens - {_SUM.format(what=_TOKENS, which=_IN_BATCH)}"
)
"""SQL: takes a batch's expected cost out of `spending`."""


class BatchTable:
    """The batches in a database; used by one thread."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @contextmanager
    def locked(self, token: str) -> Iterator[None]:
        """Hold the batch's lock: one process at a time submits or collects a batch, others wait."""
        alone = lock(self._database.file.parent / "sessions" / token)
        with alone:
            try:
                yield
            finally:
                if self.find(token) is None:
                    Path(alone.lock_file).unlink(missing_ok=True)

    def insert(self, token: str, endpoint: Endpoint) -> None:
        """Add a batch, before its requests."""
        self._database.execute(
            "INSERT INTO batches (token, endpoint, model) VALUES (?, ?, ?)",
            (token, endpoint.name, endpoint.model),
        )

    def mark_sent(self, token: str) -> OpenBatch:
        """Record that the batch is about to be submitted, and return it."""
        batch = OpenBatch(token, time.time(), "")
        self._database.execute("UPDATE batches SET sent = ? WHERE token = ?", (batch.sent, token))
        return batch

    def set_id(self, token: str, batch_id: str) -> None:
        """Record the service's id of the batch."""
        self._database.execute("UPDATE batches SET id = ? WHERE token = ?", (batch_id, token))

    def find(self, token: str) -> OpenBatch | None:
        """Return the batch, None if it is closed or unknown."""
        query = "SELECT token, sent, id FROM batches WHERE token = ? AND is_open"
        row = self._database.first(query, token)
        return OpenBatch(*row) if row else None

    def all_open(self) -> list[OpenBatch]:
        """Return all open batches, the oldest first."""
        rows = self._database.execute("SELECT token, sent, id FROM batches WHERE is_open ORDER BY rowid")
        return [OpenBatch(*row) for row in rows]

    def open_tokens(self, endpoint: Endpoint) -> list[str]:
        """Return the tokens of the open batches of the endpoint's model."""
        rows = self._database.execute(
            "SELECT token FROM batches WHERE is_open AND endpoint = ? AND model = ? ORDER BY rowid",
            (endpoint.name, endpoint.model),
        )
        return [token for (token,) in rows]

    def batch_of(self, key: str) -> str | None:
        """Return the token of the open batch in which request `key` is unsettled, None if there is none."""
        row = self._database.first(
            "SELECT session FROM attempts JOIN batches ON session = token"
            " WHERE key = ? AND state = 'sent' AND is_open",
            key,
        )
        return row[0] if row else None

    def attempt(self, token: str, key: str) -> tuple[int, int] | None:
        """Return the number and expected prompt tokens of a request's unsettled attempt, None without one."""
        return self._database.first(
            "SELECT id, prompt_tokens FROM attempts WHERE key = ? AND state = 'sent' AND session = ?",
            key,
            token,
        )

    def num_open(self, token: str) -> int:
        """Return the number of unsettled requests of the batch."""
        query = "SELECT count(*) FROM attempts WHERE state = 'sent' AND session = ?"
        return self._database.number(query, token)

    def num_tokens(self, endpoint: Endpoint) -> int:
        """Return the expected prompt tokens of unsettled requests in open batches of the endpoint's model."""
        return self._database.number(
            "SELECT total(prompt_tokens) FROM attempts JOIN batches ON session = token"
            " WHERE state = 'sent' AND is_open AND attempts.endpoint = ? AND attempts.model = ?",
            endpoint.name,
            endpoint.model,
        )

    def num_failures(self, key: str) -> int:
        """Return in how many batches a request got no answer, or an incomplete one."""
        return self._database.number(
            "SELECT count(*) FROM"
            " (SELECT session FROM attempts WHERE key = ? AND state IN ('refused', 'in doubt')"
            " UNION ALL SELECT session FROM attempts WHERE key = ? AND state = 'unfinished')"
            " WHERE session IN (SELECT token FROM batches)",
            *(key, key),
        )

    def close(self, token: str, reason: str, *, is_free: bool) -> None:
        """Close the batch; its unanswered requests cost nothing if `is_free`, otherwise they are in doubt."""
        with self._database.transaction():
            if is_free:
                self._database.execute(_REFUND, (token,))
            self._database.execute(
                "UPDATE attempts SET state = ?, reason = ? WHERE state = 'sent' AND session = ?",
                ("refused" if is_free else "in doubt", reason, token),
            )
            self._database.execute("UPDATE batches SET is_open = 0 WHERE token = ?", (token,))
