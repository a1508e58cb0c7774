"""A store that several machines share: a folder on a network file system, or an object store.

    artifacts/<2 digits>/<identity>/stage.json   the commit: written last, created once
    attempts/<identity>/<attempt>/...            the files of an artifact, below a prefix of their own
    leases/<name>/<epoch>                        who computes a stage, runs or cleans
    addresses/<experiment>/<entry>.json          what an experiment's last run used
    used/<run>.json                              what a run needed, as old as its start

No correctness rests on leases, which only keep two machines from the same work: the first commit counts.
"""

import json
import shutil
import time
import uuid
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from synthbench.base.durability import (
    DamagedFileError,
    file_hash,
    read_sealed,
    seal,
    unseal,
    write_atomically,
)
from synthbench.base.errors import UserError
from synthbench.engine.attempts import TRIES, Attempts, Listing, at_once, commit_key, listing_of
from synthbench.engine.holdings import DISCARDED, Holding, spec_holding
from synthbench.engine.leases import FOLDER, Leases, watch_of
from synthbench.engine.local_locks import CLEANING, RUN, StageBusyError, waiting_for_clean
from synthbench.engine.objects import ListedObject, probe
from synthbench.engine.patience import PatientObjects
from synthbench.engine.records import STAGE_FILE, committed_identity, fault_of, is_identity
from synthbench.engine.store import ArtifactDamagedError, Store, as_addresses

SECONDS_BETWEEN_LOOKS = 1.0


