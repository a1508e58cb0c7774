"""Loaded models that a process keeps across stages, for shards of one stage that use the same models."""

from collections.abc import Callable
from typing import TypeVar, cast

M = TypeVar("M")
_kept: dict[str, object] = {}
_purpose = [""]


def keep_models(purpose: str) -> None:
    """Keep models loaded from now on, until called with another purpose; "": keep none."""
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
