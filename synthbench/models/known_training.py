"""The data sets that a base model was trained on, from this package's table and the model's card."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from synthbench.base.patterns import linear_pattern
from synthbench.base.user_files import PACKAGE_PREFIX
from synthbench.base.yaml_loading import load_yaml
from synthbench.models.cards import card_of, texts_in

TABLE = Path(__file__).with_name("known_training.yaml")
_WITHIN_A_WORD = linear_pattern(r"([a-z0-9])([A-Z])")


@dataclass(frozen=True)
class KnownTraining:
    """The titles of the known data sets among a model's training sets, and who states them.

    `data_sets` is () if the model was trained on plain text alone, or on data sets missing in the table.
    """

    data_sets: tuple[str, ...]
    stated_by: str


def training_of(model: str) -> KnownTraining | None:
    """Return the data sets that a model was trained on, from this package's table and the model's card.

    None if neither knows the model. Works offline: the card is read in the model's folder or the hub's cache.
    """
    of_table, of_card = _table_entry(model), _card_data_sets(model)
    if of_table is None:
        return None if of_card is None else KnownTraining(of_card, "its model card")
    both = dict.fromkeys((*of_table["data_sets"], *(of_card or ())))
    return KnownTraining(tuple(both), str(of_table["stated_by"]))


def data_sets_in(*names: str) -> tuple[str, ...]:
    """Return the titles of the known data sets that occur in these names of tasks, repositories or files.

    A data set in a renamed file is not found.
    """
    words = [_words(name) for name in names]
    return tuple(
        title
        for title, known in _table()["data_sets"].items()
        if any(_holds(each, "".join(phrase.split())) for each in words for phrase in known)
    )


@cache
def _table() -> Mapping[str, Any]:
    found: Mapping[str, Any] = load_yaml(TABLE.read_text(encoding="utf-8"), TABLE.name)
    return found


def _table_entry(model: str) -> Mapping[str, Any] | None:
    """Return the table's entry for a model, None without one; only the last part of its name is compared."""
    given = _last(model)
    return next((each for each in _table()["models"] if given in map(_last, each["names"])), None)


def _card_data_sets(model: str) -> tuple[str, ...] | None:
    """Return the known data sets in the card's list `datasets`; None without that list."""
    names = texts_in(card_of(model).get("datasets"))
    return data_sets_in(*names) if names else None


def _last(model: str) -> str:
    """Return a model's name in lower case without its folder or organisation; `package:...` in full."""
    name = model.lower().rstrip("/")
    return name if name.startswith(PACKAGE_PREFIX) else name.rpartition("/")[2]


def _words(name: str) -> list[str]:
    """Return a name's words in lower case: "QuoraRetrieval" and "quora-dev.tsv" both begin with "quora"."""
    apart = _WITHIN_A_WORD.sub(r"\1 \2", name).lower()
    return "".join(char if char.isalnum() else " " for char in apart).split()


def _holds(words: list[str], phrase: str) -> bool:
    """Return whether successive words make up the phrase, which is written without spaces."""
    for start in range(len(words)):
        joined = ""
        for word in words[start:]:
            joined += word
            if joined == phrase:
                return True
            if not phrase.startswith(joined):
                break
    return False
