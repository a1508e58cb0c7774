"""Write data frames and short experiment files into the home, so that the commands' code reads them."""

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Union

from synthbench.base.errors import UserError
from synthbench.base.home import home
from synthbench.base.user_files import check_file
from synthbench.results.collect import to_yaml

if TYPE_CHECKING:
    import pandas as pd

    Frame = pd.DataFrame | pd.Series

Data = Union[str, Path, Iterable[Any], "Frame"]
"""Texts or records: a file, a data frame, a column of one, or a list."""
STUDIES = "studies"
TEXT, PAIR = ("text",), ("sentence1", "sentence2", "score")


def study_file(name: str, keys: Mapping[str, Any], sources: Mapping[str, Data | None]) -> Path:
    """Write a short file with its data into a folder of the home and return its path.

    Files of data are named by their content, so that equal data are cached wherever they come from. A mapping
    is a source's section and is taken as it is.
    """
    folder = home() / STUDIES / name
    folder.mkdir(parents=True, exist_ok=True)
    given = {role: _source(role, data, folder) for role, data in sources.items() if data is not None}
    file = folder / f"{name}.yaml"
    file.write_text(to_yaml({"experiment": name, **keys, "sources": given}), encoding="utf-8")
    return file


def _source(role: str, data: Data, folder: Path) -> Any:  # noqa: ANN401 - a file's name or a section
    if isinstance(data, Mapping):
        return dict(data)
    if isinstance(data, str | Path):
        file = Path(data)
        check_file(file)
        suffix, content = "".join(file.suffixes), file.read_bytes()
    else:
        rows = _frame(role, data).to_json(orient="records", lines=True, force_ascii=False)
        suffix, content = ".jsonl", rows.encode()
    name = f"{role}-{hashlib.sha256(content).hexdigest()[:16]}{suffix}"
    (folder / name).write_bytes(content)
    return name


def _frame(role: str, data: "Iterable[Any] | Frame") -> "pd.DataFrame":
    """Return data as a frame whose columns have names."""
    import pandas as pd

    if isinstance(data, pd.DataFrame):
        return data
    frame = pd.DataFrame({TEXT[0]: data}) if isinstance(data, pd.Series) else pd.DataFrame(list(data))
    names = {len(each): each for each in (TEXT, PAIR)}.get(frame.shape[1])
    if names is None:
        raise UserError(
            f"{role}: rows of {frame.shape[1]} values; give texts, triples of two texts and a score, or a"
            " data frame with named columns"
        )
    return frame if frame.columns.dtype == object else frame.set_axis(names, axis="columns")


def base_named(base: str | Path | Mapping[str, Any]) -> Any:  # noqa: ANN401 - as the file's `base`
    """Return a base for a short file; a folder's path is relative to the working folder."""
    if isinstance(base, Mapping):
        return dict(base)
    return str(Path(base).resolve()) if Path(base).exists() else str(base)
