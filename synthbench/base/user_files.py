"""Files and folders named by users: resolves relative names, and checks that files are readable."""

import importlib.util
import json
import os
import stat
from pathlib import Path
from typing import Annotated, Any

from pydantic import ValidationInfo, ValidatorFunctionWrapHandler, WrapValidator

from synthbench.base.errors import UserError
from synthbench.base.patterns import linear_pattern

STARTS_FROM = "starts_from"
"""Key of pydantic's validation context: the folder from which relative file names start."""
MOST_BYTES_OF_SETTINGS = 1_000_000
MOST_BYTES_OF_JSON = 50_000_000
"""Size limit of a JSON file, large because a tokenizer's settings may list its whole vocabulary."""
PACKAGE_PREFIX = "package:"
_MODULE = linear_pattern(r"^\w+\Z")
NO_FILE = "no such file"
IS_FOLDER = "is a folder, not a file"


class RootedName(str):
    """A file name as written, with the folder that it is relative to.

    Identities hold the name as written and the file's content, never the folder.
    """

    starts_from: Path

    def __new__(cls, name: str, starts_from: Path = Path()) -> "RootedName":
        """Create a name that is relative to a folder."""
        rooted = super().__new__(cls, name)
        rooted.starts_from = starts_from
        return rooted


def _rooted(given: object, as_text: ValidatorFunctionWrapHandler, info: ValidationInfo) -> str:
    name: str = as_text(given)
    folder = getattr(given, "starts_from", None) or (info.context or {}).get(STARTS_FROM)
    return name if folder is None else RootedName(name, folder)


GivenName = Annotated[str, WrapValidator(_rooted)]
"""Type of a field that may name a file or folder; in an experiment file, relative to that file."""


def path_of(name: str) -> Path:
    """Return the path of a file name.

    A relative `RootedName` starts from its folder, any other relative name from the working folder. A name
    that begins with ~ starts from the user's home folder.
    """
    return getattr(name, "starts_from", Path()) / os.path.expanduser(name)  # noqa: PTH111 - Path's own raises


def in_package(name: str) -> list[Path]:
    """Return the candidate paths of "package:module/path", one for each folder of the installed package.

    The package is not imported. The list is empty if no such package is installed.
    """
    module, _, inside = name.removeprefix(PACKAGE_PREFIX).partition("/")
    found = importlib.util.find_spec(module) if _MODULE.match(module) else None
    locations = None if found is None else found.submodule_search_locations
    return [Path(location) / inside for location in locations or ()]


def why_no_file(path: Path) -> str:
    """Return why a path is no readable file (NO_FILE, IS_FOLDER ...), or "" for a file."""
    try:
        mode = path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return NO_FILE
    except OSError as error:
        return f"can't be read: {error.strerror}"
    if stat.S_ISDIR(mode):
        return IS_FOLDER
    return "" if stat.S_ISREG(mode) else "is a pipe or a device, not a file"


def why_no_folder(path: Path) -> str:
    """Return why a path is no folder that can be read, or "" for a folder."""
    wrong = why_no_file(path)
    if wrong == IS_FOLDER:
        return "" if os.access(path, os.R_OK | os.X_OK) else "can't be read: Permission denied"
    return "no such folder" if wrong == NO_FILE else wrong or "is no folder"


def check_file(path: Path) -> None:
    """Raise UserError unless the path is a file that fits into this machine's memory."""
    wrong = why_no_file(path)
    if not wrong and (size := path.stat().st_size) > _memory():
        wrong = f"has {size / 1e9:,.0f} GB, more than this machine's memory"
    if wrong:
        raise UserError(f"{path}: {wrong}")


def read_settings(path: Path, most_bytes: int = MOST_BYTES_OF_SETTINGS) -> str:
    """Return the text of a settings file: an experiment, a profile, prompts.

    Raises UserError if the path is no readable file, or the file is larger than `most_bytes` or not UTF-8.
    """
    check_file(path)
    try:
        with path.open("rb") as stream:
            content = stream.read(most_bytes + 1)
    except OSError as error:
        raise UserError(f"{path}: can't be read: {error.strerror}") from None
    if len(content) > most_bytes:
        raise UserError(f"{path}: is larger than {most_bytes // 1_000:,} kB; settings are not")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise UserError(f"{path}:{line}: not UTF-8 (byte 0x{content[error.start]:02X})") from None


def read_json_object(path: Path) -> dict[str, Any]:
    """Return the JSON object in a settings file; raises UserError if it can't be read or is no object."""
    try:
        found = json.loads(read_settings(path, MOST_BYTES_OF_JSON))
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise UserError(f"{path}: is not a JSON object")
    return found


def _memory() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
