"""The candidates of a row: each combination of the values that its `select` ranges over."""

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any

from synthbench.base.errors import did_you_mean
from synthbench.config.chains import ancestors_of
from synthbench.config.documents import Document, expand_dotted, merge
from synthbench.config.experiment import Candidate
from synthbench.config.problems import Problems
from synthbench.config.rows import MOST_ROWS


def candidates_of(
    document: Document, problems: Problems, most: int
) -> Iterator[tuple[dict[str, Any], Document]]:
    """Yield each combination of the values that `select` ranges over with its run; {} and the run without.

    More than `most` combinations are a problem, and none is yielded.
    """
    over = document.data.get("select")
    over = over.get("over") if isinstance(over, dict) else None
    if not (isinstance(over, dict) and all(isinstance(v, list) and v for v in over.values())):
        over = {}
    known = [path for path in over if _is_path(document, path, problems)]
    location = document.location(("select", "over"))
    number = math.prod(len(over[path]) for path in known)
    if number > most:
        many = f"{number:,} combinations in each row; at most {MOST_ROWS:,} in all rows together are tried"
        problems.add(document, ("select", "over"), many)
        return
    for values in itertools.product(*(over[path] for path in known)):
        chosen = dict(zip(known, values, strict=True))
        patch = expand_dotted(Document(chosen, {(): location, **{(path,): location for path in chosen}}))
        yield chosen, merge(document, patch)


def _is_path(document: Document, path: str, problems: Problems) -> bool:
    """Tell whether a path leads into a section that the run has, and note the problem if not."""
    section, *inner = path.split(".")
    data = document.data.get("data")
    parts = [f"data.{name}" for name in data] if isinstance(data, dict) else []
    if section == "evaluate":
        problems.add(document, ("select",), "ranges over data and train only, not over evaluate")
        return False
    named = ".".join((section, *inner[:1])) if section == "data" else section
    known = [*parts, "train"]
    is_whole_part = section == "data" and len(inner) == 1
    if inner and (named in known or is_whole_part):
        return True
    message = f"'{path}' is no setting of this run{did_you_mean(named, [k for k in known if k != named])}"
    problems.add(document, ("select", "over", path), message)
    return False


def check_candidates(document: Document, candidates: Sequence[Candidate], problems: Problems) -> None:
    """Require that dev can choose among the candidates of a row; there is at least one."""
    first = candidates[0].config
    if first.selection is None:
        problems.add(document, ("select",), "needs train.selection: candidates are compared on dev")
    if any(candidate.config.selection != first.selection for candidate in candidates):
        problems.add(document, ("select",), "candidates must have the same train.selection")
    _check_parts_of_all(document, candidates[0], problems)


def _check_parts_of_all(document: Document, candidate: Candidate, problems: Problems) -> None:
    """Require that no candidate has dev data or audited data of its own."""
    config = candidate.config
    selecting = ancestors_of(config.selection.parts if config.selection else (), config.parts)
    audited = ancestors_of({audit.part for audit in config.audits}, config.parts)
    for path in candidate.chosen:
        part = path.split(".")[1] if path.startswith("data.") else ""
        if part in selecting:
            message = f"changes part '{part}', whose dev split selects; candidates need the same dev data"
            problems.add(document, ("select", "over", path), message)
        if part in audited:
            message = f"changes part '{part}', which is audited; audit it in rows of one candidate"
            problems.add(document, ("select", "over", path), message)
