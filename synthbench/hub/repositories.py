"""Repositories of the Hugging Face hub: what they hold, what the local cache has, why one is unavailable."""

import difflib
import errno
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from threading import Thread
from typing import Literal

from synthbench.base.errors import NotAvailableError, UserError, in_one_line, unreachable
from synthbench.base.listing import listed
from synthbench.base.patterns import linear_pattern
from synthbench.base.terminal import bars_of_libraries

Kind = Literal["model", "dataset"]
WORDS: Mapping[Kind, str] = {"model": "model", "dataset": "data set"}
COMMIT = linear_pattern(r"[0-9a-f]{40}")
PATIENCE_S = 8.0
"""How long we wait for the hub's first answer: `run` has to say within 10 s that there is none."""
_MOST_LISTED = 300
_answered: dict[tuple[str, bool], bool] = {}


def is_reachable(*, anew: bool = False) -> bool:
    """Return whether the hub answers within `PATIENCE_S`; asks once in a process, or again with `anew`.

    False without a request if HF_HUB_OFFLINE is set. The library itself would retry for half a minute.
    """
    from huggingface_hub import constants, is_offline_mode

    key = constants.ENDPOINT, is_offline_mode()
    if anew or key not in _answered:
        _answered[key] = not key[1] and _asked(constants.ENDPOINT)
    return _answered[key]


def _asked(address: str) -> bool:
    from huggingface_hub import get_session

    answers: list[object] = []

    def ask() -> None:
        try:
            answers.append(get_session().head(address, timeout=PATIENCE_S))
        except hub_errors():
            pass

    # A thread, since looking a host's name up takes no time limit.
    thread = Thread(target=ask, daemon=True)
    thread.start()
    thread.join(PATIENCE_S)
    return bool(answers)


def hub_errors() -> tuple[type[Exception], ...]:
    """Return the error classes that the hub's library raises for unavailable files."""
    from huggingface_hub import errors

    # The HTTP library's error class moves between versions; this is its name here.
    transport_error = errors.HfHubHTTPError.__bases__[0]
    return (OSError, transport_error, errors.EntryNotFoundError, errors.HFValidationError)


@dataclass(frozen=True)
class HubContents:
    """The files of a repository at a commit, with their sizes in bytes (0: unknown)."""

    commit: str
    sizes: Mapping[str, int]


