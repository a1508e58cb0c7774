"""A process's cache of loaded models, so that shards of one stage do not load the same models again."""

from collections.abc import Callable
from typing import TypeVar, cast

M = TypeVar("M")
_kept: dict[str, object] = {}
_purpose = [""]


def keep_models(purpose: str) -> None:
    """Keep the models that `loaded` loads, until a call with another purpose; "" keeps none."""
    if purpose != _purpose[0] or not purpose:
        _kept.clear()
    _purpose[0] = purpose


def loaded(key: str, load: Callable[[], M]) -> M:
    """Return the model under this key, loading it if needed. Callers must not change it."""
    if not _purpose[0]:
        return load()
    if key not in _kept:
        _kept[key] = load()
    return cast("M", _kept[key])
