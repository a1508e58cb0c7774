"""Sharded methods: the shards' joint output equals that of a single process."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, cast

import pytest
from contract.method_cases import METHOD_CASES, MethodCase
from contract.stand_ins import Context

import synthbench_augsbert.substitution
import synthbench_gpl.method
import synthbench_multicsr.writing
from synthbench.api import GenerationContext, Unit
from synthbench.plugins import labellers

SMALL_BATCH = 2


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
    monkeypatch.setattr(synthbench_gpl.method, "AT_ONCE", SMALL_BATCH)
    monkeypatch.setattr(synthbench_multicsr.writing, "AT_ONCE", SMALL_BATCH)


def units(case: MethodCase, number: int, of: int) -> list[Unit]:
    """Return a shard's output."""
    context = ShardContext(case.data, case.reply, number=number, of=of)
    made = list(case.configured().generate(case.sources(), cast("GenerationContext", context)))
    assert all(isinstance(each, Unit) for each in made)
    return cast("list[Unit]", made)


def shown(made: Sequence[Unit]) -> list[dict[str, Any]]:
    return [asdict(unit) for unit in sorted(made, key=lambda unit: (unit.position, unit.key))]


@pytest.mark.parametrize(
    "name", [name for name, case in METHOD_CASES.items() if case.configured().can_be_sharded()]
)
def test_shards_together_make_each_unit_of_a_single_process_once(name: str) -> None:
    whole = units(METHOD_CASES[name], 0, 1)
    made = [units(METHOD_CASES[name], number, 3) for number in range(3)]
    assert shown([unit for shard in made for unit in shard]) == shown(whole)
    if len(whole) >= 2 * SMALL_BATCH:
        assert max(map(len, made)) < len(whole)


def test_only_the_listed_methods_can_not_be_sharded() -> None:
    alone = {name for name, case in METHOD_CASES.items() if not case.configured().can_be_sharded()}
    assert alone == {"augsbert kde", "augsbert kde by class", "augsbert both", "relabel mixed"}
