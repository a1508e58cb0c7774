"""The cost of each LLM of an experiment file for the experiment.

Accounts are keyed by the LLM's key in the file, since two keys may name one model. Attempts of earlier
versions lack that key: they count for every LLM with their endpoint and model.
"""

from synthbench.llm.database import Database
from synthbench.llm.endpoint import Account, Endpoint

_OLD = """
SELECT total(usd) FROM attempts LEFT JOIN payers ON attempt = id
WHERE experiment = ? AND endpoint = ? AND model = ? AND state <> 'refused' AND payers.llm IS NULL
"""
_CHANGE = """
UPDATE spending SET usd = spending.usd + (? - ? * attempts.usd)
FROM attempts LEFT JOIN payers ON attempt = attempts.id
WHERE attempts.id = ? AND spending.llm = coalesce(payers.llm, spending.llm)
AND (spending.experiment, spending.endpoint, spending.model)
  = (attempts.experiment, attempts.endpoint, attempts.model)
"""


class Spending:
    """One LLM's account for one experiment; changes are part of the caller's transaction."""

    def __init__(self, database: Database, endpoint: Endpoint, account: Account) -> None:
        self._database = database
        self._llm = endpoint.section
        self._of = (account.experiment, endpoint.name, endpoint.model)

    def total(self) -> float:
        """Return the cost in US dollars, including attempts in flight or in doubt."""
        experiment, *model = self._of
        rows = self._database.execute(
            "SELECT usd FROM spending WHERE experiment = ? AND llm = ? AND endpoint = ? AND model = ?",
            (experiment, self._llm, *model),
        )
        return float(rows[0][0] if rows else self._database.execute(_OLD, self._of)[0][0])

    def open(self) -> None:
        """Create the account if it does not exist; call it before the first attempt is recorded."""
        experiment, *model = self._of
        self._database.execute(
            "INSERT OR IGNORE INTO spending VALUES (?, ?, ?, ?, ?)",
            (experiment, self._llm, *model, self.total()),
        )

    def book(self, attempt: int, usd: float) -> None:
        """Charge a new attempt with its expected cost."""
        self._database.execute("INSERT INTO payers VALUES (?, ?)", (attempt, self._llm))
        self._database.execute(_CHANGE, (usd, 0, attempt))

    def settle(self, attempt: int, usd: float) -> None:
        """Replace an attempt's expected cost by its actual cost."""
        self._database.execute(_CHANGE, (usd, 1, attempt))
