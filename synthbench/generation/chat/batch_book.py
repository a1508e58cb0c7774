"""What is known of batches: which there are, and what became of the requests in them.

To the cache a batch is a session that lives until it is collected: what it holds is under way to everybody,
whether or not a process is running. It is written, then all its requests are, before anything leaves; its id
at the service comes later, and until then the token stands for it, which the service keeps, too.
"""

import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from synthbench.generation.chat.database import BATCH, Database, lock
from synthbench.generation.chat.endpoint import Endpoint


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
