"""Whole runs whose requests to the store fail again and again."""

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from faulty_s3 import EXPIRED, KINDS, faulty_s3
from s3 import BUCKET, log_in, make_bucket, s3_server
from served_llms import PRICE, Served, asking_project, check_against_the_servers_count, serving
from shared_stores import hashes
from small_experiment import Called, Project, finished, tables

from synthbench.engine.store import Store
from synthbench.engine.stores import CACHE_VARIABLE, VARIABLE, shared_store

pytestmark = pytest.mark.experiments


@dataclass(frozen=True)
class LocalRun:
    """An undisturbed run by one process, and its LLM."""

    project: Project
    called: Called
    server: Served


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory, bert: Path, empty_database: Path) -> Iterator[LocalRun]:
    folder = tmp_path_factory.mktemp("local")
    with serving(folder) as server:
        project = asking_project(folder, bert, empty_database, server)
        called = finished(project.start("run", project.file))
        assert (called.code, called.errors) == (0, [])
        yield LocalRun(project, called, server)


@pytest.mark.parametrize("share", [0.05, 0.3])
def test_two_commands_whose_requests_fail_compute_and_pay_everything_once(
    share: float,
    local: LocalRun,
    tmp_path: Path,
    bert: Path,
    empty_database: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Faults of all kinds, and credentials that expire during the runs."""
    (tmp_path / "credentials").write_text("[default]\naws_access_key_id = k\naws_secret_access_key = s\n")
    with s3_server() as address, faulty_s3(address) as faults, serving(tmp_path) as server:
        make_bucket(address)
        log_in(monkeypatch, faults.address)
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            monkeypatch.delenv(name)
        monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
        url = f"s3://{BUCKET}/{tmp_path.name}"
        monkeypatch.setenv(VARIABLE, url)
        machines = []
        for name in ("here", "there"):
            project = asking_project(tmp_path / name, bert, empty_database, server)
            machines.append(replace(project, environment={CACHE_VARIABLE: str(tmp_path / name / "cache")}))
        faults.seeded(0, share, KINDS, most_in_a_row=2)
        for path in ("attempts/", "artifacts/"):
            faults.next("PUT", path, EXPIRED, EXPIRED)
        started = [machine.start("run", machine.file) for machine in machines]
        with ThreadPoolExecutor(len(started)) as pool:
            called = list(pool.map(finished, started))
        counts = faults.counts()
        faults.up()
        for each in called:
            assert (each.code, each.errors) == (0, []), each.err[-3000:]
        executed = [Counter(each.executed) for each in called]
        print(f"stages: {[each.total() for each in executed]}; requests by fault: {dict(counts)}")
        assert executed[0] + executed[1] == Counter(local.called.executed)
        assert hashes(shared_store(url, tmp_path)) == hashes(Store(local.project.home / "store"))
        for machine in machines:
            assert tables(machine)["table.csv"] == tables(local.project)["table.csv"]
            check_against_the_servers_count(machine, server, PRICE)
        assert len(server.outcomes()) == len(local.server.outcomes())
    assert counts.keys() == {"", *KINDS, EXPIRED}
