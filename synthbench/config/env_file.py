"""Keys and OPENAI_BASE_URL from a file `.env` beside the experiment file.

No other variable is read and none is expanded, since someone else may have written the file. `key_hosts.py`
decides which hosts may get a key, wherever the key comes from. The environment overrides the file.
"""

import os
from collections.abc import Iterable, Mapping
from io import StringIO
from pathlib import Path

from synthbench.base.errors import UserError

FILE = ".env"
_MOST_BYTES = 2**16
_taken: dict[str, str] = {}
"""Variable -> key, for the keys that this process took from `.env` files."""


def env_file(folder: Path) -> Mapping[str, str]:
    """Return the variables of the folder's `.env`, {} without one.

    Raises UserError if the file can't be read.
    """
    from dotenv import dotenv_values

    file = folder / FILE
    if not file.is_file():  # a virtual environment may be called so, too
        return {}
    try:
        with file.open("rb") as opened:
            content = opened.read(_MOST_BYTES + 1)
        if len(content) > _MOST_BYTES:
            raise UserError(f"{file}: has more than {_MOST_BYTES:,} bytes; keep only keys in it")
        if b"\0" in content:  # no environment variable holds one
            raise ValueError
        values = dotenv_values(stream=StringIO(content.decode()), interpolate=False)
    except OSError as error:
        raise UserError(f"{file}: can't be read: {error.strerror or error}") from error
    except ValueError:
        raise UserError(f"{file}: is not UTF-8 text; write lines such as OPENAI_API_KEY=...") from None
    return {name: value.strip() for name, value in values.items() if value and value.strip()}


def take_keys(folder: Path, variables: Iterable[str]) -> None:
    """Put keys of the folder's `.env` into the environment, where workers and secret masking find them.

    Keeps a key that the environment already has, unless it came from an earlier experiment's `.env`.
    """
    found = env_file(folder)
    for name in variables:
        present = os.environ.get(name, "").strip()
        if name in found and (not present or _taken.get(name) == present):
            os.environ[name] = _taken[name] = found[name]


def is_from_file(variable: str) -> bool:
    """Return whether an environment variable's key came from a `.env` file."""
    return variable in _taken and os.environ.get(variable) == _taken[variable]
