"""All answers that were ever paid for, and every attempt at one, in one SQLite file.

Experiments and processes share it. An attempt is recorded before its request leaves, an answer before it is
used: after a kill, the attempts in flight are known, and are in doubt since they may have been billed. Each
process (session) holds a lock file, which the kernel frees when it dies. A batch counts as a session that
lives until it is collected (`database.py`).
"""

import hashlib
import json
import time
import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from synthbench.llm.database import BATCH, HASH, BatchTable, Database, lock
from synthbench.llm.endpoint import Account, Endpoint
from synthbench.llm.requests import ChatRequest

FILE = "answers.sqlite"
Say = Callable[[str], None]
"""Shows the user one line."""


@dataclass(frozen=True)
class Details:
    """More of an answer's usage: `cached_tokens` of the prompt's tokens were in the service's cache.

    `reasoning_tokens` of the answer's were thoughts. A limit on tokens cut off an answer `is_cut_off`.
    """

    cached_tokens: int = 0
    reasoning_tokens: int = 0
    is_cut_off: bool = False


@dataclass(frozen=True)
class Answer:
    """An endpoint's answer; `text` is None if it held none, for the reason in `failure`."""

    text: str | None
    failure: str
    prompt_tokens: int
    completion_tokens: int
    details: Details = Details()


@dataclass(frozen=True)
class Cost:
    """Tokens and US dollars of one attempt, as expected or as billed."""

    prompt_tokens: int
    completion_tokens: int
    usd: float


class OverBudgetError(Exception):
    """The next attempt may exceed the budget; `spent` US dollars are gone."""

    def __init__(self, spent: float) -> None:
        super().__init__(spent)
        self.spent = spent


def key_of(endpoint: Endpoint, request: ChatRequest) -> str:
    """Return an answer's cache key: a hash of all that it depends on, which excludes the address."""
    content = {
        "endpoint": endpoint.name,
        "model": endpoint.model,
        "messages": [dict(message) for message in request.messages],
        "sampling": {name: _normalized(value) for name, value in request.sampling.items()},
        "sample": request.sample,
        **({"options": dict(endpoint.options)} if endpoint.options else {}),
    }
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


