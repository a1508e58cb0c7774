"""All answers that were ever paid for, and every attempt at one, in one SQLite file.

It is shared by experiments and processes. An attempt is written before its request leaves, an answer before
it is used: whenever a process ends, what it had under way is known, and is called in doubt, for it may have
been paid. Each process (session) holds a lock file, which the kernel frees with it. A batch is a session,
too, and lives until it is collected (batch_book.py).
"""

import hashlib
import json
import time
import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from synthbench.llm.database import BATCH, HASH, BatchBook, Database, lock
from synthbench.llm.endpoint import Account, Endpoint
from synthbench.llm.requests import ChatRequest

FILE = "answers.sqlite"
Say = Callable[[str], None]
"""Tells people one line."""


@dataclass(frozen=True)
class Answer:
    """What an endpoint answered; `text` is None if there was none in it, for the reason in `failure`."""

    text: str | None
    failure: str
    prompt_tokens: int
    completion_tokens: int


@dataclass(frozen=True)
class Cost:
    """Tokens and US dollars of one attempt, as expected or as billed."""

    prompt_tokens: int
    completion_tokens: int
    usd: float


class OverBudgetError(Exception):
    """An attempt might cost more than is left, for `spent` US dollars are."""

    def __init__(self, spent: float) -> None:
        super().__init__(spent)
        self.spent = spent


def key_of(endpoint: Endpoint, request: ChatRequest) -> str:
    """Return the name of an answer: a hash of all that it depends on, and of no address."""
    content = {
        "endpoint": endpoint.name,
        "model": endpoint.model,
        "messages": [dict(message) for message in request.messages],
        "sampling": {name: _plain(value) for name, value in request.sampling.items()},
        "sample": request.sample,
    }
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


