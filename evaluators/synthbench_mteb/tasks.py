"""Open mteb's tasks with their data, from the hub, its cache or a local folder."""

import logging
import random
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from synthbench.api import UserError
from synthbench_mteb.local_data import named_by_content


@contextmanager
def isolated() -> Iterator[None]:
    """Undo mteb's seeding of Python, numpy and torch, and silence its warnings and progress bars.

    mteb seeds at import and whenever it opens a task.
    """
    import numpy as np
    import torch

    python, legacy = random.getstate(), np.random.get_state()
    with torch.random.fork_rng(), warnings.catch_warnings(), _quietly():
        warnings.simplefilter("ignore")
        try:
            yield
        finally:
            random.setstate(python)
            np.random.set_state(legacy)


@contextmanager
def _quietly() -> Iterator[None]:
    import datasets

    were_disabled = datasets.are_progress_bars_disabled()
    logger = logging.getLogger("mteb")
    level = logger.level
    datasets.disable_progress_bars()
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)
        if not were_disabled:
            datasets.enable_progress_bars()


def open_task(name: str, benchmark: str | None, folder: Path | None) -> Any:  # noqa: ANN401 - an AbsTask of mteb
    """Return a new task with its data, in the benchmark's languages and splits if one is named.

    Raises UserError if mteb has no such task, it is not one for text encoders, or its data are missing.
    """
    with isolated():
        task = _new_task(name, benchmark)
        _check_kind(task)
        if folder is None:
            _load(task, None)
            return task
        with named_by_content(folder) as named:
            data = {**task.metadata.dataset, "path": str(named), "revision": "local"}
            task.metadata = task.metadata.model_copy(update={"dataset": data})
            _load(task, folder)
    return task


def _new_task(name: str, benchmark: str | None) -> Any:  # noqa: ANN401
    """Return a new task object, so that no earlier use has drawn from its random numbers."""
    import mteb

    if benchmark is None:
        try:
            return mteb.get_task(name)
        except KeyError:
            raise UserError(f"mteb has no task '{name}'") from None
    try:
        tasks = [
            part
            for task in mteb.get_benchmark(benchmark).tasks
            for part in (task, *(task.metadata.tasks if task.is_aggregate else ()))
        ]
        listed = {task.metadata.name: task for task in tasks}[name]
    except KeyError:
        raise UserError(f"mteb's benchmark '{benchmark}' has no task '{name}'") from None
    task = type(listed)()
    task.hf_subsets = listed.hf_subsets
    return task.filter_eval_splits(listed.eval_splits)


def _check_kind(task: Any) -> None:  # noqa: ANN401
    name = task.metadata.name
    if task.is_aggregate:
        parts = ", ".join(each.metadata.name for each in task.metadata.tasks)
        raise UserError(f"{name}: is the mean of other tasks; list these: {parts}")
    others = [each for each in task.metadata.modalities if each != "text"]
    if others:
        raise UserError(f"{name}: is a task on {' and '.join(others)}; the models here read text only")


def _load(task: Any, folder: Path | None) -> None:  # noqa: ANN401
    from datasets.exceptions import DatasetsError

    try:
        task.load_data()
        if hasattr(task, "convert_v1_dataset_format_to_v2"):
            task.convert_v1_dataset_format_to_v2(num_proc=None)
    except (OSError, ValueError, KeyError, TypeError, RuntimeError, DatasetsError) as error:
        raise UserError(_why_not(task, folder, error)) from error


def _why_not(task: Any, folder: Path | None, error: Exception) -> str:  # noqa: ANN401
    name, said = task.metadata.name, (str(error).strip() or type(error).__name__).splitlines()[0]
    if folder is not None:
        return f"{name}: {folder} does not hold its data set as mteb reads it: {said}"
    data = task.metadata.dataset
    where = f"{data['path']} at {data['revision']}"
    return (
        f"{name}: its data ({where}) are not in the local cache, and could not be fetched: {said};"
        f" `folder: DIR` takes them from DIR/{name}"
    )
