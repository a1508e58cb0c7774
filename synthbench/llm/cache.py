"""Cache of all paid answers and of every attempt, in one SQLite file.

Experiments and processes share it. An attempt is recorded before its request is sent, an answer before it is
used. If a process is killed, its attempts in flight are therefore known; they become in doubt, since they may
have been billed. Each process (session) holds a lock file, which the kernel unlocks when the process dies.
Requests of a batch stay in flight until the batch is collected (`database.py`).
"""

import hashlib
import json
import time
import uuid
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any

from synthbench.base.runtime import not_shared
from synthbench.data.answer_kinds import AnswerKind
from synthbench.llm.accounts import FREE, Cost, Spending, Spent
from synthbench.llm.answers import Answer, Details, Origin
from synthbench.llm.database import BATCH, HASH, LOGPROBS_HASH, BatchTable, Database, lock
from synthbench.llm.endpoint import Account, Endpoint
from synthbench.llm.ledger_copy import new_number
from synthbench.llm.logprobs import as_text, from_text
from synthbench.llm.requests import ChatRequest

FILE = "answers.sqlite"
Say = Callable[[str], None]
"""Shows the user one line."""


class OverBudgetError(Exception):
    """The next attempt may exceed the budget `key` (budget_usd or budget_tokens)."""

    def __init__(self, key: str, spent: Spent) -> None:
        super().__init__(key, spent)
        self.key = key
        self.spent = spent


def key_of(endpoint: Endpoint, request: ChatRequest) -> str:
    """Return the answer's cache key: a hash of the LLM's name, model and options, and of the request."""
    content = {
        "endpoint": endpoint.name,
        "model": endpoint.model,
        "messages": [dict(message) for message in request.messages],
        "sampling": {name: _normalized(value) for name, value in request.sampling.items()},
        "sample": request.sample,
        **({"options": dict(endpoint.options)} if endpoint.options else {}),
        **({} if request.logprobs is None else {"logprobs": request.logprobs}),
    }
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


