"""Dev and test sets of a study without gold pairs: standard tasks like its texts, and a synthetic set."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from synthbench.base.errors import UserError
from synthbench.config.experiment import Experiment
from synthbench.config.overrides import Overrides
from synthbench.config.short import PASSAGES, SENTENCES, STANDARD
from synthbench.data.languages import language_of
from synthbench.data.records import RecordKind
from synthbench.pipeline.invocation import load_invocation
from synthbench.recommending.files import PhaseFiles
from synthbench.recommending.phases import TEST, Contest, evaluations
from synthbench.recommending.standard import LANGUAGE, StandardTask, nearest_tasks
from synthbench.recommending.synthetic import (
    HELD_OUT,
    MOST_PASSAGES,
    GradedPairs,
    SyntheticSet,
    WrittenQuestions,
)
from synthbench.sources.models import Source
from synthbench.sources.parts import SourcePart

EVALUATOR = "sts"
"""The evaluator of standard tasks and graded pairs: one for all, so that their scores can be averaged."""


def with_dev_sets(
    contest: Contest, experiment: Experiment, file: Path, files: PhaseFiles, overrides: Overrides
) -> tuple[Contest, SyntheticSet | None, tuple[str, ...]] | None:
    """Return the study with standard dev sets, the synthetic set that its LLM has to make, and page notes.

    The synthetic set is None if it can't be made. If the user's `file` (read as `experiment`) names no test
    set, the study gets a standard one. A study of search gets no standard sets: its synthetic set later
    becomes its dev and test sets. For a study of search, return None if the file names a test set, or if the
    LLM can't write questions for `passages`. Raises UserError if a standard task is needed and none can be
    read.
    """
    if is_of_search(contest, experiment):
        found = _divided(contest, experiment, PASSAGES) if _is_free(contest, PASSAGES) else None
        if found is None or contest.long["sources"][TEST] != STANDARD:
            return None
        contest, passages = found, experiment.sources[PASSAGES]
        held_out = dict(contest.long["sources"][PASSAGES], part=_part("dev"))
        number = len(_part_of(passages, "dev").read(experiment.roots).records)
        if number > MOST_PASSAGES:
            held_out["sample"] = {"size": MOST_PASSAGES, "seed": 0}
        return contest, WrittenQuestions(file, passages.load(experiment.roots), held_out), ()
    source = experiment.sources.get(SENTENCES)
    records = [] if source is None else source.read(experiment.roots).records
    texts = [text for record in records for text in record.texts()]
    is_own = contest.long["sources"].get(TEST) != STANDARD
    has_synthetic = source is not None and _is_free(contest, SENTENCES)
    try:
        tasks = nearest_tasks(texts, lambda task: _texts_of(task, contest, files, overrides))
    except UserError:
        if not (is_own and has_synthetic):
            raise
        tasks = ()
    synthetic, found = None, contest
    if source is not None and has_synthetic:
        held = _part_of(source, "dev").read(experiment.roots).records
        synthetic = GradedPairs(file, [text for record in held for text in record.texts()])
        found = _divided(contest, experiment, SENTENCES)
    devs = {task.dev_name: task.dev for task in tasks}
    found = found.with_dev(devs, dict.fromkeys(devs, EVALUATOR))
    if not is_own:
        found = found.with_test(tasks[0].test, EVALUATOR)
    return found, synthetic, tuple(_notes(tasks, texts, is_tested=not is_own))


def is_of_search(contest: Contest, experiment: Experiment) -> bool:
    """Return whether the study is of search.

    It is if its test set has no scored pairs, or if it has passages and no sentences.
    """
    tested = experiment.sources.get(TEST)
    if tested is not None and tested.record_kind != RecordKind.SCORED_PAIR:
        return True
    return PASSAGES in contest.long["sources"] and SENTENCES not in contest.long["sources"]


def _is_free(contest: Contest, source: str) -> bool:
    """Return whether the study has an LLM, and the source without the settings `part` and `sample`."""
    own = contest.long["sources"].get(source, {"part": None})
    return "llm" in contest.long and not {"part", "sample"} & own.keys()


def _part(take: str) -> dict[str, Any]:
    return {"take": take, "by": "record", "shares": HELD_OUT}


def _part_of(source: Source, take: str) -> Source:
    return source.model_copy(update={"part": SourcePart.model_validate(_part(take))})


def _divided(contest: Contest, experiment: Experiment, name: str) -> Contest:
    """Return the contest with the source `name` reduced to its train part, for all its recipes."""
    number = len(_part_of(experiment.sources[name], "train").read(experiment.roots).records)
    contenders = {
        key: replace(each, reads={**each.reads, name: number}) if name in each.reads else each
        for key, each in contest.contenders.items()
    }
    sources: Mapping[str, Any] = contest.long["sources"]
    held = {**sources, name: {**sources[name], "part": _part("train")}}
    return replace(contest, contenders=contenders, long={**contest.long, "sources": held})


def _texts_of(task: StandardTask, contest: Contest, files: PhaseFiles, overrides: Overrides) -> list[str]:
    """Return the texts of a standard task's dev part, or of the data that the profile substitutes.

    Raises UserError if the task can't be read on this machine.
    """
    base = contest.contenders[contest.baseline].run["train"]["base"]
    rows = {"untrained": {"train": {"trainer": "none", "base": base}}}
    document = contest.making("standard", {task.dev_name: task.dev}, rows)
    document["defaults"] = {"evaluate": evaluations({task.dev_name: EVALUATOR})}
    path = files.write("standard", document, {}, "A standard task; never run.")
    try:
        experiment = load_invocation(path, overrides).experiment
    finally:
        path.unlink(missing_ok=True)
    records = experiment.sources[task.dev_name].read(experiment.roots).records
    return [text for record in records for text in record.texts()]


def _notes(tasks: tuple[StandardTask, ...], texts: list[str], *, is_tested: bool) -> Iterator[str]:
    if not tasks:
        yield "Without gold pairs, a synthetic set alone decided: no standard task can be read here."
        return
    names = " and ".join(task.name for task in tasks)
    chosen = "whose words are most like those of your texts" if texts else "as there are no texts of yours"
    test = f"; the test set is of {tasks[0].name}" if is_tested else ""
    yield (
        f"Without gold pairs, recipes were compared on {names}, the standard tasks {chosen}{test}."
        " Whether the order would be the same for your texts is unknown."
    )
    language = language_of(texts)
    if language not in (None, LANGUAGE):
        yield f"These tasks are in {LANGUAGE}, your texts in {language}: they say less about your texts."
