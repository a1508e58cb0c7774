"""The manifest of a data set: what its records are, and where they come from."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from synthbench.base.errors import UserError, first_fault
from synthbench.base.frozen import added_field
from synthbench.data.records import RecordKind

SCHEMA_VERSION = 1
MANIFEST_FILE = "manifest.json"


class Manifest(BaseModel):
    """Description and provenance of a data set; it holds no times, so equal runs write equal manifests."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    schema_version: int = SCHEMA_VERSION
    kind: RecordKind
    method: str = ""
    version: int = 0
    config: dict[str, Any] = Field(default_factory=dict)
    sources: dict[str, str] = Field(default_factory=dict, description="role -> content hash of its source")
    revisions: dict[str, str] = Field(default_factory=dict, description="model or data set -> commit or hash")
    num_records: int = 0
    dropped: dict[str, int] = Field(default_factory=dict, description="reason -> number of dropped records")
    num_failures: int = 0
    tokens: dict[str, int] = Field(default_factory=dict)
    cost_usd: float = 0.0
    notes: list[str] = Field(default_factory=list)
    measured: dict[str, float] = added_field(
        {},
        description="figure -> its value, as measured by the method",
    )
    unfinished_answers: dict[str, int] = added_field(
        {},
        description="kind of incomplete LLM answer (cut off, empty answer, refused, faulty answer) -> number "
        "of failures",
    )
    answered_by: dict[str, list[str]] = added_field(
        {},
        description="requested model -> names of the models that answered, if they differ",
    )
    content_hash: str = ""

    def with_models(self, answered_by: Mapping[str, Iterable[str]]) -> "Manifest":
        """Return the manifest with further models that answered under another name than requested."""
        known = self.answered_by
        together = {
            asked: sorted({*known.get(asked, ()), *answered_by.get(asked, ())})
            for asked in sorted({*known, *answered_by})
        }
        return self.model_copy(update={"answered_by": together})


def write_manifest(manifest: Manifest, folder: Path) -> None:
    """Write the manifest of the data set in `folder`."""
    (folder / MANIFEST_FILE).write_text(manifest.model_dump_json(indent=1) + "\n", encoding="utf-8")


def read_manifest(folder: Path) -> Manifest:
    """Return only the manifest of a data set.

    Raises UserError if the folder holds no data set, a damaged one, or another schema version.
    """
    file = folder / MANIFEST_FILE
    if not file.is_file():
        raise UserError(f"{folder}: not a data set: no {MANIFEST_FILE}")
    try:
        raw = json.loads(file.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise UserError(f"{file}: damaged, not JSON: {error}") from error
    found = raw.get("schema_version") if isinstance(raw, dict) else None
    if found != SCHEMA_VERSION:
        raise UserError(f"{file}: schema version {found}, this synthbench reads {SCHEMA_VERSION}")
    try:
        return Manifest.model_validate(raw)
    except ValidationError as error:
        raise UserError(f"{file}: not a data set's manifest: {first_fault(error)}") from error
