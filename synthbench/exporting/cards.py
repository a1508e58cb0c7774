"""Model and data cards: the README.md that the hub shows, with YAML for programs and Markdown for people."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from synthbench.base.escaping import markdown_text
from synthbench.base.patterns import linear_pattern
from synthbench.base.templates import templates_in
from synthbench.exporting.facts import ExportedPart, costs_text, is_generated_world
from synthbench.exporting.lineage import lineage
from synthbench.exporting.privacy import check_public, public
from synthbench.exporting.subject import Subject
from synthbench.reporting.model.registration_note import registration_reference
from synthbench.worlds import NAME

CARD_FILE = "README.md"
EXPERIMENT_FILE = "experiment.yaml"
LINEAGE_FILE = "lineage.json"
_BACKTICKS = linear_pattern(r"`+")


@dataclass(frozen=True)
class Statements:
    """Statements that only the user can make, "" if not given: `license` (hub id), `language` (ISO code)."""

    license: str = ""
    language: str = ""
    address: str = "PATH OF THIS FOLDER"
    """The path or repository in the card's code: the repository's name if it is uploaded."""


def write_texts(own: str, subject: Subject, parts: Sequence[ExportedPart], folder: Path) -> None:
    """Write the card `own`, the experiment file and the lineage into a folder.

    Raises UserError if any file of the folder would reveal private data.
    """
    texts = {
        CARD_FILE: own,
        EXPERIMENT_FILE: experiment_file(subject),
        LINEAGE_FILE: lineage(subject, parts),
    }
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    check_public(folder)


def card(template: str, head: str, facts: Mapping[str, Any]) -> str:
    """Return a card without private data: `head` as its YAML, then the named template filled with `facts`."""
    environment = templates_in("exporting/templates", autoescape=False)
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


def common_facts(
    subject: Subject, statements: Statements, parts: Sequence[ExportedPart], part: str = ""
) -> dict[str, Any]:
    """Return the fields that model and data cards share: licence, origin, and how to reproduce the export.

    `part` is the exported part of the data, "" for an exported model.
    """
    read: dict[str, str] = {}
    for data in parts:
        read |= dict(each for one in data.summary.made_of for each in one.revisions)
        read |= {name: version for name, version in data.generators.items() if version}
    seed = ["--seed", str(subject.run.seed)] if subject.run.is_seeded and not part else []
    what = ["dataset" if part else "model", EXPERIMENT_FILE, subject.row.label]
    named = ["--part", part] if part else []
    return {
        "subject": subject,
        "result": subject.result,
        "is_generated_world": is_generated_world(subject),
        "license": statements.license,
        "address": statements.address,
        "generators": list(dict.fromkeys(name for each in parts for name in each.generators)),
        "version": subject.version,
        "export_arguments": shlex.join([*what, *named, *seed, "--to", "DIR"]),
        "overrides": subject.result.overrides,
        "needs_data": subject.result.is_data_folder_given,
        "environment": tuple(subject.result.environment.items()),
        "revisions": tuple(read.items()),
        "registration": registration_reference(subject.result.registration),
        "result_identity": subject.result.identity,
        "run_identity": subject.run.identity,
        "experiment_file": EXPERIMENT_FILE,
        "lineage_file": LINEAGE_FILE,
    }


def _code(text: object) -> str:
    """Return a text as inline Markdown code: on one line, with `|` escaped for tables; "(empty)" for ""."""
    one_line = " ".join(str(text).split()).replace("|", "\\|") or "(empty)"
    fence = "`" * (1 + max(map(len, _BACKTICKS.findall(one_line)), default=0))
    pad = " " if one_line.startswith("`") or one_line.endswith("`") else ""
    return f"{fence}{pad}{one_line}{pad}{fence}"


def _fenced(text: str, language: str = "") -> str:
    """Return a text as a Markdown code block, even if it contains fences itself."""
    fence = "`" * max(3, 1 + max(map(len, _BACKTICKS.findall(text)), default=0))
    return f"{fence}{language}\n{text.rstrip()}\n{fence}"
