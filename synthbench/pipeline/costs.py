"""What the generate stages of a plan would cost, as far as their methods can tell."""

from collections.abc import Iterator, Mapping, Sequence

from synthbench.pipeline.generation import SOURCE, Generate
from synthbench.pipeline.operations import ReadSource, read_dataset
from synthbench.pipeline.stage import Stage
from synthbench.pipeline.status import StageStatus
from synthbench.pipeline.store import Store


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
    sizes: dict[str, int] = {}
    for name, source in stage.inputs.items():
        number = _size(source, store)
        if name.startswith(SOURCE) and number is not None:
            sizes[name.removeprefix(SOURCE)] = number
    return sizes


def _size(source: Stage, store: Store) -> int | None:
    if store.has(source.identity):
        return len(read_dataset(store.folder(source.identity)))
    operation = source.operation
    return operation.source.expected_records if isinstance(operation, ReadSource) else None