class AnswerCache:
    """One session's access to the cache in `folder`; used by one thread, closed at the end.

    All methods raise UserError if the file can't be read or written.
    """

    def __init__(self, folder: Path, endpoint: Endpoint, account: Account, say: Say = print) -> None:
        self._endpoint = endpoint
        self._say = say
        self._lost: set[str] = set()
        self._account = account
        self._sessions = folder / "sessions"
        self._session = uuid.uuid4().hex
        self._lock = lock(self._sessions / self._session)
        self.database = Database(folder / FILE)
        with self.database.errors():
            self._sessions.mkdir(exist_ok=True)
            self._lock.acquire(timeout=0)
            for (session,) in self.database.execute(
                "SELECT DISTINCT session FROM attempts WHERE state = 'sent'"
            ):
                if not self._is_alive(session):
                    self._doubt_session(session)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """End the session; what is still in flight is in doubt."""
        try:
            self._doubt_session(self._session)
        finally:
            self.database.close()
            self._lock.release()
            Path(self._lock.lock_file).unlink(missing_ok=True)

    def find(self, key: str) -> Answer | None:
        """Return an answer, None if there is none; a damaged one is reported and dropped."""
        row = self._row(key)
        if row is None and self._is_paid(key):
            # Another process may have added it since the first look.
            row = self._row(key)
            if row is None:
                self._say_lost(key)
        if row is None:
            return None
        is_whole, *answer = row
        if is_whole:
            return Answer(*answer)
        self.forget([key])
        self._say_lost(key)
        return None

    def _row(self, key: str) -> tuple[Any, ...] | None:
        rows = self.database.execute(
            f"SELECT hash IS {HASH}, text, failure, prompt_tokens, completion_tokens FROM answers"
            " WHERE key = ?",
            (key,),
        )
        return rows[0] if rows else None

    def _is_paid(self, key: str) -> bool:
        return bool(
            self.database.execute("SELECT 1 FROM attempts WHERE key = ? AND state = 'answered'", (key,))
        )

    def _say_lost(self, key: str) -> None:
        if key not in self._lost:
            self._lost.add(key)
            self._say(f"{self.database.file}: a cached answer is damaged; it is dropped and requested again")

    def begin_attempt(
        self, key: str, expected: Cost, budget: float | None = None, batch: str | None = None
    ) -> int | None:
        """Record an attempt before its request leaves, alone or in a `batch`; return its number.

        None if an answer has arrived meanwhile or another live session is asking. Raises OverBudgetError if
        what the LLM costs the experiment, to which other processes may add, would exceed `budget`.
        """
        with self.database.transaction():
            if self.find(key) is not None or self._is_in_flight(key):
                return None
            spent = self.spent()
            if budget is not None and spent + expected.usd > budget:
                raise OverBudgetError(spent)
            endpoint, account = self._endpoint, self._account
            self._charge(_purse(account.experiment, endpoint.name, endpoint.model), expected.usd)
            rows = self.database.execute(
                "INSERT INTO attempts (key, endpoint, model, experiment, stage, session, sent, state,"
                " prompt_tokens, completion_tokens, usd) VALUES (?, ?, ?, ?, ?, ?, ?, 'sent', ?, ?, ?)"
                " RETURNING id",
                (
                    *(key, endpoint.name, endpoint.model, account.experiment, account.stage),
                    *(batch or self._session, time.time()),
                    *(expected.prompt_tokens, expected.completion_tokens, expected.usd),
                ),
            )
            return int(rows[0][0])

    def attempt_id(self, attempt: int) -> str:
        """Return the attempt's globally unique id: the session and the attempt's number."""
        return f"{self._session}-{attempt}"

    def record_answer(self, attempt: int, key: str, answer: Answer, usd: float) -> None:
        """Store an answer and what it cost."""
        with self.database.transaction():
            purse, expected = self._booked(attempt)
            self._charge(purse, usd - expected)
            self._insert(key, answer)
            self.database.execute(
                "UPDATE attempts SET state = 'answered', prompt_tokens = ?, completion_tokens = ?, usd = ?"
                " WHERE id = ?",
                (answer.prompt_tokens, answer.completion_tokens, usd, attempt),
            )
            if answer.details != Details():
                details = answer.details
                self.database.execute(
                    "INSERT OR REPLACE INTO usage_details VALUES (?, ?, ?, ?)",
                    (attempt, details.cached_tokens, details.reasoning_tokens, details.is_cut_off),
                )

    def store_failure(self, key: str, answer: Answer) -> None:
        """Store that a request failed after it may have been billed, so that it is not asked again."""
        self._insert(key, answer)

    def forget(self, keys: Iterable[str]) -> None:
        """Delete answers or stored failures, so that their requests are asked again."""
        for key in keys:
            self.database.execute("DELETE FROM answers WHERE key = ?", (key,))

    def record_refusal(self, attempt: int, reason: str) -> None:
        """Record that the service refused an attempt, which costs nothing."""
        with self.database.transaction():
            purse, expected = self._booked(attempt)
            self._charge(purse, -expected)
            self._end(attempt, "refused", reason)

    def record_doubt(self, attempt: int, reason: str) -> None:
        """Record that an attempt was cut off and may have been billed."""
        self._end(attempt, "in doubt", reason)

    def spent(self) -> float:
        """Return what the LLM costs the experiment in US dollars, including what is in flight or in doubt."""
        known = self._account.experiment, self._endpoint.name, self._endpoint.model
        rows = self.database.execute("SELECT usd FROM accounts WHERE experiment = ?", (_purse(*known),))
        return float(rows[0][0]) if rows else self._attempted(*known)

    def _attempted(self, experiment: str, endpoint: str, model: str) -> float:
        """Return the same from the attempts, for a file from before LLMs had accounts of their own."""
        [row] = self.database.execute(
            "SELECT total(usd) FROM attempts WHERE experiment = ? AND endpoint = ? AND model = ?"
            " AND state <> 'refused'",
            (experiment, endpoint, model),
        )
        return float(row[0])

    def _insert(self, key: str, answer: Answer) -> None:
        columns = "key, text, failure, prompt_tokens, completion_tokens"
        self.database.execute(
            f"INSERT OR IGNORE INTO answers ({columns}, hash)"
            f" SELECT {columns}, {HASH} FROM"
            " (SELECT ? key, ? text, ? failure, ? prompt_tokens, ? completion_tokens)",
            (key, answer.text, answer.failure, answer.prompt_tokens, answer.completion_tokens),
        )

    def _charge(self, purse: str, usd: float) -> None:
        """Add to an account; a new one begins with what earlier attempts cost."""
        experiment, endpoint, model = purse.split(_BETWEEN)
        if not self.database.execute("SELECT 1 FROM accounts WHERE experiment = ?", (purse,)):
            spent = self._attempted(experiment, endpoint, model)
            self.database.execute("INSERT INTO accounts VALUES (?, ?)", (purse, spent))
        self.database.execute("UPDATE accounts SET usd = usd + ? WHERE experiment = ?", (usd, purse))

    def _booked(self, attempt: int) -> tuple[str, float]:
        """Return the account that an attempt is charged to, and its US dollars."""
        [row] = self.database.execute(
            "SELECT experiment, endpoint, model, usd FROM attempts WHERE id = ?", (attempt,)
        )
        return _purse(*row[:3]), float(row[3])

    def _end(self, attempt: int, state: str, reason: str) -> None:
        self.database.execute(
            "UPDATE attempts SET state = ?, reason = ? WHERE id = ?", (state, reason, attempt)
        )

    def _is_in_flight(self, key: str) -> bool:
        for (session,) in self.database.execute(
            "SELECT session FROM attempts WHERE key = ? AND state = 'sent'", (key,)
        ):
            if self._is_alive(session):
                return True
            self._doubt_session(session)
        return False

    def _doubt_session(self, session: str) -> None:
        self.database.execute(
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
            return BatchTable(self.database).find(session) is not None
        if not (self._sessions / session).with_suffix(".lock").exists():
            return False
        try:
            with lock(self._sessions / session).acquire(timeout=0):
                return False
        except Timeout:
            return True


_BETWEEN = "\x1f"


def _purse(experiment: str, endpoint: str, model: str) -> str:
    """Return the name of the account from which an experiment pays an LLM."""
    return _BETWEEN.join((experiment, endpoint, model))


def _normalized(value: float) -> float | int:
    """Return 1 for 1.0, so that both share a cache key."""
    return int(value) if isinstance(value, float) and value.is_integer() else value
