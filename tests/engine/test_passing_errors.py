"""Temporary and permanent errors of a store: neither counts as damage, and no work is lost."""

import errno
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as parquet
import pytest
from fake_stages import Data, carry_out, run_job, stage
from shared_stores import on_machine
from wording import refused, worded

from synthbench.base.durability import NotNowError
from synthbench.base.errors import UserError
from synthbench.engine import cloud_objects, objects
from synthbench.engine.artifacts import Artifacts, fetch_checked
from synthbench.engine.cleaning import clean
from synthbench.engine.objects import FolderObjects, ListedObject, UnavailableError
from synthbench.engine.patience import Patience, PatientObjects
from synthbench.engine.records import ArtifactDamagedError
from synthbench.engine.stage import Stage
from synthbench.engine.store import Shared, Store

A = "a" * 64
PASSING = {"stale": errno.ESTALE, "many": errno.EMFILE}


def finish(store: Store) -> None:
    (store.workspace(A) / "output" / "data").write_bytes(b"x")


def patient(inner: FolderObjects, at_pause: Callable[[], None] = lambda: None) -> PatientObjects:
    """Return objects whose minutes of patience take no time."""
    now = 0.0

    def sleep(seconds: float) -> None:
        nonlocal now
        now += seconds
        at_pause()

    return PatientObjects(inner, Patience(clock=lambda: now, sleep=sleep), has_answered=True)


class Halved(FolderObjects):
    """Objects whose listing never comes to its second half."""

    def list(self, prefix: str) -> Iterator[ListedObject]:
        yield ListedObject(f"{prefix}first", 1, 0.0)
        raise UnavailableError("away")


def test_a_listing_that_always_breaks_off_is_abandoned(tmp_path: Path) -> None:
    with refused("away", kind=UnavailableError):
        patient(Halved(tmp_path)).list("used/")


@pytest.mark.parametrize("number", PASSING.values(), ids=PASSING)
def test_a_temporary_error_of_stat_is_neither_a_missing_file_nor_a_traceback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    folder = FolderObjects(tmp_path)
    folder.write("used/one", b"x")
    real = Path.lstat

    def failing(self: Path) -> os.stat_result:
        if self.name == "one":
            raise OSError(number, os.strerror(number), str(self))
        return real(self)

    monkeypatch.setattr(Path, "lstat", failing)
    for ask in (lambda: list(folder.list("used/")), lambda: list(folder.parts("used/one"))):
        with refused("shared store's folder", kind=UnavailableError):
            ask()
    back = patient(folder, lambda: monkeypatch.setattr(Path, "lstat", real))
    assert [entry.key for entry in back.list("used/")] == ["used/one"]


@pytest.mark.parametrize("number", PASSING.values(), ids=PASSING)
@pytest.mark.parametrize("name", ["data", "stage.json"])
def test_a_temporary_error_of_open_is_not_damage(
    store: Store, monkeypatch: pytest.MonkeyPatch, name: str, number: int
) -> None:
    """A damaged artifact is removed and recomputed."""
    finish(store)
    store.commit(A, {})
    real = os.open

    def failing(path: Any, *given: Any, **named: Any) -> int:
        if Path(path).name == name:
            raise OSError(number, os.strerror(number), str(path))
        return real(path, *given, **named)

    monkeypatch.setattr(os, "open", failing)
    with refused(f"{name}: can't be read now"):
        store.check(A)


@pytest.mark.parametrize("number", PASSING.values(), ids=PASSING)
def test_a_temporary_error_in_an_artifacts_json_or_data_set_is_not_damage(
    store: Store, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """The checksums match, so the artifact would be discarded as another program's."""
    data = Stage(Data())
    carry_out(store, data)
    (store.workspace(A) / "output" / "scores.json").write_text("{}")
    store.commit(A, {})
    artifacts = Artifacts(store)
    assert artifacts.json(A, "scores.json") == {}

    def failing(*_: Any, **__: Any) -> int:
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", failing)
        with pytest.raises(NotNowError, match=r"scores\.json: can't be read now"):
            artifacts.json(A, "scores.json")
    monkeypatch.setattr(parquet, "ParquetFile", failing)
    is_late = r"records\.parquet: can't be read now"
    with pytest.raises(NotNowError, match=is_late):
        fetch_checked(store, data)
    with pytest.raises(NotNowError, match=is_late):
        artifacts.dataset(data.identity)


def test_a_bad_disk_is_damage(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    finish(store)
    store.commit(A, {})

    def failing(*_: Any, **__: Any) -> int:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "open", failing)
    with pytest.raises(ArtifactDamagedError):
        store.check(A)


def test_a_full_local_disk_is_not_blamed_on_the_store(tmp_path: Path) -> None:
    folder = FolderObjects(tmp_path / "store")
    folder.write("key", b"x")
    with pytest.raises(OSError, match="No space left") as caught:
        patient(folder).download("key", Path("/dev/full"), 1)
    assert not isinstance(caught.value, UserError)


def test_work_that_the_store_refuses_is_preserved_for_the_next_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Credentials that end in the middle of a run, a quota."""
    (tmp_path / "store").mkdir()
    store = on_machine(str(tmp_path / "store"), tmp_path / "cache")
    finish(store)

    def full(*_: Any) -> None:
        raise OSError(errno.EDQUOT, "Disk quota exceeded")

    with monkeypatch.context() as patch:
        patch.setattr(objects.shutil, "copyfile", full)
        with refused("Disk quota exceeded", "kept on this machine"):
            store.commit(A, {})
    assert store.commit_finished(A)
    assert (store.fetch(A) / "data").read_bytes() == b"x"


def test_a_full_shared_folder_is_not_called_a_full_disk_of_this_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "store").mkdir()
    store = on_machine(str(tmp_path / "store"), tmp_path / "cache")

    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(shutil, "copyfile", full)
    worded(run_job(store, stage("a")).error, "No space left", f"{tmp_path / 'store'}", "kept on this machine")


@pytest.mark.parametrize("status", ["500 Internal Server Error", "503 Slow Down", "429 Too Many Requests"])
def test_a_temporary_http_status_is_retried(status: str) -> None:
    assert cloud_objects._may_pass(_error(f"Server returned non-2xx status code: {status}: "))


@pytest.mark.parametrize(
    "text",
    [
        *(
            f"Server returned non-2xx status code: {status}: "
            for status in ("400 Bad Request", "405 No", "413 x")
        ),
        "Server returned non-2xx status code: 501 Not Implemented: <Error><Code>No</Code>",
        "Received redirect without LOCATION, this normally indicates an incorrectly configured region",
        "DeleteObjects request failed for key x/a: Access Denied (code: AccessDenied)",
    ],
)
def test_a_refusal_is_not_retried_for_minutes(text: str) -> None:
    assert not cloud_objects._may_pass(_error(text))


def _error(text: str) -> Exception:
    from obstore.exceptions import GenericError

    return GenericError(f"Generic S3 error: {text}")


class Behind(FolderObjects):
    """Objects of a store whose clock is three days behind."""

    def list(self, prefix: str) -> Iterator[ListedObject]:
        for entry in super().list(prefix):
            yield ListedObject(entry.key, entry.size, entry.modified - 3 * 86_400)


def test_a_clean_up_measures_ages_by_one_clock(tmp_path: Path) -> None:
    root = tmp_path / "store"
    shared = Shared(PatientObjects(Behind(root)), tmp_path / "llm", 60.0)
    store = Store(tmp_path / "cache", shared)
    finish(store)
    store.commit(A, {})
    assert clean(store, 1) == []
    assert [holding.identity for holding in clean(store, 0)] == [A]
