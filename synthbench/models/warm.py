"""Models that a process keeps from one stage to the next, where shards of one stage use the same ones."""

from collections.abc import Callable
from typing import TypeVar, cast

M = TypeVar("M")
_kept: dict[str, object] = {}
_purpose = [""]


def keep_models(purpose: str) -> None:
    """Keep the models that are loaded from now on, until another purpose begins; "": keep none."""
    if purpose != _purpose[0] or not purpose:
        _kept.clear()
    _purpose[0] = purpose


def loaded(key: str, load: Callable[[], M]) -> M:
    """Return the model that is kept under this key, else load it. It must not be changed."""
    if not _purpose[0]:
        return load()
    if key not in _kept:
        _kept[key] = load()
    return cast("M", _kept[key])
