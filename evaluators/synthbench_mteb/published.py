"""Comparison of data with published data sets, by the statistics that mteb ships."""

import io
import math
from collections.abc import Mapping
from contextlib import redirect_stderr
from typing import Any

TOLERANCE = 1e-9
"""Permitted relative difference between two means of the same numbers."""
NOT_COMPARED = "unique_pairs"
"""A statistic that mteb computes differently today than when it was published."""


def published_revision(task: Any) -> dict[str, str]:  # noqa: ANN401 - an AbsTask of mteb with its data
    """Return {data set: commit} of the hub, or {} if the task's local data differ from that data set."""
    published = type(task).metadata.dataset
    is_local = task.metadata.dataset["path"] != published["path"]
    if is_local and not _has_published_content(task):
        return {}
    return {published["path"]: published["revision"]}


def _has_published_content(task: Any) -> bool:  # noqa: ANN401
    """Return whether the number of texts, their lengths and their scores agree with mteb's statistics."""
    known: Mapping[str, Any] = task.metadata.descriptive_stats or {}
    if set(task.hf_subsets) != set(task.metadata.hf_subsets) or not set(task.eval_splits) <= known.keys():
        return False
    for split in task.eval_splits:
        is_multilingual = task.metadata.is_multilingual
        # mteb's public function writes into its own installation; this one draws progress bars.
        with redirect_stderr(io.StringIO()):
            found = task._calculate_descriptive_statistics_from_split(split, compute_overall=is_multilingual)
        if not _agree(found, known[split]):
            return False
    return True


def _agree(found: Any, known: Any) -> bool:  # noqa: ANN401
    if isinstance(found, Mapping) and isinstance(known, Mapping):
        names = (found.keys() & known.keys()) - {NOT_COMPARED}
        return all(_agree(found[name], known[name]) for name in names)
    if isinstance(found, int | float) and isinstance(known, int | float):
        return math.isclose(found, known, rel_tol=TOLERANCE)
    return bool(found == known)
