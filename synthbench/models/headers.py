"""Names, dtypes and shapes of a checkpoint's weights, read from the headers of its safetensors files."""

import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MOST_BYTES = 100_000_000
"""The format's limit for a header."""
_LENGTH = struct.Struct("<Q")
_DTYPES = {"F64": "fp64", "F32": "fp32", "F16": "fp16", "BF16": "bf16"}


@dataclass(frozen=True)
class Tensor:
    """A tensor of a checkpoint; its dtype is fp32, bf16 ..., else safetensors' own name in lower case."""

    dtype: str
    shape: tuple[int, ...]

    @property
    def is_floating(self) -> bool:
        """Whether it has a floating-point dtype."""
        return self.dtype.startswith(("fp", "bf", "f8"))


def tensors(folder: Path, files: str = "*") -> Mapping[str, Tensor]:
    """Return the tensors in all safetensors files of a folder, by name; {} if it has none.

    A file without a readable header counts as missing; loading it raises the loader's error.
    """
    found: dict[str, Tensor] = {}
    for file in sorted(folder.glob(f"{files}.safetensors")):
        found.update(_of_file(file))
    return found


def _of_file(file: Path) -> dict[str, Tensor]:
    try:
        with file.open("rb") as stream:
            (length,) = _LENGTH.unpack(stream.read(_LENGTH.size))
            header = json.loads(stream.read(length)) if length <= MOST_BYTES else None
    except (OSError, struct.error, ValueError, RecursionError):
        return {}
    if not isinstance(header, dict):
        return {}
    return {name: _tensor(entry) for name, entry in header.items() if _is_tensor(entry)}


def _is_tensor(entry: Any) -> bool:  # noqa: ANN401 - any JSON
    if not isinstance(entry, dict) or not isinstance(entry.get("dtype"), str):
        return False
    shape = entry.get("shape")
    return isinstance(shape, list) and all(isinstance(size, int) for size in shape)


def _tensor(entry: Mapping[str, Any]) -> Tensor:
    return Tensor(_DTYPES.get(entry["dtype"], entry["dtype"].lower()), tuple(entry["shape"]))
