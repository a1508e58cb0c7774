"""The content keys (hashes) of test items in a store, found by the stage that read the items."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from synthbench.base.errors import UserError
from synthbench.data.dataset import SyntheticDataset
from synthbench.data.item_keys import item_keys
from synthbench.engine.artifacts import Artifacts
from synthbench.engine.records import ArtifactDamagedError
from synthbench.engine.result_cache import ResultCache
from synthbench.registration.record import Identity

if TYPE_CHECKING:
    from synthbench.engine.store import Store
    from synthbench.registration.stored_registrations import Keys, KnownRegistrations, Registrations

VERSION = 1
"""Raise it whenever the same items get other keys."""
JOIN = "join"


class ItemSets:
    """Finds which items a stage read: from the registrations, else from its artifact.

    So the items of a registered test set are known even if the stage's artifact is gone.
    """

    def __init__(
        self,
        store: "Store",
        registrations: "Registrations",
        known: "KnownRegistrations",
        say: Callable[[str], None],
    ) -> None:
        self._artifacts = Artifacts(store, say)
        self._cache = ResultCache(self._artifacts, VERSION)
        self._registrations = registrations
        self._known = known
        self._of: dict[Identity, Identity | None] = {}

    def of(self, stage: Identity) -> Identity | None:
        """Return the hash of the set of items that a stage read; None if the items are unknown."""
        if stage not in self._of:
            registered = self.registered(stage)
            self._of[stage] = self._read(stage) if registered is None else registered
        return self._of[stage]

    def registered(self, stage: Identity) -> Identity | None:
        """Return the hash of the set of items that a stage read, from a registration.

        None if no registration knows the stage, or if the stored items are damaged or gone.
        """
        test = self._known.stages.get(stage)
        return None if test is None or self.keys(test.items) is None else test.items

    def keys(self, name: Identity) -> "Keys | None":
        """Return the keys of the items in a set, given its hash; None if they are damaged or gone."""
        return self._registrations.items(name)

    def _read(self, stage: Identity) -> Identity | None:
        try:
            spec = self._artifacts.record(stage).get("spec") or {}
            if spec.get("kind") == JOIN:
                # The rest of its records are what the evaluator learns from.
                return self.of(spec["inputs"]["task"])
            if not self._artifacts.has_dataset(stage):
                return None
            found: Identity = self._cache.get(partial(self._add, stage), "items", stage, of=[stage])
            if self.keys(found) is None:
                found = self._add(stage)
            return found
        except (ArtifactDamagedError, UserError, KeyError) as fault:
            self._artifacts.say(f"the test items of {stage[:8]} are unknown: {fault}")
            return None

    def _add(self, stage: Identity) -> Identity:
        items = SyntheticDataset.read(self._artifacts.dataset(stage))
        return self._registrations.add_items(item_keys(items))
