"""Write short experiment files, and data given in Python, into the home, where the commands read them."""

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Union

from synthbench.base.durability import write_atomically
from synthbench.base.errors import UserError, in_one_line
from synthbench.base.home import home
from synthbench.base.patterns import linear_pattern
from synthbench.base.user_files import check_file
from synthbench.config.problems import NAME_PATTERN
from synthbench.results.collect import to_yaml

if TYPE_CHECKING:
    import pandas as pd

    Frame = pd.DataFrame | pd.Series

Data = Union[str, Path, Iterable[Any], "Frame"]
"""Texts or records: a file, a data frame, a column of one, or a list."""
STUDIES = "studies"
_NAME = linear_pattern(NAME_PATTERN)
TEXT, PAIR = ("text",), ("sentence1", "sentence2", "score")


def study_file(
    name: str, keys: Mapping[str, Any], sources: Mapping[str, Data | None], code: Path | None = None
) -> Path:
    """Write a short experiment file and its data into the home; return the file's path.

    The folder `studies/NAME-HASH` is named by a hash of the content, so other studies change nothing in it.
    `keys`: the file's other keys. `sources`: role -> data, or a mapping, which is written as the source's
    section; None leaves the role out. `code`: a Python file to copy beside the experiment file. Data files
    are named by a hash of their content, so equal data share cached results. Raises UserError if the name,
    the data or the Python file are invalid.
    """
    if not _NAME.fullmatch(name):
        raise UserError(f'name: must be of letters, digits, _ and -, is "{name}"')
    files = {} if code is None else {code.name: _content(code)}
    given = {role: _source(role, data, files) for role, data in sources.items() if data is not None}
    files[f"{name}.yaml"] = to_yaml({"experiment": name, **keys, "sources": given}).encode()
    folder = home() / STUDIES / f"{name}-{_hash(*files.values())}"
    folder.mkdir(parents=True, exist_ok=True)
    for file, content in files.items():
        write_atomically(folder / file, content)
    return folder / f"{name}.yaml"


def _source(role: str, data: Data, files: dict[str, bytes]) -> Any:  # noqa: ANN401 - a file's name or a section
    """Return data as an experiment file's source; add the file that it names to `files`."""
    if isinstance(data, Mapping):
        return dict(data)
    if isinstance(data, str | Path):
        suffix, content = "".join(Path(data).suffixes), _content(Path(data))
    else:
        suffix, content = ".jsonl", _json_lines(role, data)
    name = f"{role}-{_hash(content)}{suffix}"
    files[name] = content
    return name


def _content(file: Path) -> bytes:
    check_file(file)
    return file.read_bytes()


def _hash(*contents: bytes) -> str:
    return hashlib.sha256(b"".join(contents)).hexdigest()[:16]


def _json_lines(role: str, data: "Iterable[Any] | Frame") -> bytes:
    try:
        return _frame(role, data).to_json(orient="records", lines=True, force_ascii=False).encode()
    except ValueError as error:  # equal names of columns, characters that UTF-8 does not have
        raise UserError(f"{role}: {in_one_line(error)}") from error


def _frame(role: str, data: "Iterable[Any] | Frame") -> "pd.DataFrame":
    """Return data as a data frame whose columns have names, such as "text"."""
    import pandas as pd

    if isinstance(data, pd.DataFrame):
        return data
    frame = pd.DataFrame(list(data))
    if not isinstance(frame.columns, pd.RangeIndex):  # a list of mappings or records
        return frame
    names = {len(each): each for each in (TEXT, PAIR)}.get(frame.shape[1])
    if names is None:
        raise UserError(
            f"{role}: rows of {frame.shape[1]} values; give texts, triples of two texts and a score, or a"
            " data frame with named columns"
        )
    return frame.set_axis(names, axis="columns")


def base_named(base: str | Path | Mapping[str, Any]) -> Any:  # noqa: ANN401 - as the file's `base`
    """Return a base model as a short file's `base` names it; an existing path is made absolute."""
    if isinstance(base, Mapping):
        return {**base, "model": base_named(base["model"])} if "model" in base else dict(base)
    return str(Path(base).resolve()) if Path(base).exists() else str(base)