class AnswerCache:
    """A session's view of the cache in `folder`; used by one thread, closed at the end.

    Raises UserError if the file can't be read or written.
    """

    def __init__(self, folder: Path, endpoint: Endpoint, account: Account, say: Say = print) -> None:
        self._endpoint = endpoint
        self._say = say
        self._lost: set[str] = set()
        self._account = account
        self._sessions = folder / "sessions"
        self._session = uuid.uuid4().hex
        self._lock = lock(self._sessions / self._session)
        self._database = Database(folder / FILE)
        with self._database.errors():
            self._sessions.mkdir(exist_ok=True)
            self._lock.acquire(timeout=0)
            self._doubt_the_dead()

    @property
    def database(self) -> Database:
        """The file, which batches are kept in, too."""
        return self._database

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Leave; what is still under way is in doubt."""
        try:
            with self._database.errors():
                self._doubt_all_of(self._session)
        finally:
            self._database.close()
            self._lock.release()
            Path(self._lock.lock_file).unlink(missing_ok=True)

    def find(self, key: str) -> Answer | None:
        """Return an answer that is there; one that is not as it was kept is said, and dropped."""
        with self._database.errors():
            row = self._row(key)
            if row is None and self._is_paid(key):
                # Another process may have kept it since the first look.
                row = self._row(key)
                if row is None:
                    self._say_lost(key)
            if row is None:
                return None
            is_whole, *answer = row
            if is_whole:
                return Answer(*answer)
            self._database.execute("DELETE FROM answers WHERE key = ?", (key,))
            self._say_lost(key)
        return None

    def _row(self, key: str) -> tuple[Any, ...] | None:
        found: tuple[Any, ...] | None = self._database.execute(
            f"SELECT hash IS {HASH}, text, failure, prompt_tokens, completion_tokens FROM answers"
            " WHERE key = ?",
            (key,),
        ).fetchone()
        return found

    def _is_paid(self, key: str) -> bool:
        found = self._database.execute("SELECT 1 FROM attempts WHERE key = ? AND state = 'answered'", (key,))
        return found.fetchone() is not None

    def _say_lost(self, key: str) -> None:
        if key not in self._lost:
            self._lost.add(key)
            self._say(f"{self._database.file}: a kept answer is damaged; it is dropped and asked for again")

    def send(
        self, key: str, expected: Cost, budget: float | None = None, batch: str | None = None
    ) -> int | None:
        """Note that a request is about to leave, by itself or in a `batch`; return the attempt's number.

        None if there is an answer by now, or another session that lives is at it. Raises OverBudgetError if
        the experiment's account would pass `budget`, whoever else spends from it.
        """
        with self._database.errors(), self._database.transaction():
            if self.find(key) is not None or self._is_under_way(key):
                return None
            spent = self.spent()
            if budget is not None and spent + expected.usd > budget:
                raise OverBudgetError(spent)
            self._charge(self._account.experiment, expected.usd)
            endpoint, account = self._endpoint, self._account
            return self._database.execute(
                "INSERT INTO attempts (key, endpoint, model, experiment, stage, session, sent, state,"
                " prompt_tokens, completion_tokens, usd) VALUES (?, ?, ?, ?, ?, ?, ?, 'sent', ?, ?, ?)",
                (
                    *(key, endpoint.name, endpoint.model, account.experiment, account.stage),
                    *(batch or self._session, time.time()),
                    *(expected.prompt_tokens, expected.completion_tokens, expected.usd),
                ),
            ).lastrowid

    def name_of(self, attempt: int) -> str:
        """Return what nobody else's attempt is called: the session and the attempt's number."""
        return f"{self._session}-{attempt}"

    def answered(self, attempt: int, key: str, answer: Answer, usd: float) -> None:
        """Keep an answer, and what it cost."""
        tokens = (answer.prompt_tokens, answer.completion_tokens)
        with self._database.errors(), self._database.transaction():
            experiment, expected = self._booked(attempt)
            self._charge(experiment, usd - expected)
            self._insert(key, answer)
            self._database.execute(
                "UPDATE attempts SET state = 'answered', prompt_tokens = ?, completion_tokens = ?, usd = ?"
                " WHERE id = ?",
                (*tokens, usd, attempt),
            )

    def keep(self, key: str, answer: Answer) -> None:
        """Keep what became of a request whose attempts are in doubt, so that it is not asked again."""
        with self._database.errors(), self._database.transaction():
            self._insert(key, answer)

    def forget(self, keys: Iterable[str]) -> None:
        """Let requests be asked again whose failures `keep` kept."""
        with self._database.errors(), self._database.transaction():
            for key in keys:
                self._database.execute("DELETE FROM answers WHERE key = ?", (key,))

    def refused(self, attempt: int, reason: str) -> None:
        """Note that an attempt was turned away, which costs nothing."""
        with self._database.errors(), self._database.transaction():
            experiment, expected = self._booked(attempt)
            self._charge(experiment, -expected)
            self._end(attempt, "refused", reason)

    def doubted(self, attempt: int, reason: str) -> None:
        """Note that nobody knows whether an attempt was answered, and paid."""
        with self._database.errors():
            self._end(attempt, "in doubt", reason)

    def spent(self) -> float:
        """Return the US dollars on the experiment's account, with what is under way or in doubt."""
        with self._database.errors():
            row = self._database.execute(
                "SELECT usd FROM accounts WHERE experiment = ?", (self._account.experiment,)
            ).fetchone()
        return float(row[0]) if row else 0.0

    def _insert(self, key: str, answer: Answer) -> None:
        columns = "key, text, failure, prompt_tokens, completion_tokens"
        self._database.execute(
            f"INSERT OR IGNORE INTO answers ({columns}, hash)"
            f" SELECT {columns}, {HASH} FROM"
            " (SELECT ? key, ? text, ? failure, ? prompt_tokens, ? completion_tokens)",
            (key, answer.text, answer.failure, answer.prompt_tokens, answer.completion_tokens),
        )

    def _charge(self, experiment: str, usd: float) -> None:
        self._database.execute(
            "INSERT INTO accounts VALUES (?, ?)"
            " ON CONFLICT (experiment) DO UPDATE SET usd = usd + excluded.usd",
            (experiment, usd),
        )

    def _booked(self, attempt: int) -> tuple[str, float]:
        """Return on whose account an attempt is, with how many US dollars."""
        experiment, usd = self._database.execute(
            "SELECT experiment, usd FROM attempts WHERE id = ?", (attempt,)
        ).fetchone()
        return str(experiment), float(usd)

    def _end(self, attempt: int, state: str, reason: str) -> None:
        self._database.execute(
            "UPDATE attempts SET state = ?, reason = ? WHERE id = ?", (state, reason, attempt)
        )

    def _is_under_way(self, key: str) -> bool:
        sessions = self._database.execute(
            "SELECT session FROM attempts WHERE key = ? AND state = 'sent'", (key,)
        ).fetchall()
        for (session,) in sessions:
            if session == self._session or self._is_alive(session):
                return True
            self._doubt_all_of(session)
        return False

    def _doubt_the_dead(self) -> None:
        sessions = self._database.execute("SELECT DISTINCT session FROM attempts WHERE state = 'sent'")
        for (session,) in sessions.fetchall():
            if not self._is_alive(session):
                self._doubt_all_of(session)

    def _doubt_all_of(self, session: str) -> None:
        self._database.execute(
            "UPDATE attempts SET state = 'in doubt', reason = 'ended before the answer'"
            " WHERE state = 'sent' AND session = ?",
            (session,),
        )
        if session != self._session:
            (self._sessions / session).with_suffix(".lock").unlink(missing_ok=True)

    def _is_alive(self, session: str) -> bool:
        from filelock import Timeout

        if session == self._session:
            return True
        if session.startswith(BATCH):
            return BatchBook(self._database).find(session) is not None
        if not (self._sessions / session).with_suffix(".lock").exists():
            return False
        try:
            with lock(self._sessions / session).acquire(timeout=0):
                return False
        except Timeout:
            return True


def _plain(value: float) -> float | int:
    """Return 1 for 1.0, so that the way a number is written makes no other answer."""
    return int(value) if isinstance(value, float) and value.is_integer() else value