class SharedStore(Store):
    """Artifacts in shared objects. Its root is this machine's cache, and holds unfinished work, too."""

    def __init__(self, objects: PatientObjects, root: Path, answers: Path, lease_seconds: float) -> None:
        super().__init__(root)
        self.objects = objects
        self.objects.say = lambda line: self.say(line)
        self._attempts = Attempts(objects)
        self._answers = answers
        self._lease_seconds = lease_seconds
        self._leases = Leases(objects, objects.inner, self._cache_id(), lease_seconds, watch_of(str(objects)))
        self._listing: Listing | None = None
        self._replaced: dict[str, bytes] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        return SharedStore, (self.objects, self.root, self._answers, self._lease_seconds)

    def __str__(self) -> str:
        return str(self.objects)

    @property
    def answers(self) -> Path:
        """Folder of LLMs' answers, which stay on this machine."""
        return self._answers

    def _cache_id(self) -> str:
        """Return the globally unique id of this cache."""
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
        listing = listing_of(self.objects)
        for identity, content in at_once(self._read_record, listing.commits):
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
        is_folder = len(beginning) > 1 and is_identity(beginning.ljust(64, "0"))
        prefix = f"artifacts/{beginning[:2]}/" if is_folder else "artifacts/"
        found = (committed_identity(entry.key) for entry in self.objects.list(prefix))
        return sorted(identity for identity in found if identity and identity.startswith(beginning))

    def newest(self, number: int) -> list[str]:
        """Return the identities of the artifacts that were committed last, the newest first."""
        found = sorted(self.objects.list("artifacts/"), key=lambda entry: -entry.modified)
        identities = (committed_identity(entry.key) for entry in found)
        return [identity for identity in identities if identity][:number]

    def strays(self) -> list[str]:
        """Return the objects among the artifacts and attempts that are none."""
        with self.listed():
            assert self._listing is not None
            return sorted(self._listing.strays)

    def record(self, identity: str) -> dict[str, Any]:
        """Return what was recorded at the commit; raises ArtifactDamagedError."""
        for _ in range(TRIES):
            content = self._record_bytes(identity)
            if content is None:
                raise ArtifactDamagedError(identity, f"{STAGE_FILE} is missing")
            try:
                record = unseal(content)
            except DamagedFileError as found:
                # The network may have cut what was read.
                damage = str(found)
                if self._listing is not None:
                    self._listing.records[identity] = self._read_record(identity) or content
            else:
                damage = fault_of(record, is_shared=True)
                if not damage:
                    return record
                break
        raise ArtifactDamagedError(identity, f"{STAGE_FILE} {damage}")

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
            digests = (self._attempts.digest(identity, record["attempt"], name) for _ in range(TRIES))
            if recorded["sha256"] not in digests:
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
        """Remove an artifact, in one step for other processes, and this machine's copy.

        Of attempts, only the committed one goes: others may be under way on other machines.
        """
        self._listing = None
        attempt = (self.info(identity) or {}).get("attempt")
        self.objects.delete([commit_key(identity)])
        if attempt:
            self._attempts.delete(identity, attempt)
        super().discard(identity)

    def workspace(self, identity: str) -> Path:
        """Return the folder of a stage's unfinished work on this machine, with an empty `output`.

        What is stored now, damaged or to be computed again, will be replaced.
        """
        self._note_replaced(identity)
        return super().workspace(identity)

    def _note_replaced(self, identity: str) -> None:
        self._replaced.pop(identity, None)
        if (content := self._read_record(identity)) is not None:
            self._replaced[identity] = content

    def commit_finished(self, identity: str) -> bool | None:
        """Commit what a former process finished and could not share; None if there is nothing such."""
        self._note_replaced(identity)
        return super().commit_finished(identity)

    def _sealed_keys(self) -> dict[str, Any]:
        """Give what is finished an attempt of its own, under which it is shared."""
        return {"attempt": uuid.uuid4().hex}

    def _publish(self, identity: str) -> bool:
        """Share the finished output as the artifact; False if another machine's commit came first.

        The output stays on this machine until it is committed, whatever the store does meanwhile.
        """
        output = self.root / "partial" / identity / "output"
        record = read_sealed(output / STAGE_FILE)
        attempt = record["attempt"]
        try:
            self._attempts.upload(identity, attempt, output, record["files"])
            is_ours = self._create_commit(identity, (output / STAGE_FILE).read_bytes())
        except UserError as error:
            kept = "what was computed is kept on this machine, and the same command goes on from there"
            raise UserError(f"{error}; {kept}") from None
        if is_ours:
            super().discard(identity)
            self.folder(identity).parent.mkdir(parents=True, exist_ok=True)
            output.rename(self.folder(identity))
        else:
            self._attempts.delete(identity, attempt)
        self.forget_partial(identity)
        return is_ours

    def _create_commit(self, identity: str, content: bytes) -> bool:
        """Create the commit; False if another one came after this process began."""
        while not self.objects.create(commit_key(identity), content):
            there = self._read_record(identity)
            if there is not None and there != self._replaced.get(identity):
                return there == content
            self.discard(identity)
        return True

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
            said: dict[str, None] = {}
            while others := self._leases.live(CLEANING):
                (line,) = {waiting_for_clean(holder) for holder in list(others.values())[:1]}
                if line not in said:
                    self.say(line)
                said[line] = None
                time.sleep(SECONDS_BETWEEN_LOOKS)
            self._leases.remove_dead_runs()
            used = json.dumps(sorted(identities)).encode()
            self.objects.write(f"used/{uuid.uuid4().hex}.json", used)
            yield

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Make new runs wait; raises UserError if a run or another clean-up is at work on any machine."""
        try:
            with self._leases.hold(CLEANING, "clean"):
                if holder := self._leases.awaited(but=CLEANING, say=self.say):
                    raise UserError(f"{self}: {holder} works there; nothing was removed")
                self._leases.remove_dead_runs()
                yield
        except StageBusyError:
            raise UserError(f"{self}: another `clean` is running; nothing was removed") from None

    def holdings(self) -> list[Holding]:
        """Return all that is shared, what killed runs left there, and what is unfinished on this machine."""
        with self.listed():
            listing = self._listing
            assert listing is not None
            used, behind = self._last_used(), self._seconds_behind()
            found = []
            for identity, commit in sorted(listing.commits.items()):
                record = self.info(identity) or {}
                files = listing.files.get(identity, [])
                own = [each for each in files if each.key.split("/")[2] == record.get("attempt")]
                size = commit.size + sum(each.size for each in own)
                last_used = max(commit.modified, used.get(identity, 0.0)) + behind
                found.append(spec_holding(self.folder(identity), record.get("spec") or {}, size, last_used))
            for (identity, attempt), files in self._lost_attempts(listing).items():
                size, name = sum(each.size for each in files), f"{identity}-{attempt}"
                found.append(Holding(name, self.folder(identity), DISCARDED, size, last_used=0.0))
            return found + self.local_rest()

    def _seconds_behind(self) -> float:
        """Return how far the store's clock is behind this machine's; a clean-up's lease is a moment old."""
        seen = [entry.modified for entry in self.objects.list(f"{FOLDER}{CLEANING}/")]
        return time.time() - max(seen) if seen else 0.0

    def _lost_attempts(self, listing: Listing) -> dict[tuple[str, str], list[ListedObject]]:
        """Return the files of attempts that were never committed, or were replaced."""
        found: dict[tuple[str, str], list[ListedObject]] = defaultdict(list)
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
            for identity in self._needed_by(entry):
                used[identity] = max(used.get(identity, 0.0), entry.modified)
        return used

    def _needed_by(self, note: ListedObject) -> list[str]:
        """Return the identities that a run noted it needs; none of a note that is damaged or gone."""
        try:
            found = json.loads(self.objects.read(note.key))
        except (FileNotFoundError, ValueError, RecursionError):
            return []
        return [each for each in found if is_identity(each)] if isinstance(found, list) else []

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
                if listing.commits.keys().isdisjoint(self._needed_by(entry)):
                    self.objects.delete([entry.key])

    def addresses(self, experiment: str) -> dict[str, str]:
        """Return the stage identities of an experiment's last runs; raises DamagedFileError."""
        found: dict[str, str] = {}
        for entry in self._address_entries(experiment):
            with suppress(FileNotFoundError):
                found |= as_addresses(unseal(self.objects.read(entry.key)).get("addresses"))
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
        parts = (entry.key.split("/") for entry in self.objects.list("addresses/") if _is_of_addresses(entry))
        return sorted({experiment for _, experiment, _ in parts})

    def addresses_file(self, experiment: str) -> Path:
        """Return the folder of an experiment's addresses, as messages name it."""
        return Path(str(self.objects)) / "addresses" / experiment

    def _address_entries(self, experiment: str) -> list[ListedObject]:
        found = filter(_is_of_addresses, self.objects.list(f"addresses/{experiment}/"))
        return sorted(found, key=lambda entry: entry.key)

    def _record_bytes(self, identity: str) -> bytes | None:
        if self._listing is not None:
            return self._listing.records.get(identity)
        return self._read_record(identity)

    def _read_record(self, identity: str) -> bytes | None:
        if not is_identity(identity):
            return None
        try:
            return self.objects.read(commit_key(identity))
        except FileNotFoundError:
            return None

    def _sizes(self, identity: str, attempt: str) -> dict[str, int]:
        """Return the size of each file of an artifact, by its path in there."""
        prefix = f"attempts/{identity}/{attempt}/"
        if self._listing is not None:
            entries: Iterable[ListedObject] = self._listing.files.get(identity, [])
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
        download = self._attempts.download
        for _, fault in at_once(lambda name: download(identity, record, name, folder / name), missing):
            if fault:
                self._withdraw(identity, record)
                raise ArtifactDamagedError(identity, fault)

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

    def _withdraw(self, identity: str, record: Mapping[str, Any]) -> None:
        """Remove the commit of a damaged artifact: machines with good copies would not notice the damage."""
        self._listing = None
        if (self.info(identity) or {}).get("attempt") == record["attempt"]:
            self.objects.delete([commit_key(identity)])
            shutil.rmtree(self.folder(identity), ignore_errors=True)


def _is_of_addresses(entry: ListedObject) -> bool:
    parts = entry.key.split("/")
    return len(parts) == 3 and parts[2].endswith(".json") and not parts[2].startswith(".")


def _is_copy(file: Path, recorded: Mapping[str, Any] | None) -> bool:
    """Tell whether a file of the cache is as it was fetched, or is cheap to hash and right."""
    if recorded is None or file.is_symlink() or not file.is_file():
        return False
    status = file.stat()
    if (status.st_size, status.st_mtime_ns) != (recorded["size"], recorded["mtime_ns"]):
        return False
    return file_hash(file) == str(recorded["sha256"])
