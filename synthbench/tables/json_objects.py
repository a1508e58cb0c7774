"""Parse JSON lines strictly: one object per line, without duplicate keys."""

import json
from typing import Any


class _Object(dict[str, Any]):
    doubled: str | None = None


def _made(pairs: list[tuple[str, Any]]) -> _Object:
    made = _Object(pairs)
    if len(made) < len(pairs):
        keys = [key for key, _ in pairs]
        made.doubled = next(key for key in keys if keys.count(key) > 1)
    return made


def json_object(line: str) -> dict[str, Any]:
    """Return the object of a line; raises ValueError saying what is wrong, such as a duplicate key.

    Accepts NaN and Infinity, and duplicate keys in nested objects.
    """
    try:
        found = json.loads(line.strip(" \t\r\n"), object_pairs_hook=_made)
    except json.JSONDecodeError as error:
        raise ValueError(f"not JSON: {error.msg} at column {error.colno}") from None
    except (ValueError, RecursionError) as error:
        raise ValueError(f"not JSON that can be read: {error}") from None
    if not isinstance(found, _Object):
        raise ValueError("not a JSON object with named fields")
    if found.doubled is not None:
        raise ValueError(f"the key '{found.doubled}' is there twice")
    return dict(found)