@dataclass(frozen=True)
class HubRepository:
    """A model or data set on the hub; `revision` is a full commit hash, None: main."""

    kind: Kind
    name: str
    revision: str | None = None

    def __str__(self) -> str:
        return self.name if self.revision is None else f"{self.name} at {self.revision}"

    @property
    def page(self) -> str:
        """The repository's web address."""
        from huggingface_hub import constants

        return f"{constants.ENDPOINT}/{'datasets/' if self.kind == 'dataset' else ''}{self.name}"

    @property
    def cache(self) -> Path:
        """The folder of the local cache for this repository."""
        from huggingface_hub import constants

        return Path(constants.HF_HUB_CACHE) / f"{self.kind}s--{self.name.replace('/', '--')}"

    @property
    def cached_commit(self) -> str | None:
        """The revision, else the commit of main in the local cache; None if the cache has no main."""
        reference = self.cache / "refs" / "main"
        if self.revision is not None or not reference.is_file():
            return self.revision
        return reference.read_text(encoding="utf-8").strip()

    def commit(self) -> str:
        """Return the revision, else main's commit: the local cache's, else the hub's.

        Raises UserError as `listing`.
        """
        return self.cached_commit or self.listing().commit

    def cached_files(self) -> list[str]:
        """Return the sorted names of the files in the local cache, at the cached commit; [] without one."""
        if (commit := self.cached_commit) is None:
            return []
        folder = self.cache / "snapshots" / commit
        return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())

    def listed_files(self) -> list[str]:
        """Return the names of all the repository's files if an earlier download listed them, else []."""
        if not self._is_listed:
            return []
        from huggingface_hub import get_cached_repo_tree

        found = get_cached_repo_tree(self.name, repo_type=self.kind, revision=self.cached_commit)
        return [each.path for each in found]

    def files(self) -> list[str]:
        """Return the names of all the repository's files, as an earlier download or else the hub lists them.

        If the hub can't be reached, only the files in the cache count. Raises UserError as `listing`.
        """
        here = self.listed_files() or (not is_reachable() and self.cached_files())
        return here or [*self.listing().sizes]

    def listing(self) -> HubContents:
        """Ask the hub for the repository's files.

        Raises UserError if there is no such repository or commit, or if it is gated for this user;
        NotAvailableError, a UserError, if the hub does not answer.
        """
        from huggingface_hub import HfApi

        self._require_hub()
        with self.errors():
            info = HfApi().repo_info(
                self.name, repo_type=self.kind, revision=self.cached_commit, files_metadata=True
            )
            if getattr(info, "gated", False):
                HfApi().auth_check(self.name, repo_type=self.kind)
        sizes = {each.rfilename: each.size or 0 for each in getattr(info, "siblings", None) or ()}
        return HubContents(str(info.sha), sizes)

    def snapshot(self, patterns: Sequence[str]) -> Path:
        """Return the local folder of the files that match `patterns`, after downloading missing files.

        Without a revision, the commit of main in the cache counts; the first download of main stores it.
        Raises UserError as `listing`, and if the cache's disk is full or can't be written.
        """
        from huggingface_hub import snapshot_download
        from huggingface_hub.errors import LocalEntryNotFoundError

        def download(*, only_cached: bool) -> Path:
            with bars_of_libraries():
                folder = snapshot_download(
                    self.name,
                    repo_type=self.kind,
                    revision=self.cached_commit,
                    allow_patterns=list(patterns),
                    local_files_only=only_cached,
                )
            return Path(folder)

        with self.errors():
            if self._is_listed or not is_reachable():
                try:
                    return download(only_cached=True)
                except LocalEntryNotFoundError:
                    self._require_hub()
            return download(only_cached=False)

    @property
    def _is_listed(self) -> bool:
        """Whether the local cache has the list of all files, which shows the missing ones."""
        return (self.cache / "trees" / f"{self.cached_commit}.json").is_file()

    def _require_hub(self) -> None:
        from huggingface_hub import is_offline_mode

        if not is_reachable():
            raise self._unavailable("HF_HUB_OFFLINE is set" if is_offline_mode() else "it does not answer")

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Turn errors of the hub's library into a UserError: NotAvailableError if the hub did not answer.

        If the disk is full, deletes the partial downloads.
        """
        try:
            yield
        except hub_errors() as error:
            if isinstance(error, OSError) and error.errno == errno.ENOSPC:
                self._remove_partial_files()
            if reason := self._why_refused(error):
                raise UserError(f"{self.name}: {reason}") from error
            raise unreachable(str(self._unavailable(in_one_line(error))), error) from error

    def _remove_partial_files(self) -> None:
        for pattern in ("blobs/*.incomplete", "trees/*.tmp"):
            for path in self.cache.glob(pattern):
                path.unlink(missing_ok=True)

    def _unavailable(self, reason: str) -> NotAvailableError:
        where = f"in the local hub cache{'' if self.revision is None else f' at {self.revision}'}"
        missing = f"neither a folder nor {where}" if self.kind == "model" else f"not {where}"
        reason = reason.rstrip(".")
        return NotAvailableError(
            f"{self.name}: {missing}, and the hub can't be asked: {reason}; with a connection, `synthbench"
            " fetch FILE` downloads all that a file needs"
        )

    def _why_refused(self, error: Exception) -> str:
        """Return why the hub refuses or the cache can't be written, "" for any other error."""
        from huggingface_hub import errors

        token = "`hf auth login` or HF_TOKEN gives the hub your token"
        if isinstance(error, errors.GatedRepoError):
            return f"this {WORDS[self.kind]} is gated: accept its terms at {self.page}; then {token}"
        if isinstance(error, errors.RepositoryNotFoundError):
            return f"the hub has no {WORDS[self.kind]} of this name; if it is private, {token}{self._near()}"
        if isinstance(error, errors.RevisionNotFoundError):
            lacking = f"commit {self.cached_commit}" if self.cached_commit else "main branch"
            return f"the hub has no {lacking} of it: {self.page}/commits/main lists its commits"
        if isinstance(error, OSError) and error.errno == errno.ENOSPC:
            return f"the disk of {self.cache.parent} is full; HF_HOME sets another folder"
        if isinstance(error, OSError) and error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
            return f"{self.cache.parent} can't be written: {error.strerror}; HF_HOME sets another folder"
        return ""

    def _near(self) -> str:
        """Return "; did you mean ...?" for the hub's most similar name, "" if there is none."""
        from huggingface_hub import HfApi

        owner, _, name = self.name.rpartition("/")
        find = HfApi().list_models if self.kind == "model" else HfApi().list_datasets
        by_owner = [{"author": owner}] if owner else []
        for wanted in (*by_owner, {"search": name}, {"search": name[: max(3, len(name) // 2)]}):
            try:
                found = find(limit=_MOST_LISTED, sort="downloads", **wanted)  # type: ignore[arg-type]
                names = [each.id for each in found]
            except hub_errors():
                return ""
            # Of one name under several owners, the most used is meant, not the most alike.
            same = [each for each in names if each.rpartition("/")[2].lower() == name.lower()]
            if close := same or difflib.get_close_matches(self.name, names, n=1):
                return f"; did you mean '{close[0]}'?"
        return ""


@dataclass(frozen=True)
class HubFiles:
    """Files of a data set: in each group, all matches of the first pattern that matches any file."""

    repository: HubRepository
    groups: tuple[tuple[str, ...], ...]

    def chosen(self, names: Sequence[str]) -> list[str]:
        """Return which of these files to read; raises UserError for a group without a match."""
        return [name for group in self.groups for name in self._first(group, names)]

    def _first(self, group: Sequence[str], names: Sequence[str]) -> list[str]:
        for pattern in group:
            if found := sorted(name for name in names if fnmatch(name, pattern)):
                return found
        raise UserError(f"{self.repository}: has no {' or '.join(group)}{_what_there_is(names)}")

    def resolve(self) -> list[Path]:
        """Return the files, downloading those missing in the local cache.

        Raises UserError as `chosen` and `HubRepository.snapshot`.
        """
        return [path for group in self.resolve_groups() for path in group]

    def resolve_groups(self) -> list[list[Path]]:
        """Return the files of each group; otherwise as `resolve`."""
        folder = self.repository.snapshot([pattern for group in self.groups for pattern in group])
        names = self.repository.cached_files()
        return [[folder / name for name in self._first(group, names)] for group in self.groups]


_MOST_SHOWN = 5


def _what_there_is(names: Sequence[str]) -> str:
    shown = [name for name in names if not name.startswith(".")]
    return f"; it has {listed(shown, _MOST_SHOWN)}" if shown else ""
