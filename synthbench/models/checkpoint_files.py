"""Choice of the files in a repository that make up a checkpoint: weights, configuration, tokenizer, code."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from glob import escape
from pathlib import Path
from typing import Any

from synthbench.base.errors import UserError
from synthbench.base.user_files import read_settings
from synthbench.hub.repositories import HubRepository, is_reachable

SAFETENSORS, PICKLED = "*.safetensors", "pytorch_model*.bin"
MODULES = "modules.json"
DESCRIPTIONS = ("config.json", "*/config.json", MODULES, "config_sentence_transformers.json")
"""The files that describe a model's kind, a few kB."""
CODE = ("*.py",)
"""Downloaded with a model, but never run without its `trust_remote_code`."""
CARD = "README.md"
"""The model's card, which may name its training sets."""
UNUSED = ("onnx/*", "openvino/*", "coreml/*", "*.onnx", "training_args.bin", ".cache/*")
_OF_COLBERT = "artifact.metadata"
"""Where the authors of ColBERT save lengths and prefixes of texts."""
_SETTINGS = ("*.json", "*.txt", "*.model", "*.jinja", _OF_COLBERT, *CODE, CARD)
_COPIES = ("original/*", "consolidated*", "checkpoint-*/*")
"""Further copies of the weights: in the format of the model's maker, or of an earlier training step."""
_IN_MODULE = f"[0-9]*_*/{PICKLED}"
"""Weights in a folder of sentence-transformers, such as 2_Dense."""


@dataclass(frozen=True)
class ModelFiles:
    """The files of a model on the hub."""

    repository: HubRepository

    def chosen(self, names: Sequence[str]) -> list[str]:
        """Return the names of the files to download; pickled weights only in folders without safetensors.

        Raises UserError if none of the files holds weights.
        """
        usable = [name for name in names if not _is_any(name, (*UNUSED, *_COPIES))]
        weights = [name for name in usable if fnmatch(name, SAFETENSORS)]
        taken = {_folder(name) for name in weights}
        pickled = [name for name in usable if _is_any(name, (PICKLED, _IN_MODULE))]
        weights += [name for name in pickled if _folder(name) not in taken]
        if not weights:
            shown = ", ".join(sorted(name for name in usable if not _is_any(name, _SETTINGS))[:5])
            place = "" if is_reachable() else " in the local cache, and the hub can't be reached"
            raise UserError(
                f"{self.repository}: no weights that we read{place}: looked for {SAFETENSORS} and {PICKLED}"
                f"{f'; it has {shown}' if shown else ''}"
            )
        return [*(name for name in usable if _is_any(name, _SETTINGS)), *weights]

    def download(self) -> Path:
        """Return the folder of the checkpoint's files, downloading those missing in the local cache."""
        return self.repository.snapshot([escape(name) for name in self.chosen(self.repository.files())])


def _is_any(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatch(name, pattern) for pattern in patterns)


def _folder(name: str) -> str:
    return name.rpartition("/")[0]


def modules(folder: Path) -> list[dict[str, Any]]:
    """Return the entries of sentence-transformers' modules.json; [] without a valid one."""
    if not (folder / MODULES).is_file():
        return []
    try:
        found = json.loads(read_settings(folder / MODULES))
    except (ValueError, RecursionError):
        return []
    is_list = isinstance(found, list) and all(isinstance(each, dict) for each in found)
    return found if is_list else []
