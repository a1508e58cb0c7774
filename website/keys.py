"""Renew the tables of keys in the docs: `python website/keys.py docs/keys/*.md`."""

import re
import sys
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path

from pydantic import BaseModel

from synthbench.base.errors import UserError
from synthbench.cli.settings import REQUIRED, Setting, settings_of, summary
from synthbench.config import schema
from synthbench.config.llm import EndpointLLM, WorldLLM
from synthbench.config.recipes import Recipe
from synthbench.config.served_llm import ServedLLM
from synthbench.config.short_section import ShortSection
from synthbench.plugins.loading import component, installed
from synthbench.sources.models import SOURCE_TYPES
from synthbench.worlds import NAME

LONGEST_DEFAULT = 80
"""Characters; `synthbench list NAME` shows longer defaults whole."""
_TABLE = re.compile(r"(<!-- keys of (.+?) -->\n).*?(<!-- end -->)", re.DOTALL)


def with_tables(text: str) -> str:
    """Return the Markdown text with a new table between each `<!-- keys of NAME -->` and `<!-- end -->`.

    NAME is a section, such as "experiment", or a plug-in, such as "trainer bi-encoder".
    Raises UserError if a name is unknown.
    """
    return _TABLE.sub(lambda found: f"{found[1]}{_table(found[2])}{found[3]}", text)


def _table(name: str) -> str:
    rows = ["| key | value | default | meaning |", "| --- | --- | --- | --- |"]
    rows += [_row(setting) for setting in _settings(name)]
    return "\n".join(rows) + "\n"


def _row(setting: Setting) -> str:
    shown = textwrap.shorten(setting.default, LONGEST_DEFAULT, placeholder=" ...")
    default = shown if shown in ("", REQUIRED) else f"`{shown}`"
    cells = (f"`{setting.key}`", setting.values, default, setting.description)
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def _settings(name: str) -> Iterator[Setting]:
    group, _, plugin = name.partition(" ")
    if group in ("method", "step", "trainer", "evaluator"):
        return settings_of(component(f"{group}s", plugin))
    if name == "prepare steps":
        return _steps()
    if name not in _known_sections():
        raise UserError(f"no section is called '{name}'; there are {', '.join(_known_sections())}")
    return settings_of(_known_sections()[name])


def _steps() -> Iterator[Setting]:
    """Yield each step with its summary, then its keys."""
    for name in sorted(installed("steps")):
        step = component("steps", name)
        yield Setting(f"step: {name}", "", "", summary(step))
        yield from settings_of(step)


def _known_sections() -> Mapping[str, type[BaseModel]]:
    return {
        "experiment": schema.ExperimentSection,
        **{f"a source with `{key}:`": source for key, source in SOURCE_TYPES.items()},
        f"`llm:`, the {NAME}'s": WorldLLM,
        "`llm:`, an endpoint": EndpointLLM,
        "`llm:`, a served model": ServedLLM,
        "a run": schema.RunSection,
        "a part of `data`": schema.PartSection,
        "train": schema.TrainSection,
        "an entry of `evaluate`": schema.EvaluateSection,
        "an entry of `audit`": schema.AuditSection,
        "a profile": schema.ProfileSection,
        "a short file": ShortSection,
        "a recipe": Recipe,
    }


if __name__ == "__main__":
    for page in map(Path, sys.argv[1:]):
        page.write_text(with_tables(page.read_text(encoding="utf-8")), encoding="utf-8")
