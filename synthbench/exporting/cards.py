"""Model and data cards: the README.md that the hub shows, with YAML for programs and Markdown for people."""

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from synthbench.base.escaping import markdown_text
from synthbench.base.patterns import linear_pattern
from synthbench.exporting.facts import ExportedPart, costs_text
from synthbench.exporting.privacy import public
from synthbench.exporting.subject import Subject
from synthbench.reporting.model.registration_note import registration_reference
from synthbench.reporting.render.html.page import reproducing
from synthbench.worlds import NAME

CARD_FILE = "README.md"
EXPERIMENT_FILE = "experiment.yaml"
LINEAGE_FILE = "lineage.json"
_BACKTICKS = linear_pattern(r"`+")


def card(template: str, head: str, facts: Mapping[str, Any]) -> str:
    """Return a card: `head` is its YAML, `facts` fill the named fields of the template in `templates`."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("synthbench.exporting", "templates"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    # These filters escape text from outside for Markdown.
    environment.filters |= {"text": markdown_text, "code": _code, "fenced": _fenced}
    environment.globals |= {"costs_text": costs_text, "world": NAME}
    body = environment.get_template(template).render(facts)
    return public(f"---\n{head.strip()}\n---\n\n{body}")


def experiment_file(subject: Subject) -> str:
    """Return the experiment file as run: with its overrides, without secrets."""
    title = " ".join(subject.result.title.split())
    return (
        f"# {title}, as synthbench ran it: anchors are written out, and overrides are part of it.\n"
        + public(subject.result.source)
    )


def how_to_reproduce(subject: Subject, parts: Sequence[ExportedPart], part: str = "") -> dict[str, Any]:
    """Return the facts of a card's section on reproduction: commands, versions, hashes of the data.

    `part` is the exported part, "" for an exported model.
    """
    facts = reproducing(subject.result)
    read: dict[str, str] = {}
    for data in parts:
        read |= dict(each for one in data.summary.made_of for each in one.revisions)
        read |= {name: version for name, version in data.generators.items() if version}
    seed = ["--seed", str(subject.run.seed)] if subject.run.is_seeded and not part else []
    what = ["dataset" if part else "model", EXPERIMENT_FILE, subject.row.label]
    named = ["--part", part] if part else []
    return {
        "export_arguments": shlex.join([*what, *named, *seed, "--to", "DIR"]),
        "overrides": subject.result.overrides,
        "needs_data": subject.result.is_data_folder_given,
        "environment": facts.environment,
        "revisions": tuple(read.items()),
        "registration": registration_reference(subject.result.registration),
        "result_identity": subject.result.identity,
        "run_identity": subject.run.identity,
        "experiment_file": EXPERIMENT_FILE,
        "lineage_file": LINEAGE_FILE,
    }


def _code(text: object) -> str:
    """Return a text as Markdown code within a line."""
    one_line = " ".join(str(text).split()).replace("|", "\\|")
    fence = "`" * (1 + max(map(len, _BACKTICKS.findall(one_line)), default=0))
    pad = " " if one_line.startswith("`") or one_line.endswith("`") else ""
    return f"{fence}{pad}{one_line}{pad}{fence}"


def _fenced(text: str, language: str = "") -> str:
    """Return a text as a Markdown code block, even if it contains fences itself."""
    fence = "`" * max(3, 1 + max(map(len, _BACKTICKS.findall(text)), default=0))
    return f"{fence}{language}\n{text.rstrip()}\n{fence}"
