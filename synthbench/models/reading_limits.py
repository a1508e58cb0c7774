"""How many tokens an encoder reads of a text, and what cuts it into tokens; no weights are loaded."""

import json
from pathlib import Path
from typing import Any

from synthbench.errors import UserError
from synthbench.models import reference
from synthbench.models.pretrained import Pretrained
from synthbench.terminal import quiet_transformers

_SETTINGS, _MODULES, _CONFIG = "sentence_bert_config.json", "modules.json", "config.json"
UNLIMITED = 10**6
"""Tokenizers without a limit name a greater number."""


def tokenizer_and_limit(base: Pretrained, longest: int | None = None) -> tuple[Any, int] | None:
    """Return the base's tokenizer, and the most tokens that are read of a text: at most `longest`, if given.

    None of a base that reads whole texts, or that is not on this machine; nothing is downloaded.
    """
    folder = None if not base.has_layers else _folder(base)
    if folder is None:
        return None
    from transformers import AutoTokenizer

    try:
        with quiet_transformers():
            tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    except (OSError, ValueError, TypeError, KeyError):
        return None
    own = base.max_length or _value(folder / _SETTINGS, "max_seq_length") or tokenizer.model_max_length
    limits = (own, longest, _value(folder / _CONFIG, "max_position_embeddings"))
    known = [limit for limit in limits if isinstance(limit, int) and 0 < limit < UNLIMITED]
    return (tokenizer, min(known)) if known else None


def _folder(base: Pretrained) -> Path | None:
    """Return the folder with the transformer of a base; None if it is not on this machine."""
    from huggingface_hub import snapshot_download

    try:
        folder = reference.local(base.model)
        if folder is None:
            found = snapshot_download(base.model, revision=base.revision, local_files_only=True)
            folder = Path(found)
    except (UserError, OSError, ValueError):
        return None
    modules = _read(folder / _MODULES)
    first = modules[0] if isinstance(modules, list) and modules else {}
    inner = folder / str(first.get("path") or "") if isinstance(first, dict) else folder
    return inner if inner.is_dir() and inner.resolve().is_relative_to(folder.resolve()) else folder


def _value(file: Path, key: str) -> int | None:
    content = _read(file)
    value = content.get(key) if isinstance(content, dict) else None
    return value if isinstance(value, int) else None


def _read(file: Path) -> Any:  # noqa: ANN401 - whatever the file holds
    try:
        return json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
