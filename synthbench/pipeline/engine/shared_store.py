"""A store that several machines share: a folder on a network file system, or an object store.

    artifacts/<2 digits>/<identity>/stage.json   the commit: written last, created once
    attempts/<identity>/<attempt>/...            the files of an artifact, below a prefix of their own
    leases/<name>/<epoch>                        who computes a stage, runs or cleans
    addresses/<experiment>/<entry>.json          what an experiment's last run used
    used/<run>.json                              what a run needed, as old as its start

No correctness rests on leases, which only keep two machines from the same work: the first commit counts.
"""

import json
import os
import shutil
import time
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from synthbench.durability import DamagedFileError, file_hash, read_sealed, seal, unseal, write_atomically
from synthbench.errors import UserError
from synthbench.pipeline.engine.holdings import DISCARDED, Holding, spec_holding
from synthbench.pipeline.engine.leases import Leases
from synthbench.pipeline.engine.local_locks import CLEANING, RUN, StageBusyError
from synthbench.pipeline.engine.objects import Entry, Objects, probe
from synthbench.pipeline.engine.store import STAGE_FILE, ArtifactDamagedError, Store, recorded_files

CONNECTIONS = 16
"""Requests at a time, where many objects are read or written."""
SECONDS_BETWEEN_LOOKS = 1.0
Given = TypeVar("Given")
Found = TypeVar("Found")


@dataclass
class _Listing:
    """The objects of all artifacts and attempts at one moment, and the records that were read since."""

    commits: dict[str, Entry] = field(default_factory=dict)
    files: dict[str, list[Entry]] = field(default_factory=lambda: defaultdict(list))
    records: dict[str, bytes] = field(default_factory=dict)


