"""Read the study that a recommendation is about from a short experiment file."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from synthbench.base.errors import UserError
from synthbench.config.documents import read_document
from synthbench.config.experiment import Experiment
from synthbench.config.llm import WorldLLM
from synthbench.config.overrides import Overrides, Request
from synthbench.config.problems import Problems
from synthbench.config.short import GOLD_ONLY, OWN_KEYS, UNTESTED, UNTRAINED, Expanded
from synthbench.pipeline.experiment_run import RunProgress
from synthbench.pipeline.invocation import load_invocation
from synthbench.recommending.files import PhaseFiles
from synthbench.recommending.known import Known
from synthbench.recommending.phases import AMOUNTS, DEV, TEST, Contender, Contest
from synthbench.recommending.recommend import Recommender
from synthbench.recommending.without_gold import with_dev_sets
from synthbench.sources.corpora import CorpusSource
from synthbench.sources.documents import DocumentsSource
from synthbench.sources.models import FileSource
from synthbench.worlds import NAME

OF_USERS = (FileSource, CorpusSource, DocumentsSource)
PLUMBING = (
    f"The {NAME}'s LLM is simulated: this proves plumbing only, and nothing about recipes for real texts."
)


def recommender_of(
    file: Path, overrides: Overrides, progress: RunProgress, *, jobs: int, output: Path
) -> Recommender:
    """Return the recommender of a short experiment file.

    Raises UserError if the file is invalid or not short, has no budget, names no recipe to compare, or has no
    possible dev set.
    """
    short = read_document(file)
    if "base" not in short.data:
        raise UserError(f"{file}: recommend reads a short file, with `base`, `budget` and `variants`")
    experiment = load_invocation(file, overrides).experiment
    problems = Problems()
    expanded = Request.read(file, overrides, problems).expanded
    budget = expanded.budget
    if budget.usd is None:
        at = short.location(("budget",) if "budget" in short.data else ())
        raise UserError(f"{at}: budget.usd: missing; set the US dollars that all phases together may cost")
    contenders = {each.name: each for each in _contenders(expanded, experiment)}
    baseline = next((name for name in (GOLD_ONLY, UNTRAINED) if name in contenders), None)
    if baseline is None or len(contenders) < 2:
        at = short.location(("variants",))
        raise UserError(f"{at}: variants: list {GOLD_ONLY} or {UNTRAINED}, and a recipe to compare with it")
    long = _with_dev(expanded.document.data, expanded.dev)
    study = Contest(long, contenders, baseline, budget.usd, budget.machine_hour_usd or 0.0)
    # Changes of the short form's own keys are in the long form already.
    given = (
        each for each in overrides.assignments if each.partition("=")[0].partition(".")[0] not in OWN_KEYS
    )
    overrides = replace(overrides, assignments=tuple(given))
    request = {"long": long, "budget": [study.usd, study.hour_usd], "overrides": asdict(overrides)}
    files = PhaseFiles(file, request)
    synthetic, notes = None, (*expanded.notes, *_notes(experiment))
    if DEV not in long["sources"]:
        found = with_dev_sets(study, experiment, file, files, overrides)
        if found is None:
            raise UserError(
                f"{short.location(('sources',))}: sources.dev: missing; recipes for search are compared on a"
                " dev set like the test set, such as {corpus: FOLDER, split: dev}, or, without a test set, on"
                " questions that an `llm` writes for `passages`"
            )
        study, synthetic, of_sets = found
        notes = (*(each for each in notes if not each.startswith(UNTESTED)), *of_sets)
    return Recommender(
        Known(study),
        files,
        overrides,
        progress,
        jobs,
        output,
        where=f"{short.location(('budget', 'usd'))}: budget.usd",
        notes=notes,
        synthetic=synthetic,
    )


def _with_dev(long: Mapping[str, Any], given: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the long file with a source `dev`, if one can be found.

    The source is `given`. Without it, it is the dev part of the source that also gave the test set.
    """
    sources = {**long["sources"], **({} if given is None else {DEV: given})}
    part = sources.get(TEST, {}).get("part")
    if DEV not in sources and part is not None and DEV in part.get("shares", ()):
        sources[DEV] = {**sources[TEST], "part": {**part, "take": DEV}}
    return {**long, "sources": sources}


def _contenders(expanded: Expanded, experiment: Experiment) -> Iterator[Contender]:
    """Yield each row of the long file, with its recipe's learning rates and the sizes of its sources."""
    sizes: dict[str, int] = {}
    for name, run in expanded.document.mapping("variants").items():
        recipe = expanded.recipes.get(name)
        rates = recipe.rates.get(expanded.size) if recipe is not None and expanded.size else None
        reads = [source for source in AMOUNTS if recipe is not None and source in recipe.needs]
        for source in reads:
            if source not in sizes:
                sizes[source] = len(experiment.sources[source].read(experiment.roots).records)
        train = run.get("train", {})
        if recipe is None or rates is None or train.get("learning_rate") != rates.use:
            rates = None  # the file sets a rate of its own
        yield Contender(
            name,
            run,
            {source: sizes[source] for source in reads},
            starts_from=str(train.get("starts_from") or ""),
            rates=() if rates is None else rates.tries,
            rate=None if rates is None else rates.use,
            rate_paths=() if recipe is None else tuple(map(_rate_beside, recipe.bases)),
        )


def _rate_beside(base: str) -> str:
    return f"{base.rpartition('.')[0]}.learning_rate"


def _notes(experiment: Experiment) -> Iterator[str]:
    is_generated = any(isinstance(experiment.llms[name].settings, WorldLLM) for name in experiment.used_llms)
    are_given = any(isinstance(experiment.sources.get(name), OF_USERS) for name in AMOUNTS)
    if is_generated and are_given:
        yield PLUMBING
