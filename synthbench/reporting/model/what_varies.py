"""Which random choices each seed of a result redraws, and which were made once for all seeds."""

from collections.abc import Iterator, Mapping, Sequence, Set
from typing import NamedTuple

from synthbench.base.listing import listed
from synthbench.config.coordinates import RowKey
from synthbench.reporting.model.experiment_notes import row_names
from synthbench.reporting.results import DatasetSummary, ExperimentResult, Ingredient, RunResult

ORDER, SAMPLE, MODEL, GENERATION = "order of training", "sample of", "training of", "generation"
ANEW, REUSED, ONCE = "anew", "reused", "once"
"""Each seed draws anew; each draws from its own samples with the same random numbers; all share one draw."""
MOST_NAMES = 4
PREPARED = "data"
"""The role of the data that steps prepare."""


class Draw(NamedTuple):
    """A random choice: training order, a source's sample, a model trained to make data, or generation."""

    kind: str
    name: str = ""


Rows = Mapping[RowKey, Sequence[RunResult]]
Draws = Mapping[Draw, Mapping[str, Sequence[RowKey]]]
"""Draw -> how it was drawn -> rows."""


def what_varies(result: ExperimentResult, rows: Rows, measure: str = "±") -> Iterator[str]:
    """Yield which choices each seed redraws, and which were made once and so add no noise to `measure`."""
    draws = draws_of(result, rows)
    if anew := _listed(draws, ANEW):
        yield f"Each seed redraws: {anew}."
    if reused := _listed(draws, REUSED):
        yield f"Made anew from each seed's samples, but with the same random numbers: {reused}."
    if once := _listed(draws, ONCE):
        yield f"Made once for all seeds, so their noise is not in {measure}: {once}."


def draws_of(result: ExperimentResult, rows: Rows) -> Draws:
    """Return, by draw, which rows made it anew per seed, with the same random numbers, or only once.

    Inferred from what differs between the seeds of a row. Rows with one seed are skipped. Data that are equal
    for all seeds count as drawn once.
    """
    found: dict[Draw, dict[str, list[RowKey]]] = {}
    for row, runs in rows.items():
        if len(runs) < 2:
            continue
        made: dict[Draw, set[frozenset[str]]] = {}
        for run in runs:
            of_run: dict[Draw, set[str]] = {}
            for draw, content in _made(run):
                of_run.setdefault(draw, set()).add(content)
            for draw, contents in of_run.items():
                made.setdefault(draw, set()).add(frozenset(contents))
        found.setdefault(Draw(ORDER), {}).setdefault(ANEW, []).append(row)
        for draw, by_seed in made.items():
            how = ANEW if draw.kind == SAMPLE or "generation" in result.varied else REUSED
            found.setdefault(draw, {}).setdefault(how if len(by_seed) > 1 else ONCE, []).append(row)
    return found


def _made(run: RunResult) -> Iterator[tuple[Draw, str]]:
    """Yield each random choice that the run's data depend on, with a hash of its outcome."""
    parts: dict[str, str] = {}
    for data in run.datasets:
        content = data.content_hash or data.stage
        if data.method:
            yield Draw(GENERATION, data.method), content
        elif not data.made_of:
            parts[data.stage] = data.part
            yield Draw(SAMPLE, data.part), content
    tests = {scores.task for scores in run.scores}
    made_of = [
        each
        for data in run.datasets
        for each in data.made_of
        if each.kind != "source" or _is_made_of(data, each, tests)
    ]
    for each in made_of:
        content = each.content_hash or each.stage
        if each.kind == "source":
            name = each.name.removesuffix(f" seed {run.seed}")
            yield Draw(SAMPLE, parts.get(each.stage, name)), content
        elif each.kind == "train":
            yield Draw(MODEL, each.role.replace("_", "-")), content
        elif each.kind == "generate":
            yield Draw(GENERATION, each.name), content


def _is_made_of(data: DatasetSummary, source: Ingredient, tests: Set[str]) -> bool:
    """Return whether records of a source are in the data, or a model was trained on them to make the data.

    False for sources that steps only read, such as test sets whose sentences are dropped from the data.
    """
    learned = {role for each in data.made_of if each.kind != "prepare" for role in each.of}
    return source.name not in tests and (bool(data.method) or source.role in {PREPARED, *learned})


def _listed(draws: Draws, how: str) -> str:
    """Name the draws made in the way `how`, with the rows if other rows made the same draw in another way."""
    texts = []
    for kind in dict.fromkeys(draw.kind for draw in draws):
        of_kind = {draw: rows for draw, rows in draws.items() if draw.kind == kind}
        here = [draw for draw, rows in of_kind.items() if how in rows]
        if not here:
            continue
        is_whole = all(len(rows) == 1 and how in rows for rows in of_kind.values())
        names = [f"{draw.name}{_rows(of_kind[draw], how)}" for draw in here if draw.name]
        if not names or (is_whole and kind == GENERATION):
            texts.append(kind)
        elif is_whole and len(names) > MOST_NAMES:
            texts.append(f"{kind} all {len(names)} {'sources' if kind == SAMPLE else 'models'}")
        else:
            by = "by " if kind == GENERATION else ""
            texts.append(f"{kind} {by}{listed(names, MOST_NAMES)}")
    return "; ".join(texts)


def _rows(drawn: Mapping[str, Sequence[RowKey]], how: str) -> str:
    """Return " (in ROWS)" if other rows made the draw another way, else ""."""
    if len(drawn) == 1:
        return ""
    names = row_names(drawn[how], [row for rows in drawn.values() for row in rows])
    return f" (in {names})"
