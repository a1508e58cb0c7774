"""The generated tables of docs/experiment_files.md; `python -m synthbench.cli.reference FILE` renews them."""

import re
import sys
import typing
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from synthbench.cli.settings import Setting, settings_of, summary
from synthbench.errors import UserError

if TYPE_CHECKING:
    from pydantic import BaseModel

_TABLE = re.compile(r"(<!-- keys of (.+?) -->\n).*?(<!-- end -->)", re.DOTALL)


def with_tables(text: str) -> str:
    """Return the Markdown text with a fresh table between each `<!-- keys of NAME -->` and `<!-- end -->`.

    NAME is a section ("experiment"), or a plug-in as "trainer bi-encoder".
    Raises UserError if a name is unknown.
    """
    return _TABLE.sub(lambda found: f"{found[1]}{_table(found[2])}{found[3]}", text)


def _table(name: str) -> str:
    rows = ["| key | value | default | meaning |", "| --- | --- | --- | --- |"]
    rows += [_row(setting) for setting in _settings(name)]
    return "\n".join(rows) + "\n"


def _row(setting: Setting) -> str:
    default = setting.default if setting.default in ("", "required") else f"`{setting.default}`"
    cells = (f"`{setting.key}`", setting.values, default, setting.description)
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def _settings(name: str) -> Iterator[Setting]:
    from synthbench.plugins import component

    group, _, plugin = name.partition(" ")
    if group in ("method", "trainer", "evaluator"):
        return settings_of(component(f"{group}s", plugin))
    if name == "prepare steps":
        return _steps()
    if name not in _sections():
        raise UserError(f"no section is called '{name}'; there are {', '.join(_sections())}")
    return settings_of(_sections()[name])


def _steps() -> Iterator[Setting]:
    """Yield each step with what it does, and its keys."""
    from synthbench.data.prepare import PrepareStep

    for step in typing.get_args(typing.get_args(PrepareStep)[0]):
        own = [setting for setting in settings_of(step) if setting.key != "step"]
        yield Setting(f"step: {step.model_fields['step'].default}", "", "", summary(step))
        yield from own


def _sections() -> "Mapping[str, type[BaseModel]]":
    from synthbench.config import schema
    from synthbench.config.llm import EndpointLLM, LocalLLM, SandboxLLM
    from synthbench.sources.models import SOURCE_TYPES

    return {
        "experiment": schema.ExperimentSection,
        **{f"a source with `{key}:`": source for key, source in SOURCE_TYPES.items()},
        "`llm:`, the sandbox's": SandboxLLM,
        "`llm:`, an endpoint": EndpointLLM,
        "`llm:`, a local model": LocalLLM,
        "a run": schema.RunSection,
        "a part of `data`": schema.PartSection,
        "train": schema.TrainSection,
        "an entry of `evaluate`": schema.EvaluateSection,
        "an entry of `audit`": schema.AuditSection,
        "a profile": schema.ProfileSection,
    }


def rewrite(file: Path) -> None:
    """Put fresh tables into a Markdown file."""
    file.write_text(with_tables(file.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    rewrite(Path(sys.argv[1]))
