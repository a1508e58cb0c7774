"""Read the study that a recommendation is about from a short experiment file."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from synthbench.base.errors import UserError
from synthbench.config.documents import Document, read_document
from synthbench.config.experiment import Experiment
from synthbench.config.llm import WorldLLM
from synthbench.config.overrides import Overrides, read_short
from synthbench.config.short import GOLD, GOLD_ONLY, UNTRAINED, Expanded
from synthbench.pipeline.experiment_run import RunProgress
from synthbench.pipeline.invocation import load_invocation
from synthbench.recommending.files import PhaseFiles
from synthbench.recommending.phases import AMOUNTS, DEV, Contender, Study
from synthbench.recommending.recommend import Recommender
from synthbench.sources.models import FileSource

BUDGET, USD, HOUR = "budget", "usd", "machine_hour_usd"
STANDARD_DEV = {"task": "STSb", "split": "dev"}
"""The dev set of a study without gold pairs."""
PLUMBING = "The sandbox's LLM rewrote real texts: this proves plumbing only, and nothing about recipes."
WITHOUT_GOLD = (
    "Without gold pairs, recipes were compared on STSb, a standard task: whether people would judge your texts"
    " alike is unknown."
)


def recommender_of(
    file: Path, overrides: Overrides, progress: RunProgress, *, jobs: int, output: Path
) -> Recommender:
    """Return the recommender of a short experiment file.

    Raises UserError if the file is invalid or not short, or has no budget.
    """
    short = read_document(file)
    if "base" not in short.data:
        raise UserError(
            f"{file}: `recommend` needs the short form, with `base` and the recipes under `variants`"
        )
    usd = _usd(short)
    expanded = read_short(file, overrides)
    experiment = load_invocation(file, overrides).experiment
    long = dict(expanded.document.data)
    if DEV not in long["sources"]:
        long["sources"] = {**long["sources"], DEV: dict(STANDARD_DEV)}
    contenders = {each.name: each for each in _contenders(expanded, experiment)}
    baseline = next((name for name in (GOLD_ONLY, UNTRAINED) if name in contenders), "")
    if not baseline:
        raise UserError(f"{short.location(('variants',))}: variants: needs {GOLD_ONLY} or {UNTRAINED}")
    hour_usd = float(short.mapping(BUDGET).get(HOUR) or 0.0)
    study = Study(long, contenders, baseline, usd, hour_usd)
    request = {"long": long, "usd": usd, "hour": hour_usd, "overrides": overrides}
    notes = (*expanded.notes, *_notes(experiment, long))
    where = f"{short.location((BUDGET, USD))}: {BUDGET}.{USD}"
    files = PhaseFiles(file, request)
    return Recommender(study, files, overrides, progress, jobs, output, where, notes)


def _usd(short: Document) -> float:
    usd = short.mapping(BUDGET).get(USD)
    if not usd:
        at = short.location((BUDGET,) if BUDGET in short.data else ())
        raise UserError(f"{at}: {BUDGET}.{USD}: missing; set the dollars that all phases together may cost")
    return float(usd)


def _contenders(expanded: Expanded, experiment: Experiment) -> Iterator[Contender]:
    """Yield each row of the long file with the rates that its recipe tries."""
    sizes: dict[str, int] = {}
    for name, run in expanded.document.mapping("variants").items():
        recipe = expanded.recipes.get(name)
        rates = recipe.rates.get(expanded.size) if recipe is not None and expanded.size else None
        reads = {}
        for source in AMOUNTS:
            if recipe is not None and source in recipe.needs:
                if source not in sizes:
                    sizes[source] = len(experiment.sources[source].read(experiment.roots).records)
                reads[source] = sizes[source]
        yield Contender(
            name,
            run,
            reads,
            starts_from=str(run.get("train", {}).get("starts_from") or ""),
            rates=() if rates is None else rates.tries,
            rate=None if rates is None else rates.use,
        )


def _notes(experiment: Experiment, long: Mapping[str, Any]) -> Iterator[str]:
    if GOLD not in long["sources"]:
        yield WITHOUT_GOLD
    asks_sandbox = any(isinstance(experiment.llms[name].settings, WorldLLM) for name in experiment.used_llms)
    if asks_sandbox and any(isinstance(experiment.sources.get(name), FileSource) for name in AMOUNTS):
        yield PLUMBING
