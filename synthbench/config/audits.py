"""Parse the audits of one run: what is judged, by whom, and whether that can be asked."""

from pathlib import Path
from typing import Any

from synthbench.base.errors import UserError, did_you_mean
from synthbench.base.user_files import RootedName, path_of, why_no_file
from synthbench.config.components import ComponentParser
from synthbench.config.documents import Document, KeyPath
from synthbench.config.experiment import AuditPlan
from synthbench.config.problems import Problems, parse
from synthbench.config.published_tables import PublishedAudit, read_published_audit
from synthbench.config.schema import AuditSection, PublishedAuditSection
from synthbench.data.records import RecordKind

WITH_A_QUESTION_OF_THEIR_OWN = (
    RecordKind.SCORED_PAIR,
    RecordKind.PAIR,
    RecordKind.TRIPLET,
    RecordKind.RANKING,
)
"""Kinds of which annotators are asked for the similarity of two sentences."""


class AuditParser:
    """Parses the audits of one run's document, noting every fault; sheets are looked for in `folder`."""

    def __init__(self, components: ComponentParser, problems: Problems, folder: Path) -> None:
        self.components = components
        self.problems = problems
        self.folder = folder

    def audit(self, document: Document, name: str, raw: dict[str, Any]) -> AuditPlan | None:
        """Return what is to be audited; None with the faults noted."""
        path: KeyPath = ("audit", name)
        section: AuditSection | None = parse(AuditSection, raw, document, path, self.problems)
        if section is None:
            return None
        parts = document.data.get("data")
        parts = parts if isinstance(parts, dict) else {}
        if section.part not in parts:
            message = f"no part of `data` is called '{section.part}'{did_you_mean(section.part, parts)}"
            self.problems.add(document, (*path, "part"), message)
            return None
        kind = self.components.kind_of(parts[section.part])
        is_judged = section.oracle is not None or bool(section.sheets)
        if kind is not None and kind not in WITH_A_QUESTION_OF_THEIR_OWN and not is_judged:
            message = (
                f"what to ask about {kind} records is not known; write a sheet with `synthbench data audit "
                "--write`, and name the answered ones under `sheets:`"
            )
            self.problems.add(document, path, message)
        for index, sheet in enumerate(section.sheets):
            self._check_sheet(document, (*path, "sheets", index), self._path(sheet))
        files = tuple(map(self._path, section.sheets))
        return AuditPlan(
            name,
            section.part,
            section.per_label,
            section.seed,
            section.oracle,
            files,
            self._published(document, (*path, "published"), section.published),
        )

    def _path(self, name: str) -> Path:
        return path_of(RootedName(name, self.folder))

    def _published(
        self, document: Document, path: KeyPath, section: PublishedAuditSection | None
    ) -> PublishedAudit | None:
        if section is None:
            return None
        try:
            return read_published_audit(self._path(section.file), section.rows, section.columns)
        except UserError as error:
            self.problems.add_error(document, path, error)
            return None

    def _check_sheet(self, document: Document, path: KeyPath, file: Path) -> None:
        wrong = why_no_file(file)
        if wrong:
            self.problems.add(document, path, f"{wrong}: {file}")
