"""Read from the answer cache what LLMs were asked and what it cost."""

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from synthbench.errors import UserError
from synthbench.llm.cache import FILE
from synthbench.llm.database import damage_message

_HAS_TABLES = "SELECT 1 FROM sqlite_master WHERE name = 'attempts'"
"""A process creates the file first, and may be killed before it creates the tables."""
_HAS_DETAILS = "SELECT 1 FROM sqlite_master WHERE name = 'usage_details'"
_NO_DETAILS = "(SELECT NULL AS attempt, 0 AS cached_tokens, 0 AS reasoning_tokens, 0 AS is_cut_off)"
"""In place of the table that an earlier version did not have."""
_QUERY = """
SELECT experiment, stage, endpoint, model,
  sum(state = 'answered'),
  sum(iif(state = 'answered', attempts.prompt_tokens, 0)),
  sum(iif(state = 'answered', attempts.completion_tokens, 0)),
  total(iif(state = 'answered', usd, 0)),
  sum(state = 'in doubt'),
  sum(iif(state = 'in doubt', coalesce(answers.prompt_tokens, attempts.prompt_tokens), 0)),
  sum(iif(state = 'in doubt', coalesce(answers.completion_tokens, attempts.completion_tokens), 0)),
  total(iif(state = 'in doubt', usd, 0)),
  sum(state = 'in a batch'),
  sum(iif(state = 'in a batch', attempts.prompt_tokens, 0)),
  sum(iif(state = 'in a batch', attempts.completion_tokens, 0)),
  total(iif(state = 'in a batch', usd, 0)),
  sum(state = 'refused'),
  total(cached_tokens), total(reasoning_tokens), total(is_cut_off)
FROM (SELECT id, key, experiment, stage, endpoint, model, prompt_tokens, completion_tokens, usd,
  iif(state = 'sent', iif(session LIKE 'batch-%', 'in a batch', 'in doubt'), state) AS state
  FROM attempts) AS attempts
LEFT JOIN answers USING (key)
LEFT JOIN {details} AS details ON details.attempt = attempts.id
WHERE (? = '' OR experiment = ?) AND (? = '' OR stage = ?)
GROUP BY experiment, stage, endpoint, model ORDER BY min(id)
"""


@dataclass(frozen=True)
class Amount:
    """Some attempts with their tokens and US dollars."""

    num_attempts: int
    prompt_tokens: int
    completion_tokens: int
    usd: float

    def __str__(self) -> str:
        tokens = f"{self.prompt_tokens:,} + {self.completion_tokens:,} tokens"
        return f"{self.num_attempts:,} ({tokens}, {self.usd:.4f} US dollars)"


@dataclass(frozen=True)
class Entry:
    """A stage's attempts at one model.

    in_doubt: the request was cut off by a kill or a lost connection and may have been billed. Its tokens are
    those of the answer that another attempt got, else the most expected; its US dollars are the most
    expected. in_batches: in a batch that is not collected; tokens and US dollars are the most expected.
    num_refused: the service refused the request, which costs nothing. cached_tokens: of the prompts answered,
    those that the service had cached. reasoning_tokens: of the answers, thoughts. num_cut_off: answers that a
    limit on tokens cut off.
    """

    experiment: str
    stage: str
    endpoint: str
    model: str
    answered: Amount
    in_doubt: Amount
    in_batches: Amount
    num_refused: int
    cached_tokens: int = 0
    reasoning_tokens: int = 0
    num_cut_off: int = 0

    def __str__(self) -> str:
        doubt = f"; in doubt: {self.in_doubt}" if self.in_doubt.num_attempts else ""
        batches = f"; in flight in batches: {self.in_batches}" if self.in_batches.num_attempts else ""
        refused = f"; refused: {self.num_refused:,}" if self.num_refused else ""
        answers = f"answers of '{self.endpoint}' ({self.model}): {self.answered}"
        return f"{answers}{self.details}{batches}{doubt}{refused}"

    @property
    def details(self) -> str:
        """Cached and reasoning tokens and answers that were cut off, in words; "" if there are none."""
        counts = (
            (self.cached_tokens, "cached tokens of prompts"),
            (self.reasoning_tokens, "tokens of thoughts"),
            (self.num_cut_off, "cut off by a limit on tokens"),
        )
        return "".join(f"; {number:,} {what}" for number, what in counts if number)


def entries(folder: Path, experiment: str = "", stage: str = "") -> list[Entry]:
    """Return the ledger in `folder`, of one experiment or stage or all, the oldest entry first.

    Raises UserError if the file exists but can't be read.
    """
    file = folder / FILE
    if not file.exists():
        return []
    try:
        with closing(sqlite3.connect(f"{file.resolve().as_uri()}?mode=ro", uri=True)) as database:
            is_new = not database.execute(_HAS_TABLES).fetchone()
            has_details = database.execute(_HAS_DETAILS).fetchone()
            query = _QUERY.format(details="usage_details" if has_details else _NO_DETAILS)
            rows = (
                [] if is_new else database.execute(query, (experiment, experiment, stage, stage)).fetchall()
            )
    except sqlite3.Error as error:
        raise UserError(
            damage_message(file, error) or f"the ledger of LLM answers, {file}, can't be read: {error}"
        ) from error
    return [_entry(row) for row in rows]


def _entry(row: Sequence[Any]) -> Entry:
    experiment, stage, endpoint, model, *amounts, num_refused, cached, reasoning, cut_off = row
    answered, in_doubt, in_batches = (Amount(*amounts[first : first + 4]) for first in (0, 4, 8))
    details = (int(cached), int(reasoning), int(cut_off))
    return Entry(experiment, stage, endpoint, model, answered, in_doubt, in_batches, num_refused, *details)
