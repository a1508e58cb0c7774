"""The short study that `init` writes on a user's own data, with what was found in them."""

import json
import os
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from synthbench.base.patterns import linear_pattern
from synthbench.worlds import NAME

ENGLISH_BASE = "sentence-transformers/all-MiniLM-L6-v2"
OTHER_BASE = "sentence-transformers/paraphrase-multilingual-MiniLM-L12-v2"
"""The base for texts of other languages, or of several."""
MACHINE_HOUR_USD = 1.0
WIDTH = 110
_PLAIN = linear_pattern(r"^[A-Za-z./][\w./:-]*[\w./-]\Z")
HEAD = f"""\
# Which synthetic data make the best sentence encoder for these data?
#
#   synthbench run study.yaml --profile {NAME}   at once: small models, a simulated LLM; no evidence
#   synthbench plan study.yaml                    time, tokens and money of the real run; computes nothing
#   synthbench run study.yaml                     the real run
#   synthbench expand study.yaml                  the long file that this short one becomes
"""
RECOMMEND = (
    "#   synthbench recommend study.yaml               the best recipe within the budget, with its evidence\n"
)


@dataclass(frozen=True)
class OwnData:
    """What `init` was given; `sources` are files by role."""

    sources: Mapping[str, Path]
    llm: str | None = None
    base: str | None = None
    budget: float | None = None


def own_study(name: str, folder: Path, given: OwnData) -> tuple[str, list[str]]:
    """Return the short file of a study that will be in this folder, and the findings on its data.

    The data stay where they are: the file names them. Raises UserError for files that can't be read or
    guessed, and for a base that does not know the texts' language.
    """
    from synthbench.sources.guessing import guess
    from synthbench.sources.looking import look

    found = {role: guess(file, role) for role, file in given.sources.items()}
    languages = {each.language for each in found.values() if each.language}
    base = given.base or (ENGLISH_BASE if languages == {"en"} else OTHER_BASE)
    findings = list(look(found, base))
    lines = [
        HEAD + (RECOMMEND if given.budget is not None else "") + "#\n# Found in the data:",
        *(textwrap.fill(each, WIDTH, initial_indent="#   ", subsequent_indent="#     ") for each in findings),
        "",
        f"experiment: {name}",
        f"base: {_scalar(base)}",
        "sources:",
        *(f"  {role}: {_scalar(_seen_from(folder, file))}" for role, file in given.sources.items()),
        *([f"llm: {_scalar(given.llm)}"] if given.llm else []),
        *(
            [f"budget: {{usd: {given.budget:.12g}, machine_hour_usd: {MACHINE_HOUR_USD}}}"]
            if given.budget is not None
            else []
        ),
        "variants: all    # each recipe that these sources allow: synthbench list recipes",
    ]
    return "\n".join(lines) + "\n", findings


def _seen_from(folder: Path, file: Path) -> str:
    return Path(os.path.relpath(file.resolve(), folder.resolve())).as_posix()


def _scalar(text: str) -> str:
    """Return a text as YAML reads it, in quotes where it needs them."""
    return text if _PLAIN.match(text) else json.dumps(text, ensure_ascii=False)
