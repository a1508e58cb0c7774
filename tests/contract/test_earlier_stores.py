"""Stores of earlier versions serve today's code: the same work has the same identity."""

import hashlib
import json
import tarfile
from pathlib import Path

import pytest
from shipped_files import SHIPPED
from small_experiment import Project

from synthbench.config.load import load_experiment
from synthbench.config.overrides import Overrides
from synthbench.pipeline.planning import make_plan

ROOT = Path(__file__).parents[2]
BEFORE = Path(__file__).parent / "before"
IDENTITIES = BEFORE / "identities.json"


def test_a_store_of_an_earlier_version_serves_the_same_experiment(tmp_path: Path) -> None:
    """`store.tar.xz` was written in November 2026, before the modules got their present names.

    What BM25 found then is made again, since it found sentences without a common word, and all that follows.
    `exclude` compares pairs otherwise since then, so test sets and their scores are made again, too.
    """
    with tarfile.open(BEFORE / "store.tar.xz") as archive:
        archive.extractall(tmp_path, filter="data")
    called = Project(tmp_path / "experiment", tmp_path / "home").call("run", "small.yaml")
    assert called.code == 0
    others = [stage for stage in called.executed if stage.split()[0] not in ("exclude", "evaluate")]
    assert others
    assert all(" augsbert " in stage and not stage.startswith("source") for stage in others)
    assert "13 stages executed, 6 reused" in called.err


@pytest.mark.parametrize("file", SHIPPED.values(), ids=lambda path: path.stem)
def test_an_experiments_stages_keep_their_identities(file: Path, request: pytest.FixtureRequest) -> None:
    """A stage under another identity is computed again: only a new version or another experiment may do that.

    After such a change: `pytest tests/contract/test_earlier_stores.py --renew`.
    """
    plan = make_plan(load_experiment(file, Overrides(profile="sandbox")))
    digest = hashlib.sha256("\n".join(sorted(plan.stages)).encode()).hexdigest()
    found = {"stages": len(plan.stages), "sha256": digest}
    pinned = json.loads(IDENTITIES.read_text("utf-8"))
    if request.config.getoption("renew"):
        pinned[file.stem] = found
        IDENTITIES.write_text(json.dumps(pinned, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    assert found == pinned.get(file.stem)
