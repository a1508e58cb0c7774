"""Work that several processes share: for every method that says so, shards make what one process makes."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, cast

import pytest
from contract.test_golden_outputs import CASES, Case, Context

import synthbench_augsbert.substitution
from synthbench import labellers
from synthbench.api import GenerationContext, Method, Unit

SMALL_BATCH = 2
SHARED = {name: case for name, case in CASES.items() if case.group == "methods"}


@dataclass
class ShardContext(Context):
    """The context of a shard."""

    number: int = 0
    of: int = 1

    def is_mine(self, piece: int) -> bool:
        return piece % self.of == self.number


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a few records be several pieces of work."""
    monkeypatch.setattr(labellers, "BATCH_PAIRS", SMALL_BATCH)
    monkeypatch.setattr(synthbench_augsbert.substitution, "BATCH_PAIRS", SMALL_BATCH)


def configured(case: Case) -> Method:
    method: Method = case.plugin.model_validate_json(json.dumps(case.settings))
    return method


def units(case: Case, number: int, of: int) -> list[Unit]:
    """Return what a shard makes."""
    method = configured(case)
    context = ShardContext(case.data, number=number, of=of)
    sources = {name: each for name, each in case.data.items() if name not in method.needs()}
    made = list(method.generate(sources, cast("GenerationContext", context)))
    assert all(isinstance(each, Unit) for each in made)
    return cast("list[Unit]", made)


def shown(made: Sequence[Unit]) -> list[dict[str, Any]]:
    return [asdict(unit) for unit in sorted(made, key=lambda unit: (unit.position, unit.key))]


@pytest.mark.parametrize("name", [name for name, case in SHARED.items() if configured(case).can_be_sharded()])
def test_shards_make_the_units_of_one_process_each_once(name: str) -> None:
    whole = units(CASES[name], 0, 1)
    made = [units(CASES[name], number, 3) for number in range(3)]
    assert shown([unit for shard in made for unit in shard]) == shown(whole)
    if len(whole) >= 2 * SMALL_BATCH:
        assert max(map(len, made)) < len(whole)


def test_all_that_takes_long_can_be_shared() -> None:
    alone = {name for name, case in SHARED.items() if not configured(case).can_be_sharded()}
    assert alone == {"augsbert kde", "augsbert kde by class", "augsbert both", "relabel mixed"}
