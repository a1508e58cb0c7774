"""`synthbench clean`: lists unused artifacts, and removes them on request."""

import pytest
from disks import flip
from small_experiment import Project
from wording import worded

from synthbench.engine.store import Store

SPEC = {"label": "train gold seed 0", "spec": {"kind": "train", "inputs": {}}}


@pytest.fixture
def store(project: Project) -> Store:
    """A store with one artifact used by an experiment, and one unused."""
    store = Store(project.home / "store")
    for identity in ("a" * 64, "b" * 64):
        (store.workspace(identity) / "output" / "model").write_bytes(b"x" * 10_000_000)
        store.commit(identity, SPEC)
    store.addresses.remember("study", {"model": "a" * 64})
    return store


def test_without_yes_clean_only_lists_the_stores_content(project: Project, store: Store) -> None:
    called = project.call("clean", "--unused-for", "0")
    assert called.code == 0
    lines = [" ".join(line.split()) for line in called.out.splitlines()]
    assert lines[0].endswith("store: 2 artifacts, 20.0 MB")
    assert "train 2 20.0 MB" in lines
    assert "study 1 10.0 MB 10.0 MB" in lines
    assert "(none) 1 10.0 MB" in lines
    assert lines[-2].endswith("1 artifact, 10.0 MB")
    assert lines[-1] == "nothing was removed; --yes removes it"
    assert store.has("a" * 64) and store.has("b" * 64)


def test_without_removable_artifacts_clean_explains_the_option_experiment(
    project: Project, store: Store
) -> None:
    out = project.call("clean").out
    assert out.endswith("0 artifacts, 0 bytes\n--experiment NAME removes what NAME alone uses\n")


def test_clean_removes_unused_artifacts(project: Project, store: Store) -> None:
    assert project.call("clean", "--unused-for", "0", "--yes").out == "removed: 1 artifact, 10.0 MB\n"
    assert store.has("a" * 64) and not store.has("b" * 64)


def test_clean_removes_an_experiment(project: Project, store: Store) -> None:
    assert project.call("clean", "--experiment", "study", "--yes").out == "removed: 1 artifact, 10.0 MB\n"
    assert not store.has("a" * 64) and store.has("b" * 64)


def test_verify_names_and_discards_damaged_artifacts(project: Project, store: Store) -> None:
    assert "verified: 2 artifacts, 0 damaged\n" in project.call("clean", "--verify").out
    flip(store.folder("a" * 64) / "model")
    assert project.call("clean").code == 0
    called = project.call("clean", "--verify")
    assert called.code == 3
    assert called.out.splitlines()[:2] == [
        f"damaged: {'a' * 8} train gold seed 0: the checksum of model differs",
        "verified: 2 artifacts, 1 damaged; the damaged ones were discarded, and the next run computes them "
        "again",
    ]
    assert not store.has("a" * 64) and store.has("b" * 64)
    assert project.call("clean", "--verify").code == 0


def test_verify_refuses_while_a_run_works(project: Project, store: Store) -> None:
    flip(store.folder("a" * 64) / "model")
    with store.locks.run("experiment other", []):
        called = project.call("clean", "--verify")
    assert (called.code, len(called.errors)) == (2, 1)
    assert "works there; nothing was removed" in called.errors[0]
    assert store.has("a" * 64)


def test_damaged_data_are_not_shown_to_people(project: Project, store: Store) -> None:
    flip(store.folder("b" * 64) / "model")
    called = project.call("data", "inspect", "b" * 12)
    assert called.code == 2
    worded(called.errors, "b" * 12, "checksum", "--verify`")


def test_nothing_is_removed_if_an_experiments_use_is_unknown(project: Project, store: Store) -> None:
    flip(store.addresses.file("study"))
    called = project.call("clean", "--yes", "--unused-for", "0")
    assert (called.code, len(called.errors)) == (2, 1)
    assert "so it is unknown what study uses; run it again, or remove the file" in called.errors[0]
    assert store.has("a" * 64) and store.has("b" * 64)


def test_user_errors_are_reported_in_one_line(project: Project, store: Store) -> None:
    called = project.call("clean", "--experiment", "studi")
    assert (called.code, len(called.errors)) == (2, 1)
    assert called.errors[0].startswith("studi: the store knows no such experiment")


def test_a_missing_store_is_reported(project: Project) -> None:
    called = project.call("clean")
    assert called.code == 2
    assert "there is no store" in called.errors[0]
