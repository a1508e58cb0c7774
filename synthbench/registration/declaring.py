"""What an experiment declares: its rows with recipes and code, its seeds, test sets and comparisons."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from synthbench.base.redaction import without_secrets
from synthbench.config.comparing import all_pairs, is_named, pairs_with_baselines
from synthbench.config.coordinates import column_names, coordinates_of, row_at
from synthbench.config.documents import flatten
from synthbench.config.experiment import Experiment, Variant
from synthbench.engine.plan import Plan, PlannedRun
from synthbench.engine.stage import Stage, ancestors
from synthbench.registration.record import DeclaredRow, DeclaredRun, DeclaredSet, Identity, digest

OPTIONS = ("compare_to", "family", "primary", "best", "columns", "averages", "across", "ceiling")
"""The table's options that decide which claims are made."""
LENGTH = 16
"""Digits of hashes that only tell whether something changed."""


def declared_sets(plan: Plan, items: Mapping[Identity, tuple[Identity, int]]) -> Iterator[DeclaredSet]:
    """Yield each test set once for each way of scoring it.

    `items`: stage -> (hash of the items that it read, number of items); other stages' test sets are left out.
    """
    found = {}
    for run in plan.runs:
        for name, stage in run.evaluations.items():
            task = stage.inputs["task"].identity
            if task in items:
                key, number = items[task]
                spec = stage.spec
                scoring = digest([spec["component"], spec["version"], spec["config"], spec.get("code", {})])
                found[name, scoring] = DeclaredSet(
                    name=name,
                    evaluator=stage.operation.component,
                    scoring=scoring[:LENGTH],
                    stage=task,
                    items=key,
                    num_items=number,
                )
    yield from found.values()


def declared_runs(plan: Plan) -> Iterator[DeclaredRun]:
    """Yield each scored row with each of its seeds."""
    for run in plan.runs:
        if run.model is not None and run.evaluations:
            yield DeclaredRun(
                row=run.variant.label,
                seed=run.seed,
                model=run.model.identity,
                scores={task: stage.identity for task, stage in run.evaluations.items()},
            )


def declared_rows(plan: Plan) -> tuple[dict[str, Any], tuple[DeclaredRow, ...]]:
    """Return the settings that all scored rows have in common, and each row with its other settings."""
    first: dict[str, PlannedRun] = {}
    for run in plan.runs:
        if run.model is not None and run.evaluations:
            first.setdefault(run.variant.label, run)
    settings = {label: _settings(run.variant) for label, run in first.items()}
    all_rows = list(settings.values())
    common = {
        path: value
        for path, value in (all_rows[0] if all_rows else {}).items()
        if all(path in row and row[path] == value for row in all_rows)
    }
    rows = tuple(
        DeclaredRow(
            label=label,
            settings={path: value for path, value in settings[label].items() if path not in common},
            code=_code(run),
            reads=_reads(run),
        )
        for label, run in first.items()
    )
    return common, rows


def _settings(variant: Variant) -> dict[str, Any]:
    return plain(dict(flatten(without_secrets(dict(variant.parameters)))))


def plain(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return an experiment file's settings with JSON's types only; other values become text."""
    found: dict[str, Any] = json.loads(json.dumps(settings, default=str))
    return found


def _made_by(run: PlannedRun) -> Iterator[Stage]:
    """Yield the stages that make a row's model, each stage after its inputs."""
    assert run.model is not None, "only scored rows are declared"
    return ancestors([run.model])


def _code(run: PlannedRun) -> dict[str, str]:
    """Return component -> its version, and third-party plug-in's package -> hash of the package's code."""
    found = {}
    for stage in _made_by(run):
        found[f"{stage.kind} {stage.operation.component}"] = f"version {stage.operation.version}"
        for packages in stage.spec.get("code", {}).values():
            found |= packages
    return found


def _reads(run: PlannedRun) -> dict[str, str]:
    """Return source -> hash of its settings and content, and model or file -> hash of its content.

    The seed of a source's sample does not count, since it may vary with the run's seed.
    """
    found = {}
    for stage in _made_by(run):
        if stage.kind == "source":
            name = stage.label.removesuffix(f" seed {run.seed}")
            config = dict(stage.spec["config"])
            if isinstance(config.get("sample"), dict):
                config["sample"] = {key: value for key, value in config["sample"].items() if key != "seed"}
            found[name] = digest([stage.spec["component"], config, stage.spec["outside"]])[:LENGTH]
        else:
            found |= {name: digest(content)[:LENGTH] for name, content in stage.spec["outside"].items()}
    return found


def claims(experiment: Experiment) -> dict[str, Any]:
    """Return the baseline and the table's options that decide claims, without options at their defaults."""
    table = experiment.table.model_dump(mode="json")
    defaults = type(experiment.table)().model_dump(mode="json")
    # Some options are left out at their default.
    given = {key: table[key] for key in OPTIONS if key in table and table[key] != defaults.get(key)}
    baseline = experiment.resolved.get("baseline")
    return plain({**({"baseline": str(baseline)} if baseline else {}), **given})


def compared(experiment: Experiment, given: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield (compared row, its baseline).

    The baseline is at the row's point of the grid or, if the baseline has no row there, outside the grid.
    With `table.best`, also yield all other pairs of rows at the same point. `given`: the result of `claims`.
    Values of the axes in `table.across` are columns, not rows.
    """
    rows = dict.fromkeys(
        row_at(each.name, each.axes, given.get("across", ()))
        for each in experiment.variants
        if each.name not in given.get("ceiling", ())
    )
    wanted = given.get("compare_to", {given["baseline"]: ()} if "baseline" in given else {})
    family = given.get("family")
    pairs = dict.fromkeys(pair for pair in pairs_with_baselines(rows, wanted) if is_named(pair, family))
    if given.get("best"):
        pairs |= dict.fromkeys(pair for pair in all_pairs(rows) if pair[::-1] not in pairs)
    for row, other in pairs:
        yield row.label, other.label


def num_primary_columns(
    experiment: Experiment, given: Mapping[str, Any], tests: Sequence[DeclaredSet]
) -> int:
    """Return the number of primary columns, from `primary`, else `averages`, else `columns` of the table.

    Without these options, all columns count. A test set's name stands for one column at each value of the
    axes in `table.across`.
    """
    across = given.get("across", ())
    columns = {
        column_names(coordinates_of(variant.axes, across), test.name)
        for variant in experiment.variants
        for test in tests
    }
    named = given.get("primary") or given.get("averages") or given.get("columns")
    return sum(max(1, sum(name in names for names in columns)) for name in named) if named else len(columns)