class AnswerCache(AbstractContextManager["AnswerCache"]):
    """One session's access to the cache in `folder`; used by one thread, closed at the end.

    `share` sends what has changed to other machines, if they share the cache: call it before a request is
    sent. All methods raise UserError if the file can't be read or written.
    """

    def __init__(
        self,
        folder: Path,
        endpoint: Endpoint,
        account: Account,
        say: Say = print,
        share: Callable[[], None] = not_shared,
    ) -> None:
        self.share = share
        self._endpoint = endpoint
        self._say = say
        self._lost: set[str] = set()
        self._account = account
        self._sessions = folder / "sessions"
        self._session = uuid.uuid4().hex
        self._lock = lock(self._sessions / self._session)
        self._models: set[str] = set()
        self.database = Database(folder / FILE)
        self._spending = Spending(self.database, endpoint, account)
        with self.database.errors():
            self._sessions.mkdir(exist_ok=True)
            self._lock.acquire(timeout=0)
            for (session,) in self.database.execute(
                "SELECT DISTINCT session FROM attempts WHERE state = 'sent'"
            ):
                if not self._is_alive(session):
                    self._doubt_session(session)

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """End the session; attempts still in flight become in doubt."""
        try:
            self._doubt_session(self._session)
        finally:
            self.database.close()
            self._lock.release()
            Path(self._lock.lock_file).unlink(missing_ok=True)

    def find(self, key: str) -> Answer | None:
        """Return the cached answer, None if there is none; report a damaged or lost one, and drop it."""
        row = self._row(key)
        if row is None and self._is_paid(key):
            # Another process may have added it since the first lookup.
            row = self._row(key)
            if row is None:
                self._say_lost(key)
        if row is None:
            return None
        is_undamaged, *answer, logprobs_are_undamaged, logprobs = row
        if is_undamaged and logprobs_are_undamaged:
            kind, model, fingerprint = self._reply(key)
            self._note_model(model)
            told = None if logprobs is None else from_text(logprobs)
            return replace(Answer(*answer), kind=kind, origin=Origin(model, fingerprint), logprobs=told)
        self._forget(key)
        self._say_lost(key)
        return None

    def _row(self, key: str) -> tuple[Any, ...] | None:
        return self.database.first(
            f"SELECT hash IS {HASH}, text, failure, prompt_tokens, completion_tokens,"
            f" logprobs.digest IS {LOGPROBS_HASH}, content"
            " FROM answers LEFT JOIN logprobs USING (key) WHERE key = ?",
            key,
        )

    def _reply(self, key: str) -> tuple[AnswerKind, str, str]:
        """Return an answer's kind, model and fingerprint, as far as the attempt records them."""
        kind, model, fingerprint = self.database.first(_REPLY, key) or (None, None, None)
        known = AnswerKind(kind) if kind in list(AnswerKind) else AnswerKind.WHOLE
        return known, model or "", fingerprint or ""

    def _note_model(self, model: str) -> None:
        """Record that this model answered for the stage, unless it was requested or the run serves it."""
        is_ours = self._endpoint.served is not None
        if model and model != self._endpoint.model and not is_ours and model not in self._models:
            self.database.execute(
                "INSERT OR IGNORE INTO stage_models VALUES (?, ?)", (self._account.stage, model)
            )
            self._models.add(model)

    def _is_paid(self, key: str) -> bool:
        paid = "SELECT 1 FROM attempts WHERE key = ? AND state = 'answered'"
        return self.database.first(paid, key) is not None

    def _say_lost(self, key: str) -> None:
        if key not in self._lost:
            self._lost.add(key)
            self._say(f"{self.database.file}: a cached answer is damaged; it is dropped and requested again")

    def begin_attempt(self, key: str, expected: Cost, batch: str | None = None) -> int | None:
        """Record an attempt before its request is sent, alone or in a `batch`; return its number.

        None if an answer has arrived meanwhile, or if the request is in flight in a live process or an open
        batch. Raises OverBudgetError if the LLM's cost for the experiment, summed over all processes, would
        exceed a budget.
        """
        with self.database.transaction():
            if self.find(key) is not None or self.is_in_flight(key):
                return None
            self._check_budgets(expected)
            endpoint, account = self._endpoint, self._account
            self._spending.open()
            rows = self.database.execute(
                "INSERT INTO attempts (id, key, endpoint, model, experiment, stage, session, sent, state,"
                " prompt_tokens, completion_tokens, usd) VALUES (?, ?, ?, ?, ?, ?, ?, ?, 'sent', ?, ?, ?)"
                " RETURNING id",
                (
                    *(new_number(), key, endpoint.name, endpoint.model, account.experiment, account.stage),
                    *(batch or self._session, time.time()),
                    *(expected.prompt_tokens, expected.completion_tokens, expected.usd),
                ),
            )
            attempt = int(rows[0][0])
            self._spending.book(attempt, expected)
            return attempt

    def _check_budgets(self, expected: Cost) -> None:
        spent, pacing = self.spent(), self._endpoint.pacing
        if pacing.budget_usd is not None and spent.usd + expected.usd > pacing.budget_usd:
            raise OverBudgetError("budget_usd", spent)
        if pacing.budget_tokens is not None and spent.tokens + expected.tokens > pacing.budget_tokens:
            raise OverBudgetError("budget_tokens", spent)

    def attempt_id(self, attempt: int) -> str:
        """Return the attempt's globally unique id: the session and the attempt's number."""
        return f"{self._session}-{attempt}"

    def record_answer(self, attempt: int, key: str, answer: Answer, usd: float) -> None:
        """Store an answer and its cost."""
        with self.database.transaction():
            self.store(key, answer)
            self._record(attempt, "answered", answer, usd)

    def record_unfinished(self, attempt: int, answer: Answer, usd: float) -> None:
        """Record the cost of an incomplete answer that will be requested again."""
        with self.database.transaction():
            self._record(attempt, "unfinished", answer, usd)

    def num_unfinished(self, key: str) -> int:
        """Return how many incomplete answers to a request were paid but not kept, in all runs so far."""
        return self.database.number(
            "SELECT count(*) FROM attempts WHERE key = ? AND state = 'unfinished'", key
        )

    def _record(self, attempt: int, state: str, answer: Answer, usd: float) -> None:
        self._spending.settle(attempt, Cost(answer.prompt_tokens, answer.completion_tokens, usd))
        self.database.execute(
            "UPDATE attempts SET state = ?, reason = ?, prompt_tokens = ?, completion_tokens = ?, usd = ?"
            " WHERE id = ?",
            (state, answer.failure, answer.prompt_tokens, answer.completion_tokens, usd, attempt),
        )
        details, is_cut_off = answer.details, answer.kind is AnswerKind.CUT_OFF
        if details != Details() or is_cut_off:
            self.database.execute(
                "INSERT OR REPLACE INTO usage_details VALUES (?, ?, ?, ?)",
                (attempt, details.cached_tokens, details.reasoning_tokens, is_cut_off),
            )
        self._record_reply(attempt, answer.kind, answer.origin)
        self._note_model(answer.origin.model)

    def _record_reply(self, attempt: int, kind: AnswerKind, origin: Origin) -> None:
        if kind is not AnswerKind.WHOLE or origin != Origin():
            self.database.execute(
                "INSERT OR REPLACE INTO replies VALUES (?, ?, ?, ?)",
                (attempt, kind.value, origin.model, origin.fingerprint),
            )

    def _forget(self, key: str) -> None:
        for table in ("answers", "logprobs"):
            self.database.execute(f"DELETE FROM {table} WHERE key = ?", (key,))

    def withdraw(self, keys: Iterable[str]) -> None:
        """Delete these answers, so that their requests are sent again; their cost stays recorded."""
        with self.database.transaction():
            for key in keys:
                self._forget(key)
                self.database.execute(
                    "UPDATE attempts SET state = 'unfinished' WHERE key = ? AND state = 'answered'", (key,)
                )

    def record_failure(
        self, attempt: int, reason: str, kind: AnswerKind = AnswerKind.WHOLE, *, in_doubt: bool = False
    ) -> None:
        """Record that an attempt failed at no cost or, if `in_doubt`, was cut off and maybe billed.

        `kind` is the reply's kind, if there was one.
        """
        with self.database.transaction():
            if not in_doubt:
                self._spending.settle(attempt, FREE)
            self.database.execute(
                "UPDATE attempts SET state = ?, reason = ? WHERE id = ?",
                ("in doubt" if in_doubt else "refused", reason, attempt),
            )
            self._record_reply(attempt, kind, Origin())

    def spent(self) -> Spent:
        """Return the LLM's cost for the experiment so far, attempts in flight or in doubt included."""
        return self._spending.total()

    def store(self, key: str, answer: Answer) -> None:
        """Store an answer, or a failure that may have been billed, so that the request is not sent again."""
        columns = "key, text, failure, prompt_tokens, completion_tokens"
        self.database.execute(
            f"INSERT OR IGNORE INTO answers ({columns}, hash)"
            f" SELECT {columns}, {HASH} FROM"
            " (SELECT ? key, ? text, ? failure, ? prompt_tokens, ? completion_tokens)",
            (key, answer.text, answer.failure, answer.prompt_tokens, answer.completion_tokens),
        )
        if answer.logprobs is not None:
            self.database.execute(
                f"INSERT OR IGNORE INTO logprobs (key, content, digest) SELECT key, content, {LOGPROBS_HASH}"
                " FROM (SELECT ? key, ? content)",
                (key, as_text(answer.logprobs)),
            )

    def is_in_flight(self, key: str) -> bool:
        """Return whether a live process or an open batch has sent the request and awaits its answer."""
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


_REPLY = """
SELECT coalesce(kind, iif(is_cut_off, 'cut off', NULL)), replies.model, fingerprint FROM attempts
LEFT JOIN usage_details ON usage_details.attempt = attempts.id
LEFT JOIN replies ON replies.attempt = attempts.id
WHERE key = ? AND state = 'answered' ORDER BY attempts.id DESC LIMIT 1
"""
"""Earlier versions stored no kind, but noted answers that a limit on tokens cut off."""


def _normalized(value: float) -> float | int:
    """Return 1 for 1.0, so that both share a cache key."""
    return int(value) if isinstance(value, float) and value.is_integer() else value
