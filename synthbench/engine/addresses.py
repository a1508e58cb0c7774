"""Stage identities by address in an experiment, each from the last run that had a stage at the address."""

import time
import uuid
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from synthbench.base.durability import DamagedFileError, read_sealed, seal, unseal, write_sealed
from synthbench.engine.objects import ListedObject
from synthbench.engine.patience import PatientObjects

FOLDER = "addresses"


class AddressFiles:
    """Stage identities by address (variant, axis values, seed, a name as "train"): a file per experiment.

    Addresses stay until `forget`, even if later runs lack them. Methods raise DamagedFileError if the file is
    damaged.
    """

    def __init__(self, root: Path) -> None:
        self._folder = root / FOLDER

    def of(self, experiment: str) -> dict[str, str]:
        """Return address -> stage identity for an experiment's last runs."""
        try:
            known = read_sealed(
                self.file(experiment),
                is_of_earlier_version=lambda known: all(isinstance(each, str) for each in known.values()),
            )
        except FileNotFoundError:
            return {}
        return _addresses(known.get("addresses", known))

    def remember(self, experiment: str, addresses: Mapping[str, str]) -> None:
        """Add a run's addresses to those of earlier runs; equal addresses get the new identity."""
        merged = {**self.of(experiment), **addresses}
        self._folder.mkdir(parents=True, exist_ok=True)
        write_sealed(self.file(experiment), {"addresses": merged})

    def forget(self, experiment: str) -> None:
        """Delete an experiment's addresses."""
        self.file(experiment).unlink(missing_ok=True)

    def experiments(self) -> list[str]:
        """Return the names of all experiments with addresses, sorted."""
        return sorted(file.stem for file in self._folder.glob("[!.]*.json"))

    def file(self, experiment: str) -> Path:
        """Return the file of an experiment's addresses."""
        return self._folder / f"{experiment}.json"


class AddressObjects:
    """`AddressFiles` for a shared store. Simultaneous runs write one entry each; the next run merges them."""

    def __init__(self, objects: PatientObjects) -> None:
        self._objects = objects

    def of(self, experiment: str) -> dict[str, str]:
        """Return address -> stage identity for an experiment's last runs."""
        found: dict[str, str] = {}
        for entry in self._entries(experiment):
            with suppress(FileNotFoundError):
                found |= _addresses(self._objects.checked(entry.key, unseal).get("addresses"))
        return found

    def remember(self, experiment: str, addresses: Mapping[str, str]) -> None:
        """Add a run's addresses to those of earlier runs; equal addresses get the new identity."""
        earlier = [entry.key for entry in self._entries(experiment)]
        merged = {**self.of(experiment), **addresses}
        key = f"{FOLDER}/{experiment}/{time.time_ns():020}-{uuid.uuid4().hex[:8]}.json"
        self._objects.write(key, seal({"addresses": merged}).encode())
        self._objects.delete(earlier)

    def forget(self, experiment: str) -> None:
        """Delete an experiment's addresses."""
        self._objects.delete([entry.key for entry in self._entries(experiment)])

    def experiments(self) -> list[str]:
        """Return the names of all experiments with addresses, sorted."""
        return sorted({entry.key.split("/")[1] for entry in self._entries()})

    def file(self, experiment: str) -> str:
        """Return the folder of an experiment's addresses, for messages."""
        return f"{self._objects}/{FOLDER}/{experiment}"

    def _entries(self, experiment: str = "") -> list[ListedObject]:
        """Return an experiment's entries, oldest first; for "", those of all experiments, by experiment."""
        prefix = f"{FOLDER}/{experiment}/" if experiment else f"{FOLDER}/"
        found = filter(_is_of_addresses, self._objects.list(prefix))
        return sorted(found, key=lambda entry: entry.key)


def _is_of_addresses(entry: ListedObject) -> bool:
    parts = entry.key.split("/")
    return len(parts) == 3 and parts[2].endswith(".json") and not parts[2].startswith(".")


def _addresses(found: object) -> dict[str, str]:
    """Validate and return the addresses recorded for an experiment; raises DamagedFileError."""
    if not isinstance(found, dict) or not all(isinstance(each, str) for each in found.values()):
        raise DamagedFileError("is unreadable")
    return found
