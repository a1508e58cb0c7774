"""Where this machine keeps what experiment files name."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

Origin = Literal["folder", "hub"]


@dataclass(frozen=True)
class Places:
    """Where sources are looked for.

    `data` is the folder that holds the standard data sets (SentEval's), `origin` says where tasks come from
    when their source does not, and `base` is what relative file names start from: the experiment file's
    folder.
    """

    data: Path | None = None
    origin: Origin = "folder"
    base: Path = field(default_factory=Path)
