"""The evaluator of a score, from its recorded settings."""

import json

from pydantic import ValidationError

from synthbench.base.errors import UserError
from synthbench.plugins.loading import component
from synthbench.plugins.model_contracts import Evaluator
from synthbench.reporting.results import TaskScores


def evaluator_of(score: TaskScores) -> Evaluator | None:
    """Return the evaluator that made a score; None if the plug-in is gone or its settings changed."""
    try:
        plugin = component("evaluators", score.evaluator)
        settings = {name: value for name, value in score.settings.items() if name in plugin.model_fields}
        evaluator: Evaluator = plugin.model_validate_json(json.dumps(settings))
    except (UserError, ValidationError):
        return None
    return evaluator
