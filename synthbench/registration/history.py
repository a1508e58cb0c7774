"""Which scores and registrations existed on an experiment's test items before its registration."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from synthbench.registration.changes import changes
from synthbench.registration.item_sets import ItemSets
from synthbench.registration.record import Earlier, History, Identity, Registration, SeenItems, digest
from synthbench.registration.stored_registrations import KnownRegistrations

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from synthbench.engine.store import Store

    Mask = NDArray[np.bool_]

EVALUATE = "evaluate"
SEED = " seed "
MOST_DIGITS_OF_A_SEED = 20
MOST_NAMED = 20
"""Runs without a score that a registration names; the rest are counted."""


@dataclass(frozen=True)
class StoredScore:
    """An evaluation in the store.

    `run`: its row and seed as text. `task`: the stage that read its test items.
    """

    identity: Identity
    run: str
    task: Identity


def stored_scores(store: "Store") -> Iterator[StoredScore]:
    """Yield all evaluations in a store, whoever made them; damaged records are left out."""
    with store.listed():
        for identity in store.find():
            record = store.info(identity) or {}
            spec = record.get("spec") or {}
            task = spec.get("inputs", {}).get("task")
            if spec.get("kind") == EVALUATE and task is not None:
                label = str(record.get("label") or identity[:8]).removeprefix(f"{EVALUATE} ")
                yield StoredScore(identity, label.rpartition(" on ")[0] or label, task)


def _is_seed(text: str) -> bool:
    """Return whether a text is a seed; longer numbers are refused, since Python can't read very long ones."""
    return text.isdecimal() and len(text) <= MOST_DIGITS_OF_A_SEED


