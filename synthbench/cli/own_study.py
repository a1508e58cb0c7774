"""The short study that `init` writes for a user's own data, with the findings on these data."""

import json
import os
import textwrap
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from synthbench.base.patterns import linear_pattern
from synthbench.worlds import NAME

ENGLISH_BASE = "sentence-transformers/all-MiniLM-L6-v2"
OTHER_BASE = "sentence-transformers/paraphrase-multilingual-MiniLM-L12-v2"
"""The base for texts of other languages, or of several."""
ANY_LANGUAGE = f"    # for many languages; for English alone: {ENGLISH_BASE}"
MACHINE_HOUR_USD = 1.0
WIDTH = 110
_PLAIN = linear_pattern(r"^[A-Za-z./][\w./:-]*[\w./-]\Z")
HEAD = """\
# Which synthetic data make the best sentence encoder for these data?
#
"""
RUN = f"""\
#   synthbench run study.yaml --profile {NAME}   at once: small models, a simulated LLM; no evidence
#   synthbench plan study.yaml                    time, tokens and money of the real run; computes nothing
#   synthbench run study.yaml                     the real run
"""
EXPAND = """\
#   synthbench expand study.yaml                  the long file that this short one becomes
"""
RECOMMEND = (
    "#   synthbench recommend study.yaml               the best recipe within the budget, with its evidence\n"
)


@dataclass(frozen=True)
class OwnData:
    """The data and options given to `init`; `sources` maps a role, such as gold, to a file."""

    sources: Mapping[str, Path]
    llm: str | None = None
    base: str | None = None
    budget: float | None = None

    @property
    def has_passages_alone(self) -> bool:
        """Whether passages are the only data: they have no test set, and only `recommend` makes one."""
        return self.sources.keys() == {"passages"}

    @property
    def command(self) -> str:
        """The command that finds the best data: `run`, or `recommend` with a budget or passages alone."""
        return "run" if self.budget is None and not self.has_passages_alone else "recommend"


def own_study(name: str, folder: Path, given: OwnData) -> tuple[str, list[str]]:
    """Return the text of a study's short file, and the findings on the data.

    The study will be in `folder`; paths of data in the short file are relative to `folder`. If the columns or
    classes of a data file can't be guessed, there are no findings on it; the user describes it in the study.
    Raises UserError for files that can't be read, and for a base that does not know the texts' language.
    """
    from synthbench.sources.columns import UnguessedError
    from synthbench.sources.guessing import Guess, guess
    from synthbench.sources.looking import look

    found: dict[str, Guess] = {}
    for role, file in given.sources.items():
        with suppress(UnguessedError):
            found[role] = guess(file, role)
    languages = {each.language for each in found.values() if each.language}
    is_english = languages == {"en"}
    base = given.base or (ENGLISH_BASE if is_english else OTHER_BASE)
    findings = list(look(found, base)) if found else []
    run = "" if given.has_passages_alone else RUN
    recommend = RECOMMEND if given.command == "recommend" else ""
    usd = "" if given.budget is None else f"{given.budget:.12g}"
    lines = [
        f"{HEAD}{run}{EXPAND}{recommend}#",
        *(["# Found in the data:"] if findings else []),
        *(textwrap.fill(each, WIDTH, initial_indent="#   ", subsequent_indent="#     ") for each in findings),
        "",
        f"experiment: {name}",
        f"base: {_scalar(base)}{'' if given.base or is_english else ANY_LANGUAGE}",
        "sources:",
        *(f"  {role}: {_scalar(_seen_from(folder, file))}" for role, file in given.sources.items()),
        *([f"llm: {_scalar(given.llm)}"] if given.llm else []),
        *([f"budget: {{usd: {usd}, machine_hour_usd: {MACHINE_HOUR_USD}}}"] if usd else []),
        "variants: all    # each recipe that these sources allow: synthbench list recipes",
    ]
    return "\n".join(lines) + "\n", findings


def _seen_from(folder: Path, file: Path) -> str:
    return Path(os.path.relpath(file.resolve(), folder.resolve())).as_posix()


def _scalar(text: str) -> str:
    """Return a text as a YAML scalar, in quotes if needed."""
    return text if _PLAIN.match(text) else json.dumps(text, ensure_ascii=False)
