"""Export how a model or data set was made, for programs: `lineage.json`."""

import json
from collections.abc import Sequence
from importlib.metadata import version
from typing import Any

from synthbench.base.redaction import without_secrets
from synthbench.exporting.facts import ExportedPart, costs_of
from synthbench.exporting.privacy import public
from synthbench.exporting.subject import Subject

FORMAT = 1


def lineage(subject: Subject, parts: Sequence[ExportedPart]) -> str:
    """Return JSON on the run, its data with manifests and costs, and all versions."""
    result = subject.result
    facts: dict[str, Any] = {
        "format": FORMAT,
        "written_by": f"synthbench {version('synthbench')}",
        "experiment": result.experiment,
        "overrides": list(result.overrides),
        "row": subject.row.label,
        "seed": subject.run.seed,
        "result": result.identity,
        "registration": result.registration and result.registration.model_dump(mode="json"),
        "run": subject.run.model_dump(mode="json", exclude={"history"}),
        "manifests": {
            part.name: part.manifest.model_dump(mode="json") for part in parts if part.manifest is not None
        },
        "costs": [cost.model_dump(mode="json") for cost in costs_of(parts)],
        "revisions": dict(result.revisions),
        "environment": result.environment,
    }
    return public(json.dumps(without_secrets(facts), indent=1, ensure_ascii=False) + "\n")
