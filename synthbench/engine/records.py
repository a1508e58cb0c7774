"""Validates names and records read from a store, since a store's content may be foreign."""

import math
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from itertools import pairwise
from typing import Any

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


class ArtifactDamagedError(Exception):
    """A stored artifact differs from its commit; the message names the file and the difference.

    `is_foreign`: the checksums match, but no such stage writes such a file.
    """

    def __init__(self, identity: str, message: str, *, is_foreign: bool = False) -> None:
        super().__init__(message)
        self.identity = identity
        self.is_foreign = is_foreign


def is_identity(name: object) -> bool:
    """Return whether this is a well-formed stage identity: a SHA-256 in hex."""
    return isinstance(name, str) and _IDENTITY.fullmatch(name) is not None


def committed_identity(key: str) -> str | None:
    """Parse the key of an artifact's commit; None for other keys."""
    found = _COMMIT.fullmatch(key)
    return None if found is None else found[2]


def attempt_of(key: str) -> tuple[str, str] | None:
    """Parse identity and attempt from the key of an attempt's file; None for other keys."""
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
    """Parse an artifact's record; raises DamagedFileError."""
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
    """Return the fault of an artifact's record, "" if it has none.

    A shared store's record must also name the committed attempt.
    """
    if _is_deep(record):
        return "is nested too deep"
    if is_shared and not (isinstance(record.get("attempt"), str) and _ATTEMPT.fullmatch(record["attempt"])):
        return "names no attempt"
    files = record.get("files")
    if not isinstance(files, dict):
        return "is unreadable"
    if any(not _is_file_entry(entry) for entry in files.values()):
        return "is unreadable"
    for name in files:
        if fault := _fault_of_name(name):
            return f"names a file {name[:60]!a}, which {fault}"
    if clash := _clash(files):
        return f"names {clash} as a file and as a folder"
    return next((f"has a wrong '{key}'" for key, fits in _FIELDS.items() if not fits(record.get(key))), "")


def _fault_of_name(name: str) -> str:
    """Return why this file name is invalid in an artifact, "" if it is valid."""
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


def _is_file_entry(entry: object) -> bool:
    return (
        isinstance(entry, dict)
        and _is_count(entry.get("size"))
        and _is_count(entry.get("mtime_ns"))
        and is_identity(entry.get("sha256"))
    )


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63


def _is_text(value: object) -> bool:
    return value is None or isinstance(value, str)


def _is_duration(value: object) -> bool:
    if not isinstance(value, int | float):
        return value is None
    return not isinstance(value, bool) and math.isfinite(value) and value >= 0


def _is_spec(value: object) -> bool:
    if value is None:
        return True
    if not isinstance(value, dict):
        return False
    inputs, code = value.get("inputs", {}), value.get("code", {})
    return (
        all(_is_text(value.get(key)) for key in ("kind", "component"))
        and isinstance(value.get("config", {}), dict)
        and _is_of_texts(value.get("outside", {}))
        and _is_of_texts(inputs)
        and all(is_identity(identity) for identity in inputs.values())
        and isinstance(code, dict)
        and all(_is_of_texts(packages) for packages in code.values())
    )


def _is_of_texts(value: object) -> bool:
    return isinstance(value, dict) and all(isinstance(each, str) for each in value.values())


_FIELDS: Mapping[str, Callable[[object], bool]] = {
    "label": _is_text,
    "seconds": _is_duration,
    "spec": _is_spec,
    "by": lambda value: value is None or _is_of_texts(value),
}
"""Optional fields of a record, each with its check; earlier versions omitted some."""
