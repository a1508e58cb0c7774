"""Audit results, and blank sheets for annotators."""

from pathlib import Path

from pydantic import ValidationError

from synthbench.auditing.sheets import is_blank
from synthbench.base.patterns import linear_pattern
from synthbench.data.exchange import replacing
from synthbench.engine.artifacts import Artifacts
from synthbench.engine.plan import Plan, PlannedRun
from synthbench.engine.records import ArtifactDamagedError
from synthbench.engine.stage import Stage, ancestors
from synthbench.reporting.results import AuditResult, LabelCost
from synthbench.results.llm_costs import paid_for
from synthbench.stages.auditing import AUDIT_FILE, GOLD, SHEET_FILE, AuditLabels

_NOT_IN_NAMES = linear_pattern(r"[^A-Za-z0-9_.=]+")


def audit_results(plan: Plan, artifacts: Artifacts) -> tuple[tuple[AuditResult, ...], tuple[str, ...]]:
    """Return the audits, one per distinct data set, and a message about each unfinished audit."""
    found: dict[str, AuditResult] = {}
    unfinished: dict[str, None] = {}
    for run in plan.runs:
        for name, stage in run.audits.items():
            if not artifacts.has(stage.identity):
                unfinished[f"{stage} is not finished"] = None
                continue
            row = _row(run, name, plan)
            result = found.get(stage.identity)
            if result is None:
                assert isinstance(stage.operation, AuditLabels)
                recorded = artifacts.json(stage.identity, AUDIT_FILE)
                about = {
                    "name": name,
                    "part": stage.operation.plan.part,
                    "rows": (row,),
                    "stage": stage.identity,
                    "published": stage.operation.plan.published,
                    "cost": _cost(stage, artifacts) if GOLD in stage.inputs else None,
                }
                try:
                    found[stage.identity] = AuditResult.model_validate({**recorded, **about})
                except (ValidationError, TypeError):
                    fault = f"{AUDIT_FILE} is not what such a stage writes"
                    raise ArtifactDamagedError(stage.identity, fault, is_foreign=True) from None
            elif row not in result.rows:
                found[stage.identity] = result.model_copy(update={"rows": (*result.rows, row)})
    return tuple(found.values()), tuple(unfinished)


def _cost(audit: Stage, artifacts: Artifacts) -> LabelCost | None:
    """Return the cost of the labels, without stages that gold also needed; None if the labels are gone."""
    labels = audit.inputs["data"]
    if not artifacts.has_dataset(labels.identity):
        return None
    shared = {stage.identity for stage in ancestors([audit.inputs[GOLD]])}
    own = [stage for stage in ancestors([labels]) if stage.identity not in shared]
    seconds = dict.fromkeys((True, False), 0.0)
    for stage in own:
        is_training = not artifacts.has_dataset(stage.identity)
        seconds[is_training] += float(artifacts.record(stage.identity).get("seconds") or 0)
    manifest = artifacts.manifest(labels.identity)
    return LabelCost(
        num_labels=manifest.num_records + manifest.num_failures,
        usd=paid_for(own, artifacts),
        seconds=round(seconds[False], 3),
        training_seconds=round(seconds[True], 3),
    )


def _row(run: PlannedRun, name: str, plan: Plan) -> str:
    """Return the row's label, with the seed if the audit differs between the row's seeds."""
    same = (other for other in plan.runs if other.variant is run.variant)
    is_varied = len({other.audits[name].identity for other in same}) > 1
    return run.label if is_varied else run.variant.label


def deliver_sheet(audit: AuditResult, artifacts: Artifacts, folder: Path) -> str:
    """Copy an audit's blank sheet into a folder, and return instructions for annotators.

    Replaces an existing sheet only if the existing one is blank.
    """
    source = artifacts.file(audit.stage, SHEET_FILE)
    assert source is not None, "an audit without a judge has a sheet"
    target = folder / sheet_name(audit)
    if target.exists() and not is_blank(target):
        return f"{target}: has answers and is kept; name it under `audit.{audit.name}.sheets` to count them"
    with replacing(target, force=True) as temporary:
        temporary.write_bytes(source.read_bytes())
    return (
        f"{target}: {audit.num_items:,} to answer; give each annotator a copy, name the answered copies "
        f"under `audit.{audit.name}.sheets`, and run again"
    )


def sheet_name(audit: AuditResult) -> str:
    """Return the sheet's file name, such as "audit-labels-dino.csv"."""
    return "-".join(("audit", audit.name, _NOT_IN_NAMES.sub("-", audit.rows[0]).strip("-"))) + ".csv"
