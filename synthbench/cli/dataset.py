"""The data set that a command is given: a folder, a file, or the id of a cached stage."""

from pathlib import Path
from typing import Annotated

import typer

from synthbench.errors import UserError
from synthbench.home import home

MIN_ID_LENGTH = 6

Dataset = Annotated[
    Path,
    typer.Argument(
        metavar="DATASET",
        help="A folder that `import` or `convert` wrote; a .jsonl, .csv or .tsv file; or, for the data of an "
        "experiment, the id of a cached stage as `plan --stages` shows it.",
    ),
]


def found(dataset: Path) -> tuple[Path, str]:
    """Return where a data set lies, and its title: a path, or the beginning of a stored stage's identity.

    Raises UserError if a name that looks like an identity is not exactly one stage's, or the stage made none.
    """
    from synthbench.pipeline.engine.store import ArtifactDamagedError, Store

    name = str(dataset)
    if dataset.exists() or len(name) < MIN_ID_LENGTH or set(name) - set("0123456789abcdef"):
        return dataset, name
    store = Store(home() / "store")
    identities = store.find(name)
    if len(identities) != 1:
        several = f"{len(identities)} stages in {store.root} have ids that begin so; give more of the id"
        none = (
            f"neither a file nor a folder, nor a stage in {store.root}; a stage that `synthbench plan` shows "
            "as to run has no data yet: run it first"
        )
        raise UserError(f"{name}: {several if identities else none}")
    try:
        store.check(identities[0], thorough=True)
    except ArtifactDamagedError as damage:
        raise UserError(
            f"{name}: the stored artifact is damaged ({damage}); `synthbench clean --verify` discards it, "
            "and the next run computes it again"
        ) from damage
    label = store.record(identities[0]).get("label", "")
    folder = store.folder(identities[0])
    if not (folder / "dataset").is_dir():
        raise UserError(f"{name}: the stage '{label}' made no data set")
    return folder, f"{name}: {label}"
