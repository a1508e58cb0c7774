"""Experiment files of a recommendation's phases, which also store the decisions made for each phase."""

import hashlib
import json
import textwrap
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from synthbench.base.durability import write_atomically
from synthbench.base.errors import UserError
from synthbench.results.collect import to_yaml

VERSION = 3
"""Raise it whenever the same request leads to other decisions."""
_KEY, _DECIDED = "# request: ", "# decided: "
Decisions = dict[str, Any]


class PhaseFiles:
    """Reads and writes the phase files beside an experiment file, for one request.

    The request is the study with its budget and overrides. If a phase file of the same request exists, its
    decisions are used again, even if cost estimates have changed since. So a killed recommendation resumes
    with the same plan.
    """

    def __init__(self, file: Path, request: Mapping[str, Any]) -> None:
        self.file = file
        content = json.dumps([VERSION, request], sort_keys=True, default=str)
        self._key = hashlib.sha256(content.encode()).hexdigest()[:16]

    def path(self, phase: str) -> Path:
        """Return the path of a phase's file."""
        return self.file.with_name(f"{self.file.stem}.{phase}.yaml")

    def decisions(self, phase: str, decide: Callable[[], Decisions]) -> Decisions:
        """Return the decisions in the phase's file if it was written for this request, else `decide()`."""
        lines = _text_of(self.path(phase)).splitlines()
        found = {
            key: line.removeprefix(key) for line in lines for key in (_KEY, _DECIDED) if line.startswith(key)
        }
        if found.get(_KEY) == self._key:
            try:
                return dict(json.loads(found[_DECIDED]))
            except (KeyError, TypeError, ValueError):
                pass
        return decide()

    def write(self, phase: str, document: Mapping[str, Any], decided: Decisions, about: str) -> Path:
        """Write a phase's file, which begins with the description `about`, and return its path.

        `document`: the experiment. `decided`: the phase's decisions, for `decisions`. Raises UserError if the
        file can't be written, or if its name belongs to a file that is no phase file.
        """
        lines = [*textwrap.wrap(about, 108), ""] if about else []
        comments = "".join(f"# {line}".rstrip() + "\n" for line in lines)
        header = f"{comments}{_KEY}{self._key}\n{_DECIDED}{json.dumps(decided)}\n"
        path = self.path(phase)
        if path.exists() and _KEY not in _text_of(path):
            raise UserError(f"{path}: recommend would write its {phase} phase here; move your file")
        try:
            write_atomically(path, f"{header}\n{to_yaml(document)}")
        except OSError as error:
            raise UserError(f"{path}: can't be written: {error.strerror or error}") from error
        return path


def _text_of(path: Path) -> str:
    """Return a file's text; "" if the file can't be read."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ""
