"""Spending of each LLM in an experiment file, in US dollars and tokens, for the experiment's budgets.

Accounts are keyed by the LLM's key in the file, since two keys may name one model. Attempts recorded by
earlier versions of synthbench lack that key: they count for every LLM with their endpoint and model.
"""

from dataclasses import dataclass

from synthbench.llm.database import Database
from synthbench.llm.endpoint import Account, Endpoint

_OLD = """
SELECT total(usd), coalesce(sum(prompt_tokens + completion_tokens), 0)
FROM attempts LEFT JOIN payers ON attempt = id
WHERE experiment = ? AND endpoint = ? AND model = ? AND state <> 'refused' AND payers.llm IS NULL
"""
_CHANGE = """
UPDATE spending SET usd = spending.usd + (? - ? * attempts.usd),
  tokens = spending.tokens + (? - ? * (attempts.prompt_tokens + attempts.completion_tokens))
FROM attempts LEFT JOIN payers ON attempt = attempts.id
WHERE attempts.id = ? AND spending.llm = coalesce(payers.llm, spending.llm)
AND (spending.experiment, spending.endpoint, spending.model)
  = (attempts.experiment, attempts.endpoint, attempts.model)
"""


@dataclass(frozen=True)
class Cost:
    """Tokens and US dollars of one attempt, as expected or as billed."""

    prompt_tokens: int
    completion_tokens: int
    usd: float

    @property
    def tokens(self) -> int:
        """Prompt and completion tokens together."""
        return self.prompt_tokens + self.completion_tokens


FREE = Cost(0, 0, 0.0)


@dataclass(frozen=True)
class Spent:
    """The US dollars and tokens that an LLM spent of its budgets."""

    usd: float
    tokens: int


class Spending:
    """One LLM's account for one experiment; changes are part of the caller's transaction."""

    def __init__(self, database: Database, endpoint: Endpoint, account: Account) -> None:
        self._database = database
        self._llm = endpoint.section
        self._of = (account.experiment, endpoint.name, endpoint.model)

    def total(self) -> Spent:
        """Return the spending so far; attempts in flight or in doubt count at their expected cost."""
        experiment, *model = self._of
        rows = self._database.execute(
            "SELECT usd, tokens FROM spending"
            " WHERE experiment = ? AND llm = ? AND endpoint = ? AND model = ?",
            (experiment, self._llm, *model),
        )
        usd, tokens = rows[0] if rows else self._database.execute(_OLD, self._of)[0]
        return Spent(float(usd), int(tokens))

    def open(self) -> None:
        """Create the account if it does not exist; call it before the first attempt is recorded."""
        experiment, *model = self._of
        total = self.total()
        self._database.execute(
            "INSERT OR IGNORE INTO spending (experiment, llm, endpoint, model, usd, tokens)"
            " VALUES (?, ?, ?, ?, ?, ?)",
            (experiment, self._llm, *model, total.usd, total.tokens),
        )

    def book(self, attempt: int, cost: Cost) -> None:
        """Charge the account with a new attempt's expected cost; call it once the attempt is recorded."""
        self._database.execute("INSERT INTO payers VALUES (?, ?)", (attempt, self._llm))
        self._change(attempt, cost, replaces=False)

    def settle(self, attempt: int, cost: Cost) -> None:
        """Replace an attempt's expected cost by its actual cost; call it before the attempt's row changes."""
        self._change(attempt, cost, replaces=True)

    def _change(self, attempt: int, cost: Cost, *, replaces: bool) -> None:
        self._database.execute(_CHANGE, (cost.usd, replaces, cost.tokens, replaces, attempt))
