"""With which versions the stages behind a result were computed, where these are several."""

from collections.abc import Iterator, Sequence

from synthbench.pipeline.artifacts import Artifacts
from synthbench.pipeline.plan import PlannedRun
from synthbench.pipeline.stage import Stage, ancestors

ROWS_SHOWN = 5


def version_notes(runs: Sequence[PlannedRun], artifacts: Artifacts) -> Iterator[str]:
    """Yield a sentence for each package, Python and machine of which stages in the store met several.

    A stage that is there is not computed anew because a package is newer: only the versions of methods,
    trainers and evaluators, and the code of those that others wrote, are part of what it is.
    """
    known: dict[str, dict[str, str]] = {}
    rows: dict[str, dict[str, dict[str, None]]] = {}
    for run in runs:
        for stage in ancestors(run.ends):
            for what, version in known.setdefault(stage.identity, _versions(stage, artifacts)).items():
                rows.setdefault(what, {}).setdefault(version, {})[run.variant.label] = None
    for what, of_versions in rows.items():
        if len(of_versions) > 1:
            named = (f"{version} ({_some(list(of))})" for version, of in sorted(of_versions.items()))
            yield f"Not all computed with the same {what}: {', '.join(named)}."


def _versions(stage: Stage, artifacts: Artifacts) -> dict[str, str]:
    found = artifacts.record(stage.identity).get("by")
    return {str(what): str(version) for what, version in found.items()} if isinstance(found, dict) else {}


def _some(rows: list[str]) -> str:
    """Name some rows, and how many there are beside them."""
    more = len(rows) - ROWS_SHOWN
    return ", ".join(rows[:ROWS_SHOWN]) + (f" and {more} more" if more > 0 else "")
