"""Fields of a model's card: the front matter of README.md in its folder, or in the hub's local cache."""

from collections.abc import Mapping
from typing import Any

from synthbench.base.errors import UserError
from synthbench.base.yaml_loading import load_yaml
from synthbench.hub.repositories import HubRepository
from synthbench.models import reference
from synthbench.models.checkpoint_files import CARD

_FRONT_MATTER = "---\n"
_MOST_BYTES = 1_000_000


def card_of(model: str) -> Mapping[str, Any]:
    """Return the fields of the card's front matter, {} without a readable card; works offline.

    For a hub model, reads the card of the branch main in the local cache, or that of another commit if main
    is not cached.
    """
    folder = reference.described(model)
    if folder is None:
        cached = HubRepository("model", model).cache.glob(f"snapshots/*/{CARD}")
        file = max(cached, default=None)
    else:
        file = folder / CARD
    if file is None:
        return {}
    try:
        with file.open(encoding="utf-8", errors="replace") as card:
            text = card.read(_MOST_BYTES)
        head, end, _ = text.removeprefix(_FRONT_MATTER).partition(f"\n{_FRONT_MATTER}")
        facts = load_yaml(head, CARD) if text.startswith(_FRONT_MATTER) and end else None
    except (OSError, UserError):
        return {}
    return facts if isinstance(facts, dict) else {}


def texts_in(value: object) -> list[str]:
    """Return the texts in a card's value, which is a text or a list; other values give []."""
    return [each for each in (value if isinstance(value, list) else [value]) if isinstance(each, str)]


def languages_of(model: str) -> tuple[str, ...]:
    """Return the codes of a model's languages; () if its card lists none, or lists "multilingual"."""
    codes = texts_in(card_of(model).get("language"))
    return () if "multilingual" in codes else tuple(codes)
