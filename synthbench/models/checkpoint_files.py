"""Which of a repository's files make up a checkpoint: weights, configuration, tokenizer, code."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from synthbench.base.errors import UserError
from synthbench.base.user_files import read_settings
from synthbench.hub.repositories import HubRepository

SAFETENSORS, PICKLED = "*.safetensors", "pytorch_model*.bin"
MODULES = "modules.json"
DESCRIPTIONS = ("config.json", "*/config.json", MODULES, "config_sentence_transformers.json")
"""The files that describe a model's kind, a few kB."""
CODE = ("*.py",)
"""Downloaded with a model, but never run without its `trust_remote_code`."""
CARD = "README.md"
"""The model's card, which may name its training sets."""
UNUSED = ("onnx/*", "openvino/*", "coreml/*", "*.onnx", "training_args.bin", ".cache/*")
_SETTINGS = ("*.json", "*.txt", "*.model", "*.jinja", *CODE, CARD)
_COPIES = ("original/*", "consolidated*")
"""Weights that a repository holds a second time, in the format of their maker."""


@dataclass(frozen=True)
class ModelFiles:
    """The files of a model on the hub."""

    repository: HubRepository

    def chosen(self, names: Sequence[str]) -> list[str]:
        """Return the names that are downloaded; pickled weights only for folders without others.

        Raises UserError if none of them are weights.
        """
        usable = [name for name in names if not _is_any(name, (*UNUSED, *_COPIES))]
        weights = [name for name in usable if fnmatch(name, SAFETENSORS)]
        pickled = [name for name in usable if fnmatch(name.rpartition("/")[2], PICKLED)]
        taken = {_folder(name) for name in weights}
        weights += [name for name in pickled if _folder(name) not in taken and name.count("/") < 2]
        if not weights:
            shown = ", ".join(sorted(name for name in usable if not _is_any(name, _SETTINGS))[:5])
            raise UserError(
                f"{self.repository}: no weights that we read: {SAFETENSORS} or {PICKLED}"
                f"{f'; it has {shown}' if shown else ''}"
            )
        return [*(name for name in usable if _is_any(name, _SETTINGS)), *weights]

    def download(self) -> Path:
        """Return the folder of the checkpoint's files, downloading those missing in the local cache."""
        ignored = (*UNUSED, *_COPIES)
        folder = self.repository.snapshot((SAFETENSORS, *_SETTINGS), ignored)
        lacking = [path for path in module_folders(folder) if not any((folder / path).glob(SAFETENSORS))]
        if not lacking:
            return folder
        pickled = [f"{path}/{PICKLED}" if path else PICKLED for path in lacking]
        return self.repository.snapshot((SAFETENSORS, *_SETTINGS, *pickled), ignored)


def _is_any(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatch(name, pattern) for pattern in patterns)


def _folder(name: str) -> str:
    return name.rpartition("/")[0]


def modules(folder: Path) -> list[dict[str, Any]]:
    """Return the modules that sentence-transformers saved, [] for any other checkpoint."""
    if not (folder / MODULES).is_file():
        return []
    try:
        found = json.loads(read_settings(folder / MODULES))
    except (ValueError, RecursionError):
        return []
    is_list = isinstance(found, list) and all(isinstance(each, dict) for each in found)
    return found if is_list else []


def module_folders(folder: Path) -> list[str]:
    """Return the folders of a checkpoint's modules, relative to its own; "" is its own."""
    given = [each.get("path") for each in modules(folder)]
    found = [path for path in given if isinstance(path, str) and not {"/", ".."} & {path, path[:1], path[:2]}]
    return found or [""]
