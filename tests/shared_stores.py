"""Shared stores seen from several machines, and drivers that work in them."""

import hashlib
import json
import os
import time
from pathlib import Path

import pytest
from fake_stages import carry_out, diamond, names, names_of_failed, stage, wait_for
from s3 import BUCKET

from synthbench.engine.store import Store
from synthbench.engine.stores import CACHE_VARIABLE, LEASE_VARIABLE, VARIABLE, shared_store


def new_prefix() -> str:
    """Return the URL of a part of the bucket that is the running test's own."""
    test = os.environ["PYTEST_CURRENT_TEST"]
    return f"s3://{BUCKET}/{hashlib.sha256(test.encode()).hexdigest()[:16]}"


def on_machine(name: str, cache: Path, seconds: float | None = None) -> Store:
    """Return a shared store as a machine with this cache sees it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(CACHE_VARIABLE, str(cache))
        if seconds is not None:
            patch.setenv(LEASE_VARIABLE, str(seconds))
        found = shared_store(name, cache / "llm")
    assert found.shared is not None
    return found


def contents(store: Store, *identities: str) -> dict[str, bytes]:
    """Return the bytes of artifacts, by identity and path."""
    found = {}
    for identity in identities:
        folder = store.fetch(identity)
        for name in store.record(identity)["files"]:
            found[f"{identity}/{name}"] = (folder / name).read_bytes()
    return found


def hashes(store: Store) -> dict[str, dict[str, str]]:
    """Return the hashes of all artifacts' files."""
    found = {identity: store.record(identity)["files"] for identity in store.find()}
    return {key: {name: file["sha256"] for name, file in files.items()} for key, files in found.items()}


def drive_diamond(name: str, cache: Path, said: Path, start: Path) -> None:
    """Run four stages of 0.5 s each once a file exists, and write the outcome to a file."""
    wait_for(start)
    report, _ = carry_out(on_machine(name, cache), diamond("sleep 0.5"))
    said.write_text(json.dumps([names(report.executed), names_of_failed(report)]), encoding="utf-8")


def hold_shared_lock(name: str, cache: Path, identity: str, marker: Path) -> None:
    """Take a stage's lease, say so with a file, and keep it until killed."""
    with on_machine(name, cache, 1.0).locks.stage(identity, "work held"):
        marker.write_text(str(os.getpid()))
        time.sleep(600)


def drive_chain(name: str, cache: Path) -> None:
    """Run a chain of short stages."""
    carry_out(on_machine(name, cache, 1.0), *chain())


def chain() -> list:  # type: ignore[type-arg]
    """Return the last stages of a graph of dependent stages."""
    end = stage("0", behaviour="sleep 0.05")
    for number in range(1, 6):
        end = stage(str(number), end, behaviour="sleep 0.05")
    return [end, stage("beside", behaviour="sleep 0.05")]


def use(monkeypatch: pytest.MonkeyPatch, name: str, cache: Path) -> None:
    """Let commands of this process use a shared store."""
    monkeypatch.setenv(VARIABLE, name)
    monkeypatch.setenv(CACHE_VARIABLE, str(cache))
