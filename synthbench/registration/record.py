"""The record of a registration, as stored, and the part of it that results carry."""

import hashlib
import json
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

Identity = str
_Hash = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
"""A SHA-256 hash, validated on reading: another machine may have written it, and it becomes a file name."""
Texts = tuple[str, ...]


class _Sealed(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, ser_json_inf_nan="strings")


class DeclaredSet(_Sealed):
    """A test set: the hash of its items, and how they are scored."""

    name: str
    evaluator: str
    scoring: str = Field(description="hash of the evaluator's version, settings and prompts")
    stage: _Hash = Field(description="identity of the stage that read the items")
    items: _Hash = Field(description="hash of all items' keys, and name of the file with these keys")
    num_items: int


class DeclaredRow(_Sealed):
    """A row: its settings, without those that all rows have in common, its code, and what it reads."""

    label: str
    settings: dict[str, Any] = Field(description="dotted path of a setting -> its value")
    code: dict[str, str] = Field(description="component -> version; plug-in's package -> hash of its code")
    reads: dict[str, str] = Field(
        description="source -> hash of its settings and content; model or file -> hash of its content"
    )


class DeclaredRun(_Sealed):
    """A row with one seed: the identities of its model, and of its evaluation on each test set."""

    row: str
    seed: int
    model: _Hash
    scores: dict[str, _Hash]


class Earlier(_Sealed):
    """An earlier registration that shares test items with a new one.

    `num_scores`: how many of its scores on shared items were in the store. `num_missing`: how many of its
    runs lack scores in the store, because runs failed or were cut off, or scores were removed; 0 unless
    `was_scored`. `missing` names the first of these runs. `was_scored`: whether any of its runs made scores.
    `is_pilot`: whether the two registrations have the same experiment name, or a row in common.
    """

    hash: Identity
    time: str
    experiment: str
    overrides: Texts = ()
    num_seeds: int
    num_comparisons: int
    num_items: int = Field(description="number of shared test items")
    num_scores: int = 0
    was_scored: bool = False
    num_missing: int = 0
    missing: Texts = ()
    is_pilot: bool = False
    changed: Texts = Field(
        (),
        description="what it changed from its own pilot, if any of its test items had been scored before",
    )

    @property
    def title(self) -> str:
        """The experiment's name with the overrides."""
        return " ".join((self.experiment, *self.overrides))


class SeenItems(_Sealed):
    """How many items of a test set had been scored before the registration, and by how many evaluations."""

    test: str
    num_items: int
    num_seen: int
    num_scores: int


class History(_Sealed):
    """The scores and registrations that existed on the test items before a registration.

    `unregistered`: rows whose scores belong to no registration. `num_unknown`: how many scores are on unknown
    items. `changed`: what differs from the most similar pilot declared before any score, or else from the
    first pilot.
    """

    earlier: tuple[Earlier, ...] = ()
    unregistered: Texts = ()
    num_unregistered: int = 0
    num_unregistered_seeds: int = 0
    seen: tuple[SeenItems, ...] = ()
    num_dev_scores: int = 0
    num_unknown: int = 0
    num_unreadable: int = 0
    changed: Texts = ()
    has_fresh_seeds: bool = False

    @property
    def is_seen(self) -> bool:
        """Whether any of the test items had been scored."""
        return any(each.num_seen for each in self.seen)


class Registration(_Sealed):
    """What was declared, when, and which scores existed by then. Immutable; its hash is its file's hash."""

    layout: Literal[1] = 1
    time: str = Field(description="UTC, by the clock of the machine that registered")
    synthbench: str = Field(description="synthbench's version")
    experiment: str
    overrides: Texts
    settings: dict[str, Any] = Field(description="settings that all rows have in common")
    rows: tuple[DeclaredRow, ...]
    seeds: tuple[int, ...] = Field(description="the stopping rule: these seeds, and no others")
    varied: Texts = Field(description="random choices that vary with the seed")
    tests: tuple[DeclaredSet, ...]
    runs: tuple[DeclaredRun, ...]
    claims: dict[str, Any] = Field(description="baseline, and the table's options that decide claims")
    compared: tuple[tuple[str, str], ...] = Field(
        description="(row, its baseline); with `best`, any two rows"
    )
    num_comparisons: int = Field(description="compared pairs of rows times primary columns")
    rule: str = Field("", description="how comparisons are decided: over which noise, in which family")
    file: dict[str, Any] = Field(description="the resolved experiment file, without secrets")
    before: Identity = Field("", description="hash of the latest earlier registration on any of these items")
    history: History = History()

    @property
    def declared(self) -> str:
        """A hash of what was declared: rows by their models, seeds, items, scoring, claims.

        The experiment's name and the time do not count.
        """
        tests = sorted((each.name, each.scoring, each.items) for each in self.tests)
        runs = sorted((each.row, each.seed, each.model, sorted(each.scores)) for each in self.runs)
        return digest([tests, runs, sorted(self.seeds), sorted(self.varied), self.claims])

    @property
    def rows_by_label(self) -> Mapping[str, DeclaredRow]:
        """Label -> the row with all its settings, those common to all rows included."""
        return {
            row.label: row.model_copy(update={"settings": {**self.settings, **row.settings}})
            for row in self.rows
        }

    def models(self, row: str) -> dict[int, Identity]:
        """Return seed -> identity of a row's model."""
        return {run.seed: run.model for run in self.runs if run.row == row}


class Registered(_Sealed):
    """A result's registration: its hash, when it was written, and which scores existed by then."""

    hash: Identity
    time: str
    experiment: str
    num_comparisons: int
    history: History = History()


def digest(value: object) -> str:
    """Return the SHA-256 of a value's JSON."""
    return hashlib.sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()
