"""What the generate stages of a plan would cost, as far as their methods can tell."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress

from synthbench.pipeline.artifacts import Artifacts
from synthbench.pipeline.generation import SOURCE, Generate
from synthbench.pipeline.operations import ReadSource
from synthbench.pipeline.stage import Stage
from synthbench.pipeline.status import StageStatus
from synthbench.pipeline.store import ArtifactDamagedError, Store


def costs(found: Sequence[StageStatus], store: Store) -> Iterator[tuple[Stage, tuple[str, ...]]]:
    """Yield each generate stage that is to run with what it would cost, in lines."""
    for status in found:
        operation = status.stage.operation
        if status.is_to_run and isinstance(operation, Generate):
            sizes = _num_records(status.stage, store)
            lines = (*operation.method.cost(sizes), *_asking(operation, sizes))
            if lines:
                yield status.stage, lines


def _asking(operation: Generate, sizes: Mapping[str, int]) -> Iterator[str]:
    amount = operation.method.asks(sizes) if operation.llm is not None else None
    if operation.llm is not None and amount is not None:
        yield from amount.lines(operation.llm.at(operation.llm.address()))


def _num_records(stage: Stage, store: Store) -> Mapping[str, int]:
    sources = {
        name.removeprefix(SOURCE): source for name, source in stage.inputs.items() if name.startswith(SOURCE)
    }
    sizes = {role: _size(source, store) for role, source in sources.items()}
    return {role: number for role, number in sizes.items() if number is not None}


def _size(source: Stage, store: Store) -> int | None:
    artifacts = Artifacts(store)
    with suppress(ArtifactDamagedError):  # the stage's status says so
        if artifacts.has_dataset(source.identity):
            return artifacts.manifest(source.identity).num_records
    operation = source.operation
    return operation.source.expected_records if isinstance(operation, ReadSource) else None
