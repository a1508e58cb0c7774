"""Single files of data sets on the Hugging Face hub, or in its local cache."""

import re
from fnmatch import fnmatch
from pathlib import Path

from synthbench.errors import UserError
from synthbench.terminal import bars_of_libraries

COMMIT = re.compile(r"[0-9a-f]{40}")


def commit(dataset: str, revision: str | None) -> str:
    """Return `revision`; None: the commit that is in the local cache as main, else the hub's newest.

    Raises UserError if the hub would have to be asked and can't be.
    """
    from huggingface_hub import HfApi, constants

    if revision is not None:
        return revision
    ref = Path(constants.HF_HUB_CACHE) / f"datasets--{dataset.replace('/', '--')}" / "refs" / "main"
    if ref.is_file():
        return ref.read_text(encoding="utf-8").strip()
    try:
        return str(HfApi().dataset_info(dataset).sha)
    except _errors() as error:
        raise _unavailable(dataset, "its newest commit", error) from error


def resolve(dataset: str, revision: str | None, pattern: str) -> Path:
    """Return the data set's one file that matches `pattern`, downloading what the local cache lacks.

    Raises UserError if it can't be had, or not exactly one file matches.
    """
    from huggingface_hub import snapshot_download

    found = commit(dataset, revision)
    try:
        with bars_of_libraries():
            folder = Path(
                snapshot_download(dataset, repo_type="dataset", revision=found, allow_patterns=[pattern])
            )
    except _errors() as error:
        raise _unavailable(dataset, found, error) from error
    names = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    matching = [name for name in names if fnmatch(name, pattern)]
    if len(matching) != 1:
        which = f"{len(matching)} files match: {', '.join(matching[:3])} ..." if matching else "no such file"
        raise UserError(f"{dataset}/{pattern} at {found}: {which}; `file` must name one")
    return folder / matching[0]


def _errors() -> tuple[type[Exception], ...]:
    from huggingface_hub import errors

    # The transport's own error class changes its home with the hub's HTTP library; this is its name here.
    transport_error: type[Exception] = errors.HfHubHTTPError.__bases__[0]
    return (OSError, transport_error, errors.EntryNotFoundError, errors.HFValidationError)


def _unavailable(dataset: str, what: str, error: Exception) -> UserError:
    reason = (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")
    return UserError(
        f"{dataset}: {what} can't be had ({reason}); with a connection, 'hf download {dataset} --repo-type"
        " dataset' puts it into the cache"
    )
