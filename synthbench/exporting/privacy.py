"""Keep keys, tokens and the user's folder names out of exports."""

import os
from collections.abc import Iterator
from pathlib import Path

from synthbench.base.errors import UserError
from synthbench.base.patterns import linear_pattern
from synthbench.base.redaction import SHORTEST_SECRET, is_secret, masked

_HOMES = linear_pattern(r"(?:/home|/Users)/[^/\s\"'`]+|/root(?=/)|[A-Za-z]:\\+Users\\+[^/\\\s\"'`]+")
_GOES_ON = linear_pattern(r"^(?:[\w-]|\.\w)")
"""Matches what follows a folder's name if the name is longer: "/proj" in "/project2"."""
_CHECKED = ("*.md", "*.yaml", "*.json")
_VOCABULARY = ("tokenizer.json", "vocab.json", "added_tokens.json", "whitespacetokenizer_config.json")
"""Vocabulary files: any string may occur in them, and none is a path or key that somebody wrote."""
FEWEST_PARTS = 3
"""Parts a folder's path must have to count as private; /tmp reveals nothing."""


def public(text: str) -> str:
    """Return the text without keys, passwords and the names of the user's folders.

    The working folder becomes ".", a home folder "~".
    """
    for folder, name in _own_folders():
        first, *others = text.split(folder)
        text = first + "".join((folder if _GOES_ON.match(other) else name) + other for other in others)
    return masked(_HOMES.sub("~", text))


def check_public(folder: Path) -> None:
    """Raise UserError if a file contains a key from the environment, the hub token or the user's home folder.

    Checks .md, .yaml and .json files, except tokenizers' vocabularies. The error names the file and the
    variable, never the value.
    """
    private = dict(_private())
    for pattern in _CHECKED:
        for file in sorted(folder.rglob(pattern)):
            if file.name in _VOCABULARY:
                continue
            text = file.read_text(encoding="utf-8", errors="replace")
            for value, name in private.items():
                if value in text:
                    raise UserError(
                        f"{file.relative_to(folder)} would contain {name}; nothing was written. Take it"
                        " out of the experiment file"
                    )


def _own_folders() -> Iterator[tuple[str, str]]:
    folders = {str(Path.cwd()): ".", str(Path.home()): "~"}
    # The longer one first: the working folder is usually inside the home folder.
    for folder in sorted(folders, key=len, reverse=True):
        if len(Path(folder).parts) >= FEWEST_PARTS:
            yield folder, folders[folder]


def _private() -> Iterator[tuple[str, str]]:
    from huggingface_hub import get_token

    if token := get_token():
        yield token, "the hub's token"
    for name, value in os.environ.items():
        if is_secret(name) and len(value) >= SHORTEST_SECRET:
            yield value, f"the value of ${name}"
    if len(Path.home().parts) >= FEWEST_PARTS:
        yield f"{Path.home()}/", "the path of your own folder"
