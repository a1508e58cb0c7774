"""All that a store keeps, read whole and held against its checksums."""

from dataclasses import dataclass

from synthbench.pipeline.cleaning import alone
from synthbench.pipeline.store import ArtifactDamagedError, Store
from synthbench.runtime import Progress


@dataclass(frozen=True)
class Damage:
    """A damaged artifact: its identity, its stage as people know it, and which file is damaged how."""

    identity: str
    label: str
    what: str


def discard_damaged(store: Store, progress: Progress) -> tuple[int, list[Damage]]:
    """Read every artifact whole and discard the damaged ones; return how many there are and the damage.

    Raises UserError if something is damaged while a run or a clean-up works in the store; then nothing is
    discarded.
    """
    identities = sorted(folder.name for folder in (store.root / "artifacts").glob("*/*"))
    found: list[Damage] = []
    with progress.task("reading artifacts", len(identities)) as task:
        for identity in identities:
            found += _damage(store, identity)
            task.advance()
    if found:
        with alone(store):
            # What was damaged may have been computed again meanwhile.
            found = [again for damage in found for again in _damage(store, damage.identity)]
            for damage in found:
                store.discard(damage.identity)
    return len(identities), found


def _damage(store: Store, identity: str) -> list[Damage]:
    try:
        if store.has(identity):
            store.check(identity, thorough=True)
    except ArtifactDamagedError as damage:
        label = str((store.info(identity) or {}).get("label", "stage unknown"))
        return [Damage(identity, label, str(damage))]
    return []
