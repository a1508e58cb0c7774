"""Read LLM usage and cost from the answer cache."""

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from synthbench.base.errors import UserError
from synthbench.data.answer_kinds import AnswerKind
from synthbench.llm.cache import FILE
from synthbench.llm.database import damage_message, keep_private

_TABLES = {
    "usage_details": "SELECT NULL AS attempt, 0 AS cached_tokens, 0 AS reasoning_tokens, 0 AS is_cut_off",
    "replies": "SELECT NULL AS attempt, '' AS kind",
    "payers": "SELECT NULL AS attempt, '' AS llm",
    "spending": "SELECT experiment, usd, prompt_tokens + completion_tokens AS tokens FROM attempts"
    " WHERE state <> 'refused'",
    "stage_models": "SELECT NULL AS stage, '' AS model",
}
"""Tables that a file of an earlier version may lack, and their replacement in queries.

`spending` is replaced, too, if it lacks the column `tokens`.
"""
_KINDS = (AnswerKind.EMPTY, AnswerKind.REFUSED, AnswerKind.FAULTY)


def _amount(state: str, prompt: str = "attempts.prompt_tokens") -> str:
    """Return the SQL columns for an AttemptTotals of the attempts in this state."""
    values = (prompt, prompt.replace("prompt", "completion"))
    tokens = ", ".join(f"sum(iif(state = '{state}', {value}, 0))" for value in values)
    return f"sum(state = '{state}'), {tokens}, total(iif(state = '{state}', usd, 0))"


_COLUMNS = ", ".join(
    (
        _amount("answered"),
        _amount("in doubt", "coalesce(answers.prompt_tokens, attempts.prompt_tokens)"),
        _amount("in a batch"),
        _amount("unfinished"),
        "sum(state = 'refused')",
        *(f"total({name})" for name in ("cached_tokens", "reasoning_tokens", "is_cut_off")),
        *(f"total(kind = '{kind}')" for kind in _KINDS),
    )
)
_QUERY = """
SELECT experiment, stage, endpoint, attempts.model, iif(llm = 'llm', '', coalesce(llm, '')) AS llm_key,
  {columns}
FROM (SELECT id, key, experiment, stage, endpoint, model, prompt_tokens, completion_tokens, usd,
  iif(state = 'sent', iif(session LIKE 'batch-%', 'in a batch', 'in doubt'), state) AS state
  FROM attempts) AS attempts
LEFT JOIN answers USING (key)
LEFT JOIN {usage_details} AS details ON details.attempt = attempts.id
LEFT JOIN {replies} AS replies ON replies.attempt = attempts.id
LEFT JOIN {payers} AS payers ON payers.attempt = attempts.id
WHERE (? = '' OR experiment = ?) AND (? = '' OR stage = ?)
GROUP BY experiment, stage, endpoint, attempts.model, llm_key ORDER BY min(id)
"""


@dataclass(frozen=True)
class AttemptTotals:
    """A number of attempts, with their total tokens and US dollars."""

    num_attempts: int
    prompt_tokens: int
    completion_tokens: int
    usd: float

    def __add__(self, other: "AttemptTotals") -> "AttemptTotals":
        return AttemptTotals(
            self.num_attempts + other.num_attempts,
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
            self.usd + other.usd,
        )

    def __str__(self) -> str:
        tokens = f"{self.prompt_tokens:,} + {self.completion_tokens:,} tokens"
        return f"{self.num_attempts:,} ({tokens}, {self.usd:.4f} US dollars)"


