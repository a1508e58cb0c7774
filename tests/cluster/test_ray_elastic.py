"""Ray clusters that begin without nodes, grow and shrink, and nodes that are not like the driver."""

import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import ray
from fake_stages import Graph, names, stage
from fakes import Lines
from ray_nodes import NODE, add_node, fake_cluster

import synthbench
from synthbench.base.runtime import Runtime
from synthbench.engine.monitor import RunMonitor
from synthbench.engine.ray_executor import ray_cluster
from synthbench.engine.ray_nodes import Needs
from synthbench.engine.runner import Runner, RunReport
from synthbench.engine.stage import Stage
from synthbench.engine.store import Store

pytestmark = pytest.mark.experiments

TESTS = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def _tests_on_the_path() -> Iterator[None]:
    """Let workers import the fake stages: they inherit the variables of the nodes, which start later."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join([str(TESTS), str(TESTS / "cluster")]))
        yield


@pytest.fixture
def cluster(_tests_on_the_path: None) -> Iterator[Any]:
    """A head without cores."""
    with fake_cluster(1, 0) as nodes:
        yield nodes


def run(
    cluster: Any,
    store: Store,
    stages: Sequence[Stage],
    heard: Callable[[str], object] = lambda _: None,
    monitor: RunMonitor | None = None,
) -> RunReport:
    """Run stages on the cluster; workers may not be lost, but nodes may."""
    runtime = Runtime(executor="ray", address=cluster.address, retries=0, wait_for_nodes_s=120)
    lines = Lines()

    def say(line: str) -> None:
        heard(line)

    lines.say = say  # type: ignore[method-assign]
    needs = lambda *_: Needs(1, 0.0, 0.1)  # noqa: E731
    with ray_cluster(runtime, stages, needs, store.root, 1, say) as executor:
        ray.get(executor._reports.actor().taken.remote())  # it has started
        runner = Runner(store, executor, runtime, lines, monitor=monitor or RunMonitor())
        return runner.run(Graph(stages))  # type: ignore[arg-type]


def once(word: str, do: Callable[[], object]) -> Callable[[str], None]:
    """Return a listener that does something, once, when it hears a word; Ray wants the main thread for it."""
    done: list[str] = []

    def heard(line: str) -> None:
        if word in line and not done:
            done.append(line)
            do()

    return heard


def test_a_run_begins_without_nodes_and_uses_those_that_join(cluster: Any, store: Store) -> None:
    heard: list[str] = []
    joins = once("waiting up to", lambda: (add_node(cluster), add_node(cluster)))
    stages = [stage(f"s{number}", behaviour="sleep 0.5") for number in range(6)]
    report = run(cluster, store, stages, lambda line: (heard.append(line), joins(line)))
    assert sorted(names(report.executed)) == sorted(names(stages))
    assert any("there is none yet" in line for line in heard)
    assert any("node joined: " in line for line in heard)


def test_a_node_that_is_taken_away_is_no_failure(cluster: Any, store: Store) -> None:
    """Its stage runs elsewhere, although no lost worker is forgiven."""
    first = cluster.add_node(**NODE, num_cpus=1)
    cluster.wait_for_nodes()

    def replace() -> None:
        cluster.remove_node(first, allow_graceful=False)
        add_node(cluster)

    heard: list[str] = []
    # The second stage runs, or is about to, once the first is done.
    replaces = once("done work quick", replace)
    quick = stage("quick")
    long = stage("long", quick, behaviour="sleep 8")
    report = run(cluster, store, [quick, long], lambda line: (heard.append(line), replaces(line)))
    assert not report.failed
    assert any(line.startswith("node gone: ") for line in heard)


def test_a_node_with_other_code_that_joins_gets_no_stage(
    cluster: Any, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ray lets workers import from the driver's working folder first."""
    monkeypatch.chdir(tmp_path)
    source = Path(synthbench.__file__).parent
    shutil.copytree(source, tmp_path / "other" / "synthbench", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "other" / "synthbench" / "more.py").write_text("MORE = 1\n", encoding="utf-8")
    path = os.pathsep.join([str(tmp_path / "other"), os.environ["PYTHONPATH"]])
    heard: list[str] = []

    joins = once("waiting up to", lambda: cluster.add_node(**NODE, num_cpus=1, env_vars={"PYTHONPATH": path}))
    another = once("not used: ", lambda: add_node(cluster))
    report = run(
        cluster,
        store,
        [stage("a"), stage("b")],
        lambda line: (heard.append(line), joins(line), another(line)),
    )
    assert sorted(names(report.executed)) == ["a", "b"]
    assert any(line.startswith("not used: node ") and "install the same" in line for line in heard)


def test_progress_on_nodes_reaches_the_monitor(cluster: Any, store: Store) -> None:
    add_node(cluster)
    cluster.wait_for_nodes()
    told: list[tuple[str, int, int]] = []

    class Listening(RunMonitor):
        def advanced(self, identity: str, done: int, total: int) -> None:
            told.append((identity, done, total))

    counts = stage("counts", behaviour="counts")
    report = run(cluster, store, [counts, stage("later", counts, behaviour="sleep 5")], monitor=Listening())
    assert not report.failed
    assert {identity for identity, _, _ in told} == {counts.identity}
