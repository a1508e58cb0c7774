"""`synthbench plan`: show what a run would do and cost."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from synthbench.base.listing import counted
from synthbench.cli.console import PLAIN, print_table
from synthbench.cli.options import Given, opening, store_line, taking

if TYPE_CHECKING:
    from synthbench.base.runtime import Runtime
    from synthbench.engine.plan import Plan, StageStatus
    from synthbench.engine.stage import Stage
    from synthbench.engine.store import Store
    from synthbench.estimates.facts import StageFacts
    from synthbench.estimates.figures import Estimator
    from synthbench.estimates.totals import Machines

_MOST_REASONS = 5
_ELSEWHERE, _IDLE = "a100-40gb", ", if nothing else runs on it"


@taking(Given)
def plan(
    given: Given,
    stages: Annotated[
        bool, typer.Option("--stages", help="List every stage, and the cost of each generation.")
    ] = False,
    gpu: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Estimate for this GPU, such as h200, which may be elsewhere."),
    ] = None,
    gpus: Annotated[int | None, typer.Option(min=1, help="Number of such GPUs [1].")] = None,
    gpu_price: Annotated[float | None, typer.Option(min=0, help="US dollars per hour of one GPU.")] = None,
) -> None:
    """Show what a run would do and cost: time, tokens, money; cached stages; stale ones and why.

    Computes nothing.
    """
    from synthbench.config.described_models import described_models
    from synthbench.config.load import load_experiment
    from synthbench.config.precisions import check_precisions
    from synthbench.engine.plan import statuses
    from synthbench.engine.stores import open_store
    from synthbench.pipeline.planning import make_outline

    machines = _machines(gpu, gpus, gpu_price)
    experiment = load_experiment(given.file, given.overrides())
    planned = make_outline(experiment)
    store = open_store()
    found = statuses(planned, store)
    if machines is None and any(status.is_to_run for status in found):
        check_precisions(experiment.precisions, experiment.runtime)
    for line in (store_line(), *opening(experiment)):
        print(line)
    _print_totals(found, machines, planned.experiment.runtime, store)
    print()
    _print_rows(planned, found)
    for line in _reasons(found):
        print(line)
    if stages:
        print()
        _print_stages(found)
        _print_costs(found, store)
    to_run = [status.stage for status in found if status.is_to_run]
    for line in (*described_models(experiment), *_not_at_hand(planned, to_run), *_notes(planned)):
        print(line)
    num_to_run = sum(status.is_to_run for status in found)
    print(f"{counted(len(found), 'stage')} for {counted(len(planned.runs), 'run')}: {num_to_run} to run")


def _notes(planned: "Plan") -> Iterator[str]:
    """Yield lines: table notes, remarks on the file, bases with unknown training sets, tasks without data."""
    from synthbench.reporting.model.seen_notes import seen_sentences
    from synthbench.results.collect import prompt_notes
    from synthbench.results.seen import seen_data, unknown_bases

    experiment = planned.experiment
    rows = {run.variant.label for run in planned.runs}
    seen = seen_sentences(seen_data(planned, planned.runs), rows)
    for note in (*experiment.notes, *prompt_notes(planned), *seen, *experiment.remarks):
        yield f"note: {note}"
    for base in unknown_bases(planned):
        yield f"note: {base}: its training sets are unknown, so no table marks what it has seen"
    for task in planned.missing_tasks:
        yield f"note: {task}: no data found, left out"


def _print_totals(
    found: "list[StageStatus]", machines: "Machines | None", runtime: "Runtime", store: "Store"
) -> None:
    """Print time, tokens, money and bytes of all stages to run, then the time by kind of stage."""
    from synthbench.estimates.costs import llm_totals, tokens
    from synthbench.estimates.facts import StageFacts
    from synthbench.estimates.figures import Estimator, estimator_for
    from synthbench.estimates.side_by_side import Capacity, room_for
    from synthbench.estimates.totals import total_lines

    to_run = [status.stage for status in found if status.is_to_run]
    known, lines = StageFacts(store), list[str]()
    if machines is not None:
        estimator = Estimator(known, machines.gpu)
        lines += total_lines(found, known, estimator, machines)
    else:
        estimator = estimator_for(to_run, runtime, known)
        lines += _times(to_run, estimator, known)
        if runtime.executor == "local":
            lines += room_for(to_run, runtime, known, Capacity.here(runtime))
    lines += (f"tokens: {line}" for line in tokens(found, known))
    for line in (*lines, *llm_totals(found, known), ""):
        print(line)
    _print_kinds(found, estimator)


def _machines(gpu: str | None, number: int | None, price: float | None) -> "Machines | None":
    """Return the GPUs that the options describe, None for this machine.

    Raises UserError for an unknown GPU, and for a number or price without --gpu.
    """
    from synthbench.base.errors import UserError
    from synthbench.estimates.figures import DATA_SHEETS, named_gpu
    from synthbench.estimates.totals import Machines

    if gpu is not None:
        return Machines(named_gpu(gpu), number or 1, price)
    for option, value in (("--gpus", number), ("--gpu-price", price)):
        if value is not None:
            raise UserError(f"{option}: needs --gpu NAME; known: {', '.join(DATA_SHEETS)}")
    return None


def _times(to_run: "list[Stage]", estimator: "Estimator", known: "StageFacts") -> Iterator[str]:
    """Yield the total time on this device (if a CPU, also on an A100), then stages without an estimate."""
    from synthbench.engine.monitor import duration
    from synthbench.estimates.figures import DATA_SHEETS, Estimator, Total
    from synthbench.estimates.totals import with_all_tries

    here = Total.of(to_run, estimator.estimate)
    if not here.num_stages:
        yield "time: none, nothing is to run"
        return
    basis = f"; {here.num_from_past} of {counted(here.num_stages, 'stage')} as such stages took before"
    yield f"time: {here} on this {estimator.device.title}{basis if here.num_from_past else _IDLE}"
    if (most := with_all_tries(to_run, known, estimator)) > here.value:
        yield f"time: {duration(most)} if all texts need all tries; the line above counts one try"
    if estimator.device.is_cpu:
        gpu = DATA_SHEETS[_ELSEWHERE]
        yield f"time: {Total.of(to_run, Estimator(known, gpu).estimate)} on {gpu.title}"
    yield from here.gaps("time")


def _print_kinds(found: "list[StageStatus]", estimator: "Estimator") -> None:
    from synthbench.estimates.figures import Total

    of_title: dict[str, list[StageStatus]] = {}
    for status in found:
        of_title.setdefault(f"{status.stage.kind} {status.stage.operation.component}", []).append(status)
    lines = []
    for title, members in of_title.items():
        time = Total.of([each.stage for each in members if each.is_to_run], estimator.estimate)
        lines.append((title, str(len(members)), *_counts(members), str(time)))
    print_table(("stages", "number", "to run", "cached", "time"), lines, **PLAIN)


def _counts(found: "Sequence[StageStatus]") -> tuple[str, str]:
    """Return how many stages are to run and how many are cached ("at least N" if some states are unknown)."""
    states = Counter(each.state for each in found)
    cached = str(states["cached"])
    if states["unknown"]:
        cached = f"at least {cached}" if states["cached"] else "unknown"
    return str(sum(each.is_to_run for each in found)), cached


def _print_rows(planned: "Plan", found: "list[StageStatus]") -> None:
    from synthbench.engine.plan import of_rows

    num_runs = Counter(run.variant.label for run in planned.runs)
    lines = (
        (label, str(num_runs[label]), *_counts(states)) for label, states in of_rows(planned, found).items()
    )
    print_table(("row", "runs", "to run", "cached"), lines, **PLAIN)


def _reasons(found: "list[StageStatus]") -> Iterator[str]:
    """Yield why stages are stale, damaged or otherwise to run, the most frequent reasons first."""
    reasons = Counter((status.state, status.why) for status in found if status.why and status.is_to_run)
    for (state, why), number in reasons.most_common(_MOST_REASONS):
        yield f"{state}: {counted(number, 'stage')}: {why}"
    if len(reasons) > _MOST_REASONS:
        yield f"and {counted(len(reasons) - _MOST_REASONS, 'other reason')}: --stages lists them"


def _not_at_hand(planned: "Plan", to_run: "Sequence[Stage]") -> Iterator[str]:
    """Yield the models and data that a run must download first, and a note on rough estimates."""
    from synthbench.hub.repositories import WORDS
    from synthbench.pipeline.hub_needs import files_on_hub, missing

    messages = planned.not_at_hand
    for message, names in messages.items():
        yield ": ".join(filter(None, ("not at hand", ", ".join(names), message)))
    lacking = dict.fromkeys(each.repository for each in missing(files_on_hub(to_run)))
    unsaid = [each for each in lacking if not any(each.name in message for message in messages)]
    for repository in unsaid:
        yield f"not at hand: {WORDS[repository.kind]} {repository}"
    if lacking:
        yield "note: a run downloads what is not at hand; `synthbench fetch FILE` does it beforehand"
    if messages:
        yield "note: figures of what is not at hand are rounded ones of papers, or unknown"


def _print_stages(found: "list[StageStatus]") -> None:
    lines = (
        (each.stage.identity[:8], str(each.stage), str(each.num_runs), each.state, each.why) for each in found
    )
    print_table(("id", "stage", "runs", "state", "why"), lines, words=(0, 1, 3, 4), **PLAIN)


def _print_costs(found: "list[StageStatus]", store: "Store") -> None:
    from synthbench.estimates.costs import costs

    for stage, lines in costs(found, store):
        print(f"{stage}:")
        for line in lines:
            print(f"  {line}")
