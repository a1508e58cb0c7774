"""Clean a store: list its content, remove unused artifacts, find damaged ones.

A run touches the `stage.json` of each artifact that it needs, so that file's modification time is the
artifact's last use. In a shared store, runs write notes instead.

Each address of an experiment (row, seed and role) holds a stage identity, set by the last run that had this
address. The artifacts at all addresses, and their inputs, count as used by the experiment.
"""

import time
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from synthbench.base.durability import DamagedFileError
from synthbench.base.errors import UserError, did_you_mean
from synthbench.base.runtime import Progress
from synthbench.engine import run_notes
from synthbench.engine.holdings import Holding, StoreEntry
from synthbench.engine.records import ArtifactDamagedError, is_identity
from synthbench.engine.result_cache import remove_orphans
from synthbench.engine.slurm_queue import remove_queues
from synthbench.engine.store import Store

SECONDS_PER_DAY = 24 * 60 * 60


@dataclass(frozen=True)
class Inventory:
    """A store's content, and the stage identities that each experiment uses."""

    holdings: tuple[Holding, ...]
    used: Mapping[str, frozenset[str]]

    def of(self, experiment: str) -> list[Holding]:
        """Return the artifacts and leftovers that an experiment uses."""
        return [each for each in self.holdings if each.identity in self.used[experiment]]

    def only_of(self, experiments: Collection[str]) -> list[Holding]:
        """Return the artifacts and leftovers that only these experiments use."""
        own = self._used_by(experiments) - self._used_by(self.used.keys() - set(experiments))
        return [each for each in self.holdings if each.identity in own]

    def unused(self) -> list[Holding]:
        """Return the artifacts and leftovers that no experiment uses."""
        used = self._used_by(self.used)
        return [each for each in self.holdings if each.identity not in used]

    def removable(self, days: float, experiments: Collection[str] = ()) -> list[Holding]:
        """Return `unused` holdings last used at least `days` days ago, and `only_of(experiments)` of any age.

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
    """List a store's content; raises UserError if an experiment's addresses are damaged."""
    with store.listed():
        artifacts = [_holding(store, entry) for entry in store.contents.measured()]
        rest = (*store.contents.lost(), *store.unfinished_work(), *store.rubbish.holdings())
    inputs = {each.identity: each.inputs for each in artifacts if each.inputs}
    names = store.addresses.experiments()
    used = {name: _with_inputs(_addresses(store, name), inputs) for name in names}
    return Inventory((*artifacts, *rest), used)


def _holding(store: Store, entry: StoreEntry) -> Holding:
    """Return an artifact with kind and inputs from its record; kind "damaged" if the record lacks them."""
    identity, spec = entry.identity, (store.info(entry.identity) or {}).get("spec") or {}
    inputs = tuple(spec.get("inputs", {}).values())
    kind = str(spec.get("kind", "damaged"))
    return Holding(identity, store.folder(identity), kind, entry.size, entry.last_used, inputs)


def _addresses(store: Store, experiment: str) -> Iterable[str]:
    """Return the identities at an experiment's addresses; raises UserError if the addresses are damaged."""
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
    """Remove and return `Inventory.removable`; also finish interrupted removals.

    Also removes the addresses and run notes of `experiments`, cached figures of removed data, and killed
    runs' Slurm queues. Folders are renamed before they are deleted, so a kill leaves no partial artifact.
    Raises UserError, and removes nothing, while a run or another clean-up is active.
    """
    with store.locks.exclusive():
        removable = take_inventory(store).removable(days, experiments)
        for holding in removable:
            _remove(store, holding)
        for name in experiments:
            store.addresses.forget(name)
        if experiments:
            run_notes.forget(store, experiments)
        remove_orphans(store)
        store.contents.remove_lost()
        if store.shared is not None:
            remove_queues(store.shared.objects)
        store.unfinished.remove_empty()
        store.rubbish.empty()
    return removable


def _remove(store: Store, holding: Holding) -> None:
    """Remove an artifact or unfinished work; `clean` removes all other leftovers itself."""
    if holding.folder == store.unfinished.folder(holding.identity):
        store.rubbish.discard(holding.folder)
        store.forget_work(holding.identity)
    elif is_identity(holding.identity):
        store.discard(holding.identity)


@dataclass(frozen=True)
class Damage:
    """A damaged artifact: its identity, its stage's label, the file and the kind of damage."""

    identity: str
    label: str
    what: str


def discard_damaged(store: Store, progress: Progress) -> tuple[int, list[Damage]]:
    """Hash every artifact and discard the damaged ones; return the number of artifacts, and the damage.

    If it finds damage while a run or clean-up is active, it raises UserError and discards nothing.
    """
    identities = store.find()
    found: list[Damage] = []
    with progress.task("reading artifacts", len(identities)) as task:
        for identity in identities:
            found += _damage(store, identity)
            task.advance()
    if found:
        with store.locks.exclusive():
            # Another process may have recomputed the artifact.
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
