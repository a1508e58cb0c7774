"""Where results are kept for people to look at and for reports to read."""

from pathlib import Path
from typing import Protocol

from synthbench.reporting.results import ExperimentResult


class Tracker(Protocol):
    """Keeps finished experiments; called by the runner only."""

    def check(self, experiment: str) -> None:
        """Try, before anything is spent, what `log` of this experiment will need.

        Raises UserError if the tracker can't be reached.
        """

    def log(self, result: ExperimentResult, report_folder: Path) -> str:
        """Keep the result with its report and return where to look: an address, or the command for it.

        Logging the same result again changes nothing; after a kill it completes what is there. Raises
        UserError if the tracker can't be reached.
        """

    def load(self, experiment: str, request: str = "") -> ExperimentResult:
        """Return the newest finished result of that name, or of what was asked for so (its `request`).

        Raises UserError if there is none or the tracker can't be reached.
        """