@dataclass(frozen=True)
class ItemHistory:
    """Finds the scores and registrations in a store that share test items with a new registration."""

    new: Registration
    known: KnownRegistrations
    scores: Sequence[StoredScore]
    sets: ItemSets
    _masks: "dict[tuple[Identity, Identity], Mask]" = field(default_factory=dict)

    def history(self, dev: Iterable[Identity]) -> History:
        """Return the history of the test items; `dev`: hashes of the dev sets that choose checkpoints."""
        on_ours = self._on(test.items for test in self.new.tests)
        ours = {score.identity for score in on_ours}
        earlier = [
            each for name, record in self.known.records.items() if (each := self._earlier(name, record, ours))
        ]
        declared = {
            identity
            for each in earlier
            for run in self.known.records[each.hash].runs
            for identity in run.scores.values()
        }
        others = [score.run for score in on_ours if score.identity not in declared]
        seeds = {seed for each in earlier if each.was_scored for seed in self.known.records[each.hash].seeds}
        own = {int(seed) for run in others if _is_seed(seed := run.rpartition(SEED)[2])}
        return History(
            earlier=tuple(earlier),
            unregistered=tuple(sorted({run.rpartition(SEED)[0] or run for run in others})),
            num_unregistered=len(others),
            num_unregistered_seeds=len(own),
            seen=tuple(self._seen(on_ours, earlier)),
            num_dev_scores=sum(score.identity not in ours for score in self._on(dev)),
            num_unknown=sum(self.sets.of(score.task) is None for score in self.scores),
            num_unreadable=self.known.num_unreadable + self._num_without_items,
            changed=self._changed(earlier),
            has_fresh_seeds=(seeds | own).isdisjoint(self.new.seeds),
        )

    def _on(self, items: Iterable[Identity]) -> list[StoredScore]:
        """Return the stored scores on any item of the sets with these hashes."""
        names = set(items)
        is_on: dict[Identity | None, bool] = {None: False}
        found = []
        for score in self.scores:
            name = self.sets.of(score.task)
            if name is not None and name not in is_on:
                is_on[name] = any(self._shared(mine, name).any() for mine in names)
            if is_on[name]:
                found.append(score)
        return found

    def _shared(self, mine: Identity, other: Identity) -> "Mask":
        """Return a mask of the items of set `mine` that set `other` has, too; shape (items of `mine`,)."""
        import numpy as np

        if (mine, other) not in self._masks:
            none = np.zeros(0, np.uint64)
            own, theirs = (none if keys is None else keys for keys in map(self.sets.keys, (mine, other)))
            self._masks[mine, other] = np.isin(own, theirs)
        return self._masks[mine, other]

    @property
    def _num_without_items(self) -> int:
        """The number of registrations whose items are damaged or gone, so that overlaps are unknown."""
        records = self.known.records.values()
        return sum(any(self.sets.keys(test.items) is None for test in each.tests) for each in records)

    def _seen(self, scores: Sequence[StoredScore], earlier: Sequence[Earlier]) -> Iterator[SeenItems]:
        """Yield how many items of each test set had been scored, by stored scores or registered runs."""
        import numpy as np

        tasks = [self.sets.of(score.task) for score in scores]
        gone = {name for each in earlier for name in self._scored_sets(each)}
        for test in {test.items: test for test in self.new.tests}.values():
            shared = {name: self._shared(test.items, name) for name in {*tasks, *gone} if name is not None}
            seen = np.logical_or.reduce([np.zeros(test.num_items, np.bool_), *shared.values()])
            number = sum(name is not None and bool(shared[name].any()) for name in tasks)
            yield SeenItems(
                test=test.name, num_items=test.num_items, num_seen=int(seen.sum()), num_scores=number
            )

    def _scored_sets(self, earlier: Earlier) -> Iterator[Identity]:
        """Yield the hashes of the item sets of `earlier` that its runs or earlier evaluations scored."""
        record = self.known.records[earlier.hash]
        before = {each.test for each in record.history.seen if each.num_seen}
        yield from (test.items for test in record.tests if earlier.was_scored or test.name in before)

    def _earlier(self, name: Identity, record: Registration, on_ours: set[Identity]) -> Earlier | None:
        """Return what to record of an earlier registration; None if it shares no test items.

        `on_ours`: identities of the stored scores on the new registration's items.
        """
        import numpy as np

        num_items = 0
        for mine in {test.items for test in self.new.tests}:
            shared = [self._shared(mine, theirs) for theirs in {test.items for test in record.tests}]
            num_items += int(np.logical_or.reduce(shared).sum()) if shared else 0
        if not num_items:
            return None
        stored = {identity for run in record.runs for identity in run.scores.values()} & on_ours
        was_scored = bool(stored) or name in self.known.scored
        incomplete = (run for run in record.runs if not self._stored.issuperset(run.scores.values()))
        missing = [f"{run.row}{SEED}{run.seed}" for run in incomplete] if was_scored else []
        return Earlier(
            hash=name,
            time=record.time,
            experiment=record.experiment,
            overrides=record.overrides,
            num_seeds=len(record.seeds),
            num_comparisons=record.num_comparisons,
            num_items=num_items,
            num_scores=len(stored),
            was_scored=was_scored,
            num_missing=len(missing),
            missing=tuple(missing[:MOST_NAMED]),
            changed=record.history.changed if record.history.is_seen else (),
            is_pilot=record.experiment == self.new.experiment or not self._own_rows.isdisjoint(_rows(record)),
        )

    @cached_property
    def _stored(self) -> set[Identity]:
        return {score.identity for score in self.scores}

    @cached_property
    def _own_rows(self) -> set[str]:
        return _rows(self.new)

    def _changed(self, earlier: Sequence[Earlier]) -> tuple[str, ...]:
        """Return what changed since the most similar of the pilots declared before any score on their items.

        Without such a pilot, return what changed since the first pilot; without any pilot, ().
        """
        pilots = [self.known.records[each.hash] for each in earlier if each.is_pilot]
        unseen = [record for record in pilots if not record.history.is_seen]
        found = [changes(record, self.new) for record in unseen or pilots[:1]]
        return min(reversed(found), key=len, default=())


def _rows(record: Registration) -> set[str]:
    """Return a hash of the settings and sources of each row that has data.

    Rows without data, such as untrained models, are left out: many experiments share such rows
    without being each other's pilots.
    """
    rows = (
        row for row in record.rows_by_label.values() if any(path.startswith("data.") for path in row.settings)
    )
    return {digest([row.settings, row.reads]) for row in rows}
