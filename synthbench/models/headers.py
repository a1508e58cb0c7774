"""Names, dtypes and shapes of a checkpoint's weights, read from the headers of its safetensors files."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from safetensors import SafetensorError, safe_open

_DTYPES = {"F64": "fp64", "F32": "fp32", "F16": "fp16", "BF16": "bf16"}


@dataclass(frozen=True)
class Tensor:
    """A tensor of a checkpoint; its dtype is fp32, bf16 ..., else safetensors' own name in lower case."""

    dtype: str
    shape: tuple[int, ...]

    @property
    def is_floating(self) -> bool:
        """Whether the tensor has a floating-point dtype."""
        return self.dtype.startswith(("fp", "bf", "f8"))


def tensors(folder: Path, files: str = "*") -> Mapping[str, Tensor]:
    """Return name -> tensor for all safetensors files of a folder; {} if it has none.

    `files` is a pattern of file names without the ending. A file without a readable header is skipped;
    loading the model reports the damage.
    """
    found: dict[str, Tensor] = {}
    for file in sorted(folder.glob(f"{files}.safetensors")):
        with suppress(OSError, SafetensorError), safe_open(file, "np") as opened:
            for name in opened.keys():  # noqa: SIM118 - no mapping
                part = opened.get_slice(name)
                dtype = part.get_dtype()
                found[name] = Tensor(_DTYPES.get(dtype, dtype.lower()), tuple(part.get_shape()))
    return found
