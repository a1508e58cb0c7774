"""What lies in a store, as `clean` sees it."""

from dataclasses import dataclass
from pathlib import Path

UNFINISHED = "unfinished"
DISCARDED = "discarded"


@dataclass(frozen=True)
class Holding:
    """An artifact, unfinished work or the rest of a removal; size in bytes, last use in seconds since 1970.

    `kind` is the stage's, or UNFINISHED, DISCARDED or "damaged". `folder` is where it lies, or would lie, on
    this machine; `inputs` are the identities of an artifact's inputs.
    """

    identity: str
    folder: Path
    kind: str
    size: int
    last_used: float
    inputs: tuple[str, ...] = ()


def spec_holding(folder: Path, spec: dict[str, object], size: int, last_used: float) -> Holding:
    """Return the holding of an artifact whose record has this spec, {} if the record is damaged."""
    inputs = spec.get("inputs")
    sources = tuple(inputs.values()) if isinstance(inputs, dict) else ()
    return Holding(folder.name, folder, str(spec.get("kind", "damaged")), size, last_used, sources)
