"""The warning that scores of the generated world are no evidence about real models and texts."""

from collections.abc import Iterator

from synthbench.base.listing import listed
from synthbench.reporting.results import DatasetSummary, ExperimentResult
from synthbench.worlds import MODEL_PREFIX, NAME


def world_warning(result: ExperimentResult) -> Iterator[str]:
    """Name in one line the generated data and models that a result uses; yields nothing if it uses none."""
    names = {name for name, _ in result.revisions}
    asked = [data for run in result.runs for data in run.datasets if _is_simulated(data)]
    found = {
        "generated texts": NAME in names,
        "toy models": any(name.startswith(MODEL_PREFIX) for name in names),
        "a simulated LLM": bool(asked),
    }
    used = [what for what, is_used in found.items() if is_used]
    if not used:
        return
    plumbing = (
        f" Its LLM understands only texts that the {NAME} wrote:"
        " on others, these rows prove the plumbing only."
    )
    yield (
        f"In the {NAME}: {listed(used)}. The scores are no evidence about real ones."
        f"{plumbing if any(map(_reads_files, asked)) else ''}"
    )


def _is_simulated(data: DatasetSummary) -> bool:
    return any(name.startswith(MODEL_PREFIX) for name in data.llm.split(" and "))


def _reads_files(data: DatasetSummary) -> bool:
    """Return whether the data have a source outside the generated world."""
    sources = [each for each in data.made_of if each.kind == "source"]
    return any(name != NAME for each in sources for name, _ in each.revisions)
