"""Cleaning a store: what it holds, what no experiment uses, removing that, and finding damage.

A run touches the `stage.json` of each artifact that it needs, so its modification time is the last use. The
store's addresses say what an experiment's last run used.
"""

import time
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from synthbench.base.durability import DamagedFileError
from synthbench.base.errors import UserError, did_you_mean
from synthbench.base.runtime import Progress
from synthbench.engine.holdings import Holding, StoreEntry
from synthbench.engine.records import ArtifactDamagedError, is_identity
from synthbench.engine.result_cache import remove_orphans
from synthbench.engine.store import Store

SECONDS_PER_DAY = 24 * 60 * 60


@dataclass(frozen=True)
class Inventory:
    """All that a store holds, and the identities behind each experiment's last run."""

    holdings: tuple[Holding, ...]
    used: Mapping[str, frozenset[str]]

    def of(self, experiment: str) -> list[Holding]:
        """Return what an experiment's last run used."""
        return [each for each in self.holdings if each.identity in self.used[experiment]]

    def only_of(self, experiments: Collection[str]) -> list[Holding]:
        """Return what only these experiments' last runs used."""
        own = self._used_by(experiments) - self._used_by(self.used.keys() - set(experiments))
        return [each for each in self.holdings if each.identity in own]

    def unused(self) -> list[Holding]:
        """Return what no experiment's last run used."""
        used = self._used_by(self.used)
        return [each for each in self.holdings if each.identity not in used]

    def removable(self, days: float, experiments: Collection[str] = ()) -> list[Holding]:
        """Return what has been unused for so many days, and all that only these experiments used.

        Raises UserError if an experiment is unknown.
        """
        unknown = [name for name in experiments if name not in self.used]
        if unknown:
            where = "the store knows no such experiment"
            raise UserError(*(f"{name}: {where}{did_you_mean(name, self.used)}" for name in unknown))
        limit = time.time() - days * SECONDS_PER_DAY
        return [*(each for each in self.unused() if each.last_used <= limit), *self.only_of(experiments)]

    def _used_by(self, experiments: Iterable[str]) -> frozenset[str]:
        return frozenset().union(*(self.used[name] for name in experiments))


def take_inventory(store: Store) -> Inventory:
    """List what a store holds; raises UserError if it is unknown what an experiment uses."""
    with store.listed():
        artifacts = [_holding(store, entry) for entry in store.contents.measured()]
        rest = (*store.contents.lost(), *store.unfinished.holdings(), *store.rubbish.holdings())
    inputs = {each.identity: each.inputs for each in artifacts if each.inputs}
    names = store.addresses.experiments()
    used = {name: _with_inputs(_addresses(store, name), inputs) for name in names}
    return Inventory((*artifacts, *rest), used)


def _holding(store: Store, entry: StoreEntry) -> Holding:
    """Return an artifact with what its record says, which may be damaged."""
    identity, spec = entry.identity, (store.info(entry.identity) or {}).get("spec") or {}
    inputs = tuple(spec.get("inputs", {}).values())
    kind = str(spec.get("kind", "damaged"))
    return Holding(identity, store.folder(identity), kind, entry.size, entry.last_used, inputs)


def _addresses(store: Store, experiment: str) -> Iterable[str]:
    """Return the identities that an experiment's last run used."""
    try:
        return store.addresses.of(experiment).values()
    except DamagedFileError as damage:
        raise UserError(
            f"{store.addresses.file(experiment)} {damage}, so it is unknown what {experiment} "
            "uses; run it again, or remove the file"
        ) from damage


def _with_inputs(identities: Iterable[str], inputs: Mapping[str, Iterable[str]]) -> frozenset[str]:
    reached: set[str] = set()
    waiting = list(identities)
    while waiting:
        identity = waiting.pop()
        if identity not in reached:
            reached.add(identity)
            waiting += inputs.get(identity, ())
    return frozenset(reached)


def clean(store: Store, days: float, experiments: Collection[str] = ()) -> list[Holding]:
    """Remove what `Inventory.removable` returns, and what killed removals left; return what was removed.

    Cached figures of removed data go, too. Folders are renamed before they are deleted, so a kill leaves no
    half artifact. Raises UserError, and removes nothing, if a run or another clean-up works in the store.
    """
    with store.locks.exclusive():
        removable = take_inventory(store).removable(days, experiments)
        for holding in removable:
            _remove(store, holding)
        for name in experiments:
            store.addresses.forget(name)
        remove_orphans(store)
        store.contents.remove_lost()
        store.unfinished.remove_empty()
        store.rubbish.empty()
    return removable


def _remove(store: Store, holding: Holding) -> None:
    """Remove an artifact or unfinished work; what is lost, and rubbish, goes with all of it."""
    if holding.folder == store.unfinished.folder(holding.identity):
        store.rubbish.discard(holding.folder)
    elif is_identity(holding.identity):
        store.discard(holding.identity)


@dataclass(frozen=True)
class Damage:
    """A damaged artifact: its identity, its stage's label, and which file is damaged how."""

    identity: str
    label: str
    what: str


def discard_damaged(store: Store, progress: Progress) -> tuple[int, list[Damage]]:
    """Hash every artifact and discard the damaged ones; return the number of artifacts, and the damage.

    Raises UserError, and discards nothing, if something is damaged while a run or a clean-up works there.
    """
    identities = store.find()
    found: list[Damage] = []
    with progress.task("reading artifacts", len(identities)) as task:
        for identity in identities:
            found += _damage(store, identity)
            task.advance()
    if found:
        with store.locks.exclusive():
            # A damaged artifact may have been computed again meanwhile.
            found = [again for damage in found for again in _damage(store, damage.identity)]
            for damage in found:
                store.discard(damage.identity)
    return len(identities), found


def _damage(store: Store, identity: str) -> list[Damage]:
    try:
        if store.has(identity):
            store.verify(identity)
    except ArtifactDamagedError as damage:
        label = str((store.info(identity) or {}).get("label", "stage unknown"))
        return [Damage(identity, label, str(damage))]
    return []
