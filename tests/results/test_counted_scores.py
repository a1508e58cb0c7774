"""Scores of training pairs are counted where a figure asks for them: it is drawn again without the data."""

from experiment_files import ExperimentFile
from fake_stages import RUNTIME
from fakes import Lines

from synthbench.engine.artifacts import Artifacts
from synthbench.engine.local_executors import InProcess
from synthbench.engine.runner import Runner
from synthbench.engine.store import Store
from synthbench.pipeline.planning import make_plan
from synthbench.reporting.results import ExperimentResult
from synthbench.results.collect import collect
from synthbench.statistics.histograms import score_counts


def collected(experiment: ExperimentFile, store: Store) -> ExperimentResult:
    plan = make_plan(experiment.load(variants=("silver",)))
    Runner(store, InProcess(), RUNTIME, Lines()).run(plan)
    return collect(plan, Artifacts(store))


def test_scores_are_counted_only_if_a_figure_needs_them(experiment: ExperimentFile, store: Store) -> None:
    assert not any(data.score_counts for run in collected(experiment, store).runs for data in run.datasets)

    experiment.change("  columns: [test]\n", "  figures: {densities: {parts: [gold]}}\n")

    lines = (experiment.folder / "gold.tsv").read_text(encoding="utf-8").splitlines()
    scores = [float(line.split("\t")[-1]) for line in lines[1:]]
    for run in collected(experiment, store).runs:
        counts = {data.part: data.score_counts for data in run.datasets}
        assert counts == {"gold": score_counts(scores), "silver": ()}
