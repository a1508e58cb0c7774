"""Audit stages: let an oracle, people's sheets or gold judge a part's labels, or write a blank sheet."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from synthbench.base.runtime import Progress
from synthbench.config.experiment import AuditPlan
from synthbench.data.dataset import SyntheticDataset
from synthbench.data.reading import hashes
from synthbench.engine.artifacts import read_dataset, write_json
from synthbench.engine.stage import Operation
from synthbench.engine.workspace import Workspace

if TYPE_CHECKING:
    from synthbench.auditing.items import Items
    from synthbench.auditing.report import Audit

AUDIT_FILE = "audit.json"
SHEET_FILE = "sheet.csv"
GOLD = "gold"
"""The input whose gold scores the labels are compared with."""


@dataclass(frozen=True)
class AuditLabels(Operation):
    """Compares the labels of the "data" input with an oracle's, people's or the "gold" input's labels."""

    kind: ClassVar[str] = "audit"
    version: ClassVar[int] = 1
    plan: AuditPlan

    @property
    def component(self) -> str:
        """The judge: "gold", the oracle's name, "sheets", or "blank sheet" if there is no judge."""
        if self.plan.gold is not None:
            return GOLD
        return self.plan.oracle or ("sheets" if self.plan.sheets else "blank sheet")

    def config(self) -> Mapping[str, Any]:
        """Return the settings that choose the judged items, and the world's version if an oracle judges.

        With gold, the only setting is the least score of a positive pair. With answered sheets, there are no
        settings, since the sheets list the items.
        """
        if self.plan.sheets:
            return {}
        if self.plan.gold is not None:
            return {"positive": self.plan.positive}
        drawn = {"per_label": self.plan.per_label, "seed": self.plan.seed}
        if self.plan.oracle is None:
            return drawn
        from synthbench.worlds import world

        return {**drawn, "oracle_version": world().version}

    @cached_property
    def outside(self) -> Mapping[str, str]:
        """File name -> hash of the answered sheets."""
        return hashes({file.name: file for file in self.plan.sheets})

    def run(self, inputs: Mapping[str, Path], work: Workspace) -> None:
        """Judge the items and write the result; without a judge, write a blank sheet for people."""
        from synthbench.auditing.items import items_of
        from synthbench.auditing.sheets import question_of, write_sheet

        dataset = read_dataset(inputs["data"])
        if GOLD in inputs:
            from synthbench.auditing.report import audit_by_gold

            by_gold = audit_by_gold(dataset, read_dataset(inputs[GOLD]), self.plan.positive)
            _write(work, by_gold.num_items, by_gold)
            return
        items = items_of(dataset)
        if not self.plan.sheets:
            items = items.sample_of_each(self.plan.per_label or None, self.plan.seed)
        audited = self._judged(dataset, items, work.progress)
        if audited is None:
            write_sheet(items, question_of(None, None, items), work.output / SHEET_FILE, force=True)
        _write(work, len(items.items) if audited is None else audited.num_items, audited)

    def _judged(self, dataset: SyntheticDataset, items: "Items", progress: Progress) -> "Audit | None":
        from synthbench.auditing.report import audit_by_oracle, audit_by_people
        from synthbench.auditing.sheets import read_annotations

        if self.plan.oracle is not None:
            return audit_by_oracle(dataset, items, progress)
        if self.plan.sheets:
            return audit_by_people(dataset, items, read_annotations(self.plan.sheets, items))
        return None


def _write(work: Workspace, num_items: int, audited: "Audit | None") -> None:
    judged = None if audited is None else audited.model_dump(mode="json")
    write_json(work.output / AUDIT_FILE, {"num_items": num_items, "audit": judged})