@dataclass(frozen=True)
class StageAttempts:
    """A stage's attempts (requests sent) at one model, by outcome.

    in_doubt: the request is in flight, or was cut off by a kill or a lost connection; it may be billed. If
    another attempt got an answer, that answer's tokens count, else the expected maximum. US dollars are the
    expected maximum. in_batches: in an uncollected batch; tokens and US dollars are the expected maximum.
    unfinished: incomplete answers, paid and requested again. num_refused: refused or never sent, at no cost.
    cached_tokens: prompt tokens in the service's cache. reasoning_tokens: answer tokens that were thoughts.
    num_cut_off, num_empty, num_filtered (by a content filter or a refusal), num_faulty: incomplete replies by
    kind. llm: the LLM's key in the file, "" for the only one.
    """

    experiment: str
    stage: str
    endpoint: str
    model: str
    llm: str
    answered: AttemptTotals
    in_doubt: AttemptTotals
    in_batches: AttemptTotals
    unfinished: AttemptTotals
    num_refused: int
    cached_tokens: int = 0
    reasoning_tokens: int = 0
    num_cut_off: int = 0
    num_empty: int = 0
    num_filtered: int = 0
    num_faulty: int = 0

    @property
    def paid(self) -> AttemptTotals:
        """Attempts certainly paid."""
        return self.answered + self.unfinished

    def __str__(self) -> str:
        doubt = f"; in doubt: {self.in_doubt}" if self.in_doubt.num_attempts else ""
        batches = f"; in flight in batches: {self.in_batches}" if self.in_batches.num_attempts else ""
        refused = f"; refused: {self.num_refused:,}" if self.num_refused else ""
        again = f"; asked for again: {self.unfinished}" if self.unfinished.num_attempts else ""
        llm = f", {self.llm}" if self.llm else ""
        answers = f"answers of '{self.endpoint}' ({self.model}{llm}): {self.answered}"
        return f"{answers}{self.details}{again}{batches}{doubt}{refused}"

    @property
    def details(self) -> str:
        """Cached and reasoning tokens and incomplete answers, in words; "" if there are none."""
        counts = (
            (self.cached_tokens, "cached tokens of prompts"),
            (self.reasoning_tokens, "tokens of thoughts"),
            (self.num_cut_off, "cut off by a limit on tokens"),
            (self.num_empty, "empty"),
            (self.num_filtered, "withheld by a filter or a refusal"),
            (self.num_faulty, "faulty"),
        )
        return "".join(f"; {number:,} {what}" for number, what in counts if number)


def entries(folder: Path, experiment: str = "", stage: str = "") -> list[StageAttempts]:
    """Return the attempts in `folder`'s ledger, summed by experiment, stage and LLM, oldest first.

    `experiment` and `stage` "" mean all. [] without a file; raises UserError if the file can't be read.
    """
    query = _QUERY.replace("{columns}", _COLUMNS)
    return [_entry(row) for row in _rows(folder, query, (experiment, experiment, stage, stage))]


def spent(folder: Path, experiment: str) -> tuple[float, int]:
    """Return the US dollars and tokens that an experiment's LLMs have cost so far.

    Attempts in flight or in doubt count with their expected maximum. Raises UserError if the file exists but
    can't be read.
    """
    query = "SELECT total(usd), coalesce(sum(tokens), 0) FROM {spending} WHERE experiment = ?"
    rows = _rows(folder, query, (experiment,))
    return (float(rows[0][0]), int(rows[0][1])) if rows else (0.0, 0)


def models_that_answered(folder: Path, stage: str) -> list[str]:
    """Return, sorted, the models that answered a stage's requests under another name than the requested one.

    Answers from the cache count, too. Raises UserError if the file exists but can't be read.
    """
    query = "SELECT model FROM {stage_models} WHERE stage = ? ORDER BY model"
    return [str(model) for (model,) in _rows(folder, query, (stage,))]


def _rows(folder: Path, query: str, values: tuple[str, ...]) -> list[Sequence[Any]]:
    """Return the rows of a query; {NAME} in it is a table that old files may lack. [] without a file."""
    file = folder / FILE
    if not file.exists():
        return []
    try:
        keep_private(file)
        with closing(sqlite3.connect(f"{file.resolve().as_uri()}?mode=ro", uri=True)) as database:
            tables = dict(database.execute("SELECT name, sql FROM sqlite_master"))
            if "tokens" not in tables.get("spending", ""):
                tables.pop("spending", None)
            names = {name: name if name in tables else f"({empty})" for name, empty in _TABLES.items()}
            # A process creates the file before the tables, and may be killed in between.
            found = database.execute(query.format(**names), values) if "attempts" in tables else ()
            return list(found)
    except (sqlite3.Error, OSError) as error:
        raise UserError(
            damage_message(file, error) or f"the ledger of LLM answers, {file}, can't be read: {error}"
        ) from error


def _entry(row: Sequence[Any]) -> StageAttempts:
    experiment, stage, endpoint, model, llm, *numbers = row
    answered, in_doubt, in_batches, unfinished = (
        AttemptTotals(*numbers[first : first + 4]) for first in (0, 4, 8, 12)
    )
    counts = map(int, numbers[16:])
    amounts = (answered, in_doubt, in_batches, unfinished)
    return StageAttempts(experiment, stage, endpoint, model, llm, *amounts, *counts)