class SharedStore(Store):
    """Artifacts in shared objects. Its root is this machine's cache, and holds unfinished work, too."""

    def __init__(self, objects: Objects, root: Path, answers: Path, lease_seconds: float) -> None:
        super().__init__(root)
        self.objects = objects
        self._answers = answers
        self._lease_seconds = lease_seconds
        self._leases = Leases(objects, self._place(), lease_seconds)
        self._listing: _Listing | None = None
        self._replaced: dict[str, str] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        return SharedStore, (self.objects, self.root, self._answers, self._lease_seconds)

    def __str__(self) -> str:
        return str(self.objects)

    @property
    def answers(self) -> Path:
        """Folder of LLMs' answers, which stay on this machine."""
        return self._answers

    def _place(self) -> str:
        """Return the name of this cache, which no other machine's has."""
        file = self.root / "place"
        if not file.exists():
            self.root.mkdir(parents=True, exist_ok=True)
            with suppress(FileExistsError), file.open("x", encoding="utf-8") as stream:
                stream.write(uuid.uuid4().hex)
        return file.read_text(encoding="utf-8")

    def exists(self) -> bool:
        """Tell whether anything was ever stored."""
        return next(iter(self.objects.list("")), None) is not None

    def prepare(self) -> None:
        """Check that objects can be created, once only; raises UserError."""
        probe(self.objects)

    @contextmanager
    def listed(self) -> Iterator[None]:
        """Answer about many artifacts from one listing within the block, with all records read at once."""
        if self._listing is not None:
            yield
            return
        listing = _Listing()
        for entry in self.objects.list("artifacts/"):
            listing.commits[entry.key.split("/")[2]] = entry
        for entry in self.objects.list("attempts/"):
            listing.files[entry.key.split("/")[1]].append(entry)
        for identity, content in _at_once(self._read_record, listing.commits):
            if content is None:
                del listing.commits[identity]
            else:
                listing.records[identity] = content
        self._listing = listing
        try:
            yield
        finally:
            self._listing = None

    def has(self, identity: str) -> bool:
        """Tell whether the stage's artifact is there, whole or damaged."""
        return self._record_bytes(identity) is not None

    def find(self, beginning: str) -> list[str]:
        """Return the identities of all artifacts with this beginning."""
        prefix = f"artifacts/{beginning[:2]}/" if len(beginning) > 1 else "artifacts/"
        found = (entry.key.split("/")[2] for entry in self.objects.list(prefix))
        return sorted(identity for identity in found if identity.startswith(beginning))

    def newest(self, number: int) -> list[str]:
        """Return the identities of the artifacts that were committed last, the newest first."""
        found = sorted(self.objects.list("artifacts/"), key=lambda entry: -entry.modified)
        return [entry.key.split("/")[2] for entry in found[:number]]

    def record(self, identity: str) -> dict[str, Any]:
        """Return what was recorded at the commit; raises ArtifactDamagedError."""
        content = self._record_bytes(identity)
        if content is None:
            raise ArtifactDamagedError(identity, f"{STAGE_FILE} is missing")
        try:
            record = unseal(content)
        except DamagedFileError as damage:
            raise ArtifactDamagedError(identity, f"{STAGE_FILE} {damage}") from damage
        if not isinstance(record.get("files"), dict) or "attempt" not in record:
            raise ArtifactDamagedError(identity, f"{STAGE_FILE} is unreadable")
        return record

    def check(self, identity: str, *, thorough: bool = False) -> None:
        """Compare an artifact's sizes with what was committed; raises ArtifactDamagedError.

        If `thorough`, all files are brought to this machine, which compares their checksums.
        """
        record = self.record(identity)
        sizes = self._sizes(identity, record["attempt"])
        for name, recorded in record["files"].items():
            if name not in sizes:
                raise ArtifactDamagedError(identity, f"{name} is missing")
            if sizes[name] != recorded["size"]:
                written = f"{name} has {sizes[name]} bytes, {recorded['size']} were written"
                raise ArtifactDamagedError(identity, written)
        if thorough:
            self.fetch(identity)

    def verify(self, identity: str) -> None:
        """Read every byte that is shared of an artifact; raises ArtifactDamagedError."""
        self.check(identity)
        record = self.record(identity)
        for name, recorded in record["files"].items():
            if self.objects.digest(_key(identity, record["attempt"], name)) != recorded["sha256"]:
                raise ArtifactDamagedError(identity, f"the checksum of {name} differs")

    def check_file(self, identity: str, name: str, recorded: Any, *, thorough: bool = True) -> None:  # noqa: ANN401
        """Bring one file to this machine and compare its checksum; raises as `check` does."""
        self._fetch_files(identity, [name])

    def fetch(self, identity: str) -> Path:
        """Return the folder of an artifact, all of it on this machine; raises ArtifactDamagedError."""
        self._fetch_files(identity, None)
        return self.folder(identity)

    def fetch_file(self, identity: str, name: str) -> Path:
        """Return one file of an artifact, on this machine; raises ArtifactDamagedError."""
        self._fetch_files(identity, [name])
        return self.folder(identity) / name

    def discard(self, identity: str) -> None:
        """Remove an artifact, in one step for other processes, and this machine's copy."""
        self._listing = None
        attempt = (self.info(identity) or {}).get("attempt")
        self.objects.delete([_commit_key(identity)])
        prefix = f"attempts/{identity}/{attempt}/" if attempt else f"attempts/{identity}/"
        self.objects.delete([entry.key for entry in self.objects.list(prefix)])
        super().discard(identity)

    def workspace(self, identity: str) -> Path:
        """Return the folder of a stage's unfinished work on this machine, with an empty `output`.

        What is stored now, damaged or to be computed again, will be replaced.
        """
        self._replaced.pop(identity, None)
        if (content := self._read_record(identity)) is not None:
            self._replaced[identity] = content.decode(errors="replace")
        return super().workspace(identity)

    def commit(self, identity: str, record: Mapping[str, Any]) -> None:
        """Share the workspace's output as the artifact, unless another machine's commit came first."""
        output = self.root / "partial" / identity / "output"
        files, attempt = recorded_files(output), uuid.uuid4().hex
        keys = {name: _key(identity, attempt, name) for name in files}
        for _ in _at_once(lambda name: self.objects.upload(keys[name], output / name), files):
            pass
        content = seal({**record, "attempt": attempt, "files": files})
        if not self._create_commit(identity, content.encode()):
            self.objects.delete(keys.values())
            self.forget_partial(identity)
            return
        write_atomically(output / STAGE_FILE, content)
        super().discard(identity)
        self.folder(identity).parent.mkdir(parents=True, exist_ok=True)
        output.rename(self.folder(identity))
        self.forget_partial(identity)

    def _create_commit(self, identity: str, content: bytes) -> bool:
        """Create the commit; False if another one came after this process began."""
        if self.objects.create(_commit_key(identity), content):
            return True
        there = self._read_record(identity)
        if there is not None and there.decode(errors="replace") != self._replaced.get(identity):
            return False
        self.discard(identity)
        return self.objects.create(_commit_key(identity), content)

    @contextmanager
    def lock(self, identity: str, label: str) -> Iterator[str]:
        """Hold the stage's lease; yield the process whose work is taken over, "" if none.

        Raises StageBusyError if another process holds it.
        """
        with super().lock(identity, label) as here, self._leases.hold(identity, label) as it:
            self._listing = None
            yield it or here

    @contextmanager
    def run_in_progress(self, label: str, identities: Iterable[str]) -> Iterator[None]:
        """Keep clean-ups away while a run works, and note what it needs; waits for one that has begun."""
        with self._leases.hold(f"{RUN}{uuid.uuid4().hex}", label):
            while self._leases.live(CLEANING):
                time.sleep(SECONDS_BETWEEN_LOOKS)
            used = json.dumps(sorted(identities)).encode()
            self.objects.write(f"used/{uuid.uuid4().hex}.json", used)
            yield

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Make new runs wait; raises UserError if a run or another clean-up is at work on any machine."""
        try:
            with self._leases.hold(CLEANING, "clean"):
                others = (
                    holder
                    for key, holder in self._leases.live().items()
                    if not key.startswith(f"leases/{CLEANING}/")
                )
                if (holder := next(others, None)) is not None:
                    raise UserError(f"{self}: {holder} works there; nothing was removed")
                yield
        except StageBusyError:
            raise UserError(f"{self}: another `clean` is running; nothing was removed") from None

    def holdings(self) -> list[Holding]:
        """Return all that is shared, what killed runs left there, and what is unfinished on this machine."""
        with self.listed():
            listing = self._listing
            assert listing is not None
            used = self._last_used()
            found = []
            for identity, commit in sorted(listing.commits.items()):
                record = self.info(identity) or {}
                files = listing.files.get(identity, [])
                own = [each for each in files if each.key.split("/")[2] == record.get("attempt")]
                size = commit.size + sum(each.size for each in own)
                last_used = max(commit.modified, used.get(identity, 0.0))
                found.append(spec_holding(self.folder(identity), record.get("spec", {}), size, last_used))
            for (identity, attempt), files in self._lost_attempts(listing).items():
                size, name = sum(each.size for each in files), f"{identity}-{attempt}"
                found.append(Holding(name, self.folder(identity), DISCARDED, size, last_used=0.0))
            return found + self.local_rest()

    def _lost_attempts(self, listing: _Listing) -> dict[tuple[str, str], list[Entry]]:
        """Return the files of attempts that were never committed, or were replaced."""
        found: dict[tuple[str, str], list[Entry]] = defaultdict(list)
        for identity, files in sorted(listing.files.items()):
            attempt = (self.info(identity) or {}).get("attempt")
            if attempt is None and identity in listing.commits:
                continue  # the record is damaged: it is unknown which attempt it means
            for each in files:
                if (other := each.key.split("/")[2]) != attempt:
                    found[identity, other].append(each)
        return found

    def _last_used(self) -> dict[str, float]:
        """Return when runs last needed each artifact."""
        used: dict[str, float] = {}
        for entry in self.objects.list("used/"):
            with suppress(FileNotFoundError, ValueError):
                for identity in json.loads(self.objects.read(entry.key)):
                    used[identity] = max(used.get(identity, 0.0), entry.modified)
        return used

    def remove(self, holding: Holding) -> None:
        """Remove what `holdings` returned; only while the store is held exclusively."""
        if holding.folder.is_relative_to(self.root / "artifacts"):
            if holding.kind != DISCARDED:
                self.discard(holding.identity)
        else:
            super().remove(holding)

    def empty_rubbish(self) -> None:
        """Delete what was set aside here, attempts without a commit, and notes about what is gone."""
        super().empty_rubbish()
        with suppress(UserError), self.exclusive(), self.listed():
            listing = self._listing
            assert listing is not None
            for files in self._lost_attempts(listing).values():
                self.objects.delete([each.key for each in files])
            for entry in list(self.objects.list("used/")):
                with suppress(FileNotFoundError, ValueError):
                    if listing.commits.keys().isdisjoint(json.loads(self.objects.read(entry.key))):
                        self.objects.delete([entry.key])

    def addresses(self, experiment: str) -> dict[str, str]:
        """Return the stage identities of an experiment's last runs; raises DamagedFileError."""
        found: dict[str, str] = {}
        for entry in self._address_entries(experiment):
            with suppress(FileNotFoundError):
                found |= unseal(self.objects.read(entry.key))["addresses"]
        return found

    def remember_addresses(self, experiment: str, addresses: Mapping[str, str]) -> None:
        """Add the addresses of an experiment's run to those of earlier ones; raises DamagedFileError."""
        earlier = [entry.key for entry in self._address_entries(experiment)]
        merged = {**self.addresses(experiment), **addresses}
        # Two runs at once write an entry each: none is lost, and the next run merges them.
        key = f"addresses/{experiment}/{time.time_ns():020}-{uuid.uuid4().hex[:8]}.json"
        self.objects.write(key, seal({"addresses": merged}).encode())
        self.objects.delete(earlier)

    def forget_addresses(self, experiment: str) -> None:
        """Forget the addresses of an experiment's last run."""
        self.objects.delete([entry.key for entry in self._address_entries(experiment)])

    def experiments(self) -> list[str]:
        """Return the names of all experiments that ran."""
        return sorted({entry.key.split("/")[1] for entry in self.objects.list("addresses/")})

    def addresses_file(self, experiment: str) -> Path:
        """Return the folder of an experiment's addresses, as messages name it."""
        return Path(str(self.objects)) / "addresses" / experiment

    def _address_entries(self, experiment: str) -> list[Entry]:
        return sorted(self.objects.list(f"addresses/{experiment}/"), key=lambda entry: entry.key)

    def _record_bytes(self, identity: str) -> bytes | None:
        if self._listing is not None:
            return self._listing.records.get(identity)
        return self._read_record(identity)

    def _read_record(self, identity: str) -> bytes | None:
        try:
            return self.objects.read(_commit_key(identity))
        except FileNotFoundError:
            return None

    def _sizes(self, identity: str, attempt: str) -> dict[str, int]:
        """Return the size of each file of an artifact, by its path in there."""
        prefix = f"attempts/{identity}/{attempt}/"
        if self._listing is not None:
            entries: Iterable[Entry] = self._listing.files.get(identity, [])
        else:
            entries = self.objects.list(prefix)
        return {each.key.removeprefix(prefix): each.size for each in entries if each.key.startswith(prefix)}

    def _fetch_files(self, identity: str, wanted: Iterable[str] | None) -> None:
        """Bring files of an artifact to this machine, all without `wanted`; raises ArtifactDamagedError."""
        record = self.record(identity)
        folder = self.folder(identity)
        self._keep_one_attempt(identity, record)
        names = list(record["files"]) if wanted is None else list(wanted)
        missing = [name for name in names if not _is_copy(folder / name, record["files"].get(name))]
        for _ in _at_once(lambda name: self._download(identity, record, name), missing):
            pass

    def _keep_one_attempt(self, identity: str, record: Mapping[str, Any]) -> None:
        """Drop this machine's copy of an artifact that was computed again since."""
        here = self.folder(identity) / STAGE_FILE
        try:
            if read_sealed(here).get("attempt") == record["attempt"]:
                return
        except (FileNotFoundError, DamagedFileError):
            pass
        super().discard(identity)
        here.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(here, seal(record))

    def _download(self, identity: str, record: Mapping[str, Any], name: str) -> None:
        recorded = record["files"].get(name)
        if recorded is None:
            raise ArtifactDamagedError(identity, f"{name} is missing")
        file = self.folder(identity) / name
        file.parent.mkdir(parents=True, exist_ok=True)
        new = file.with_name(f".{file.name}.{uuid.uuid4().hex}")
        try:
            self.objects.download(_key(identity, record["attempt"], name), new)
            if file_hash(new) != recorded["sha256"]:
                self._withdraw(identity, record)
                raise ArtifactDamagedError(identity, f"the checksum of {name} differs")
            os.utime(new, ns=(recorded["mtime_ns"], recorded["mtime_ns"]))
            new.replace(file)
        except FileNotFoundError:
            self._withdraw(identity, record)
            raise ArtifactDamagedError(identity, f"{name} is missing") from None
        finally:
            new.unlink(missing_ok=True)

    def _withdraw(self, identity: str, record: Mapping[str, Any]) -> None:
        """Remove the commit of a damaged artifact: machines with good copies would not notice the damage."""
        self._listing = None
        if (self.info(identity) or {}).get("attempt") == record["attempt"]:
            self.objects.delete([_commit_key(identity)])
            shutil.rmtree(self.folder(identity), ignore_errors=True)


def _commit_key(identity: str) -> str:
    return f"artifacts/{identity[:2]}/{identity}/{STAGE_FILE}"


def _key(identity: str, attempt: str, name: str) -> str:
    return f"attempts/{identity}/{attempt}/{name}"


def _is_copy(file: Path, recorded: Mapping[str, Any] | None) -> bool:
    """Tell whether a file of the cache is as it was fetched, or is cheap to hash and right."""
    if recorded is None or not file.is_file():
        return False
    status = file.stat()
    if (status.st_size, status.st_mtime_ns) != (recorded["size"], recorded["mtime_ns"]):
        return False
    return file_hash(file) == str(recorded["sha256"])


def _at_once(function: Callable[[Given], Found], values: Iterable[Given]) -> Iterator[tuple[Given, Found]]:
    """Yield each value with what the function returns for it; several are computed at a time."""
    given = list(values)
    if len(given) < 2:
        yield from ((value, function(value)) for value in given)
        return
    with ThreadPoolExecutor(min(CONNECTIONS, len(given))) as pool:
        yield from zip(given, pool.map(function, given), strict=True)
