"""Validates names and records read from a store, since other programs may have written them."""

import re
import unicodedata
from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from synthbench.base.durability import DamagedFileError, is_stray, unseal
from synthbench.base.patterns import linear_pattern

STAGE_FILE = "stage.json"
MOST_NAME_BYTES, MOST_PART_BYTES = 1_000, 200
MOST_LEVELS = 50
"""Maximum nesting depth of a record's mappings and lists."""
_IDENTITY = linear_pattern(r"[0-9a-f]{64}")
_ATTEMPT = linear_pattern(r"[0-9a-f]{32}")
_COMMIT = linear_pattern(r"artifacts/([0-9a-f]{2})/(\1[0-9a-f]{62})/stage\.json")
_ATTEMPT_FILE = linear_pattern(r"attempts/([0-9a-f]{64})/([0-9a-z]{1,32})/(.+)", re.DOTALL)


_Count = Annotated[int, Field(ge=0, lt=2**63)]
Identity = Annotated[str, Field(pattern=f"^{_IDENTITY.pattern}$")]
"""A well-formed identity in a stored file: a SHA-256 in hex."""


class _Stored(BaseModel):
    model_config = ConfigDict(strict=True, allow_inf_nan=False)


class _StoredFile(_Stored):
    size: _Count
    mtime_ns: _Count
    sha256: Identity


class _StoredSpec(_Stored):
    kind: str | None = None
    component: str | None = None
    config: dict[Any, Any] = {}
    outside: dict[str, str] = {}
    inputs: dict[str, Identity] = {}
    code: dict[str, dict[str, str]] = {}


class _StageRecord(_Stored):
    """The fields of an artifact's record that are read; earlier versions omitted some."""

    files: dict[Any, _StoredFile]
    label: str | None = None
    seconds: Annotated[float, Field(ge=0)] | None = None
    spec: _StoredSpec | None = None
    by: dict[str, str] | None = None


class ArtifactDamagedError(Exception):
    """A stored artifact differs from its commit; the message names the file and the difference.

    `is_foreign`: the checksums match, but the stage can't have written this content.
    """

    def __init__(self, identity: str, message: str, *, is_foreign: bool = False) -> None:
        super().__init__(message)
        self.identity = identity
        self.is_foreign = is_foreign


def is_identity(name: object) -> bool:
    """Return whether this is a well-formed stage identity: a SHA-256 in hex."""
    return isinstance(name, str) and _IDENTITY.fullmatch(name) is not None


def committed_identity(key: str) -> str | None:
    """Return the identity in the key of an artifact's commit; None for other keys."""
    found = _COMMIT.fullmatch(key)
    return None if found is None else found[2]


def attempt_of(key: str) -> tuple[str, str] | None:
    """Return identity and attempt in the key of an attempt's file; None for other keys and stray files."""
    found = _ATTEMPT_FILE.fullmatch(key)
    return None if found is None or is_stray(key.rpartition("/")[2]) else (found[1], found[2])


def artifact_key(identity: str) -> str:
    """Return an artifact's path below its store's root, which is also its key prefix.

    Raises ArtifactDamagedError for a malformed identity.
    """
    if not is_identity(identity):
        raise ArtifactDamagedError(identity, "has a name that is no identity")
    return f"artifacts/{identity[:2]}/{identity}"


def parsed_record(content: bytes, *, is_shared: bool) -> dict[str, Any]:
    """Parse and validate an artifact's record; raises DamagedFileError."""
    # In local stores, earlier versions recorded the files last.
    record = unseal(content, is_of_earlier_version=lambda found: not is_shared and list(found)[-1] == "files")
    if fault := fault_of(record, is_shared=is_shared):
        raise DamagedFileError(fault)
    return record


def check_size(identity: str, name: str, recorded: Mapping[str, Any], size: int) -> None:
    """Compare a file's size with what was recorded; raises ArtifactDamagedError."""
    if size != recorded["size"]:
        raise ArtifactDamagedError(identity, f"{name} has {size} bytes, {recorded['size']} were written")


def fault_of(record: Mapping[str, Any], *, is_shared: bool = False) -> str:
    """Return the fault of an artifact's record as a predicate ("names no attempt"), "" if there is none.

    A shared store's record must also name the committed attempt.
    """
    if _is_deep(record):
        return "is nested too deep"
    if is_shared and not (isinstance(record.get("attempt"), str) and _ATTEMPT.fullmatch(record["attempt"])):
        return "names no attempt"
    try:
        _StageRecord.model_validate(record)
    except ValidationError as error:
        key = error.errors(include_input=False)[0]["loc"][0]
        return "is unreadable" if key == "files" else f"has a wrong '{key}'"
    for name in record["files"]:
        if fault := _fault_of_name(name):
            return f"names a file {name[:60]!a}, which {fault}"
    clash = _clash(record["files"])
    return f"names {clash} as a file and as a folder" if clash else ""


def _fault_of_name(name: str) -> str:
    """Return why this file name is invalid in an artifact (a predicate: "is too long"), "" if valid."""
    parts = name.split("/")
    if "\\" in name or any(part in ("", ".", "..") for part in parts):
        return "may lie outside the artifact"
    if any(unicodedata.category(character) in ("Cc", "Cs") for character in name):
        return "has control characters"
    sizes = [len(part.encode()) for part in parts]
    if sum(sizes) > MOST_NAME_BYTES or max(sizes) > MOST_PART_BYTES:
        return "is too long"
    return "is the record's own" if name.casefold() == STAGE_FILE else ""


def _clash(names: Iterable[str]) -> str:
    """Return a name that is also the folder of another name, "" if there is none."""
    as_parts = sorted(name.split("/") for name in names)
    return next(("/".join(one) for one, after in pairwise(as_parts) if after[: len(one)] == one), "")


def _is_deep(value: object) -> bool:
    level = [value]
    for _ in range(MOST_LEVELS):
        groups = (each.values() if isinstance(each, dict) else each for each in level)
        level = [inner for group in groups for inner in group if isinstance(inner, dict | list)]  # type: ignore[attr-defined]
        if not level:
            return False
    return True
