"""The checkpoints that ship with the package, and their integrity."""

import hashlib
import json
from functools import cache
from pathlib import Path

from synthbench.base.errors import UserError, did_you_mean

PREFIX = "sandbox/"
CHECKPOINTS = Path(__file__).parent / "checkpoints"
CHECKSUMS_FILE = "checksums.json"


def folder(model: str) -> Path:
    """Return the folder of a checkpoint by model name ("sandbox/encoder").

    Raises UserError if there is none of that name, or if a file is missing or changed.
    """
    name = model.removeprefix(PREFIX)
    known = _checksums()
    if name not in known:
        hint = did_you_mean(name, known)
        raise UserError(f"{model}: the sandbox has no such checkpoint{hint}")
    damage = _damage(name)
    if damage:
        raise UserError(f"{model}: {damage}; install synthbench again")
    return CHECKPOINTS / name


def checksums(checkpoint: Path) -> dict[str, str]:
    """Return file name -> SHA-256 of a checkpoint's files."""
    return {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in sorted(checkpoint.iterdir())}


def write_checksums(checkpoints: Path, names: tuple[str, ...]) -> None:
    """Write the checksums of the checkpoints below this folder."""
    content = {name: checksums(checkpoints / name) for name in names}
    text = json.dumps(content, indent=1) + "\n"
    (checkpoints / CHECKSUMS_FILE).write_text(text, encoding="utf-8")


@cache
def _checksums() -> dict[str, dict[str, str]]:
    file = CHECKPOINTS / CHECKSUMS_FILE
    try:
        found: dict[str, dict[str, str]] = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UserError(f"{file}: can't be read; install synthbench again ({error})") from error
    return found


@cache
def _damage(name: str) -> str:
    """Return what is wrong with a checkpoint, "" if nothing is."""
    for file, expected in _checksums()[name].items():
        path = CHECKPOINTS / name / file
        if not path.is_file():
            return f"{path} is missing"
        if hashlib.sha256(path.read_bytes()).hexdigest() != expected:
            return f"{path} is damaged"
    return ""
