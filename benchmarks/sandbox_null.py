"""False findings: how often two methods differ significantly in sandbox worlds in which they can't differ.

    python benchmarks/sandbox_null.py [--worlds 200] [--jobs 2]

A world is one draw of everything: gold pairs, unlabelled sentences, first texts and test pairs from source
seeds of its own, generation and training. Row and control of each comparison are two draws from one
distribution, whatever the seed: the sandbox's code ensures it. So their true difference is zero. A false
finding is a difference over seeds with p < 0.05, two-sided, in either direction: 5 % of the worlds have one,
as far as Student's t is valid for so few seeds. Exit code 1 if a comparison has more than that allows
(one-sided binomial test at the 5 % level, Bonferroni-adjusted over the comparisons).
"""

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from statistics import fmean
from typing import Any

from measure import exit_with

from synthbench.base.home import home
from synthbench.base.yaml_loading import load_yaml
from synthbench.config.overrides import Overrides
from synthbench.pipeline.invocation import load_invocation
from synthbench.reporting.model.shared_draws import share_draws
from synthbench.reporting.results import ExperimentResult, RunResult
from synthbench.results.collect import request, to_yaml
from synthbench.statistics.differences import Difference, SeedScores, over_seeds
from synthbench.tracking.mlflow_tracker import MlflowTracker

NAME = "sandbox_null"
LEVEL = 0.05
SEEDS = (0, 1, 2)
BATCH = 100
"""Maximum number of worlds in one experiment."""
# "foreign: 1" makes a source's domains meaningless.
TESTED, ELSEWHERE = ["crime"], ["cooking"]
OFF = {"stories": 0, "usual_words": 0, "edits": 0, "foreign": 1}


@dataclass(frozen=True)
class Comparison:
    """A row, its control, and why they can't differ."""

    row: str
    control: str
    reason: str


COMPARISONS = (
    Comparison("dino", "dino-elsewhere", "first texts of the tested domain; domains are alike"),
    Comparison("adapted", "adapted-elsewhere", "target pairs of the tested domain; domains are alike"),
    Comparison("partial", "one-prompt", "prompts vary; the LLM answers each of them alike"),
)


@dataclass(frozen=True)
class Tally:
    """The differences of one comparison, one per world; None: all seeds have equal scores."""

    comparison: Comparison
    differences: tuple[Difference | None, ...]

    @property
    def false_findings(self) -> int:
        """The number of worlds in which row and control differ significantly."""
        return sum(each is not None and each.p_value < LEVEL for each in self.differences)

    @property
    def values(self) -> list[float]:
        """The difference in each world, in points."""
        return [each.value if each else 0.0 for each in self.differences]

    @property
    def mean(self) -> float:
        """The mean difference, in points."""
        return fmean(self.values)

    @property
    def interval_of_mean(self) -> tuple[float, float]:
        """The 95 % interval of the mean difference over worlds, by Student's t."""
        from scipy.stats import ttest_1samp

        found = ttest_1samp(self.values, 0.0).confidence_interval()
        return float(found.low), float(found.high)

    @property
    def p_value(self) -> float:
        """The probability of at least so many false findings, if each world has one with probability 5 %."""
        from scipy.stats import binomtest

        found = binomtest(self.false_findings, len(self.differences), LEVEL, alternative="greater")
        return float(found.pvalue)

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % Wilson interval of the share of false findings."""
        from scipy.stats import binomtest

        found = binomtest(self.false_findings, len(self.differences)).proportion_ci(method="wilson")
        return float(found.low), float(found.high)


def adjusted(tallies: Sequence[Tally]) -> tuple[float, ...]:
    """Return the Bonferroni-adjusted p value of each comparison's false findings."""
    return tuple(min(1.0, len(tallies) * each.p_value) for each in tallies)


def measured(folder: Path, num_worlds: int, jobs: int) -> list[Tally]:
    """Run `num_worlds` worlds as experiments of at most 100, written into `folder`, and count false findings.

    Stages in the store of SYNTHBENCH_HOME are not computed again. Raises CalledProcessError if a run fails.
    """
    found: dict[Comparison, list[Difference | None]] = {each: [] for each in COMPARISONS}
    for start in range(0, num_worlds, BATCH):
        worlds = range(start, min(start + BATCH, num_worlds))
        file = write_experiment(folder, worlds)
        command = ["run", str(file), "--jobs", str(jobs), "--output", str(folder / "reports")]
        program = str(Path(sys.executable).with_name("synthbench"))
        subprocess.run([program, *command], check=True, stdout=subprocess.DEVNULL)
        given = load_invocation(file, Overrides())
        result = MlflowTracker(home()).load(file.stem, request(given.experiment, given.overrides))
        for each, differences in found.items():
            differences += [
                _difference(*(_runs(result, name, str(world)) for name in (each.row, each.control)))
                for world in worlds
            ]
    return [Tally(each, tuple(differences)) for each, differences in found.items()]


def _difference(row: Sequence[RunResult], control: Sequence[RunResult]) -> Difference | None:
    return over_seeds(_scores(row), _scores(control), is_paired=share_draws(row, control))


def _runs(result: ExperimentResult, row: str, world: str) -> list[RunResult]:
    return [run for run in result.runs if run.variant == row and run.axes["world"] == world]


def _scores(runs: Sequence[RunResult]) -> SeedScores:
    """Return a row's scores x 100 by seed."""
    values = [run.scores[0].scores[run.scores[0].main_score] * 100 for run in runs]
    return SeedScores(tuple(values), runs[0].is_seeded, tuple(run.seed for run in runs))


def write_experiment(folder: Path, worlds: range) -> Path:
    """Write the experiment file of these worlds."""
    file = folder / f"{NAME}_{worlds.start}.yaml"
    file.write_text(to_yaml({"experiment": file.stem, **experiment(worlds)}), encoding="utf-8")
    return file


def experiment(worlds: range) -> dict[str, Any]:
    """Return the experiment of these worlds, which are an axis of its grid."""
    sources = {world: _sources(world) for world in worlds}
    return {
        "description": "Small worlds in which row and control can't differ",
        # Half of the paraphrases contradict and half of the contradictions paraphrase, whatever the prompt.
        "llm": {"endpoint": "sandbox", "noise": 0.5, "habits": 0},
        "sources": {
            f"{name}-{world}": each for world, named in sources.items() for name, each in named.items()
        },
        "seeds": list(SEEDS),
        "vary": ["sample", "generation"],
        "defaults": {
            "data": {"gold": {"source": "gold"}},
            "train": _training("bi-encoder"),
            "evaluate": {"sts": {"evaluator": "sts", "tasks": ["test"]}},
        },
        "variants": {
            **{row: {"data.silver": silver} for row, silver in _silver().items()},
            **{row: {"data": {"gold": None, "x2": x2}} for row, x2 in _dino().items()},
            **{row: _contrastive(data) for row, data in _syncse().items()},
        },
        "grid": {
            "world": {
                str(world): {"aliases": {name: f"{name}-{world}" for name in named}}
                for world, named in sources.items()
            }
        },
        "table": {
            "caption": "Spearman correlation × 100 in small worlds in which row and control can't differ",
            "compare_to": {each.control: [each.row] for each in COMPARISONS},
        },
    }


def _sources(world: int) -> dict[str, dict[str, Any]]:
    """Return a world's sources; each seed draws its own sample of the training sources."""

    def drawn(kind: str, domains: list[str], size: int, seed: int) -> dict[str, Any]:
        whole = {
            "sandbox": kind,
            "split": "train",
            "size": 2000,
            "seed": seed,
            "domains": domains,
            "world": OFF,
        }
        return {**whole, "sample": {"size": size}}

    return {
        "gold": drawn("pairs", ELSEWHERE, 40, 2 * world),
        "target": drawn("pairs", TESTED, 60, 2 * world + 1),
        "target-elsewhere": drawn("pairs", ELSEWHERE, 60, 2 * world + 1),
        "x1": drawn("sentences", TESTED, 20, world),
        "x1-elsewhere": drawn("sentences", ELSEWHERE, 20, world),
        "test": {
            "sandbox": "pairs",
            "split": "test",
            "size": 200,
            "seed": world,
            "domains": TESTED,
            "world": OFF,
        },
    }


def _training(trainer: str) -> dict[str, Any]:
    return {
        "trainer": trainer,
        "base": {"model": "sandbox/encoder"},
        "learning_rate": 3e-4,
        "batch_size": 16,
        "max_steps": 12,
    }


def _silver() -> dict[str, dict[str, Any]]:
    cross_encoder = {key: value for key, value in _training("").items() if key != "trainer"}
    domain = {"method": "augsbert-domain", "cross_encoder": cross_encoder}
    return {
        "adapted": {**domain, "sources": {"gold": "gold", "target": "target"}},
        "adapted-elsewhere": {**domain, "sources": {"gold": "gold", "target": "target-elsewhere"}},
    }


def _dino() -> dict[str, dict[str, Any]]:
    """Return DINO's rows: the prompts of all labels ask for the same, in slightly different words."""
    labels: dict[str, dict[str, Any]] = {}
    for label, words in {"1": "sentences that", "0.5": "sentences which", "0": "sentences, which"}.items():
        prompt = f'Task: Write two {words} are somewhat similar.\nSentence 1: "<X1>"\nSentence 2: "'
        labels[label] = {"instruction": prompt, "counterlabels": list(labels)}
    dino = {
        "method": "dino",
        "sources": {"x1": "x1"},
        "language_model": {"model": "sandbox/lm"},
        "task": {"labels": labels},
        "prepare": [
            {"step": "drop-duplicates", "same_label": True},
            {"step": "drop-identical"},
            {"step": "smooth-labels"},
            {"step": "add-random-negatives", "per_group": 2},
        ],
    }
    return {
        "dino": dino,
        "dino-elsewhere": {**dino, "sources": {"x1": "x1-elsewhere"}},
    }


def _syncse() -> dict[str, dict[str, Any]]:
    partial = {"method": "syncse-partial", "sources": {"sentences": "x1"}}
    text = (resources.files("synthbench_syncse") / "prompts.yaml").read_text("utf-8")
    prompts: Mapping[str, Any] = load_yaml(text, "prompts.yaml")
    return {
        "partial": partial,
        "one-prompt": {**partial, "prompts": {name: prompts[name][0] for name in ("positive", "negative")}},
    }


def _contrastive(data: Mapping[str, Any]) -> dict[str, Any]:
    training = {**_training("simcse"), "learns_from": "triplet", "pooling": "mean"}
    return {"data": {"gold": None, "written": data}, "train": training}


def print_table(counted: Sequence[Tally]) -> None:
    """Print a row for each comparison, and their sum."""
    print("| row against control | can't differ, since | worlds | mean difference [95 %] |", end="")
    print(" false findings | share [95 %] | p, adjusted |")
    print("| --- | --- | ---: | ---: | ---: | --- | ---: |")
    for tally, p_value in zip(counted, adjusted(counted), strict=True):
        what = tally.comparison
        print(f"| {what.row} against {what.control} | {what.reason} | {_figures(tally)} | {p_value:.2f} |")
    together = tuple(one for each in counted for one in each.differences)
    print(f"| all | | {_figures(Tally(Comparison('', '', ''), together))} | |")


def _figures(tally: Tally) -> str:
    number, (low, high) = len(tally.differences), tally.interval
    share = f"{tally.false_findings / number:.1%} [{low:.1%}, {high:.1%}]"
    least, most = tally.interval_of_mean
    mean = f"{tally.mean:+.2f} [{least:+.2f}, {most:+.2f}]"
    return f"{number} | {mean} | {tally.false_findings} | {share}"


def main() -> int:
    """Run the worlds and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--worlds", type=int, default=200)
    parser.add_argument("--jobs", type=int, default=2)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        counted = measured(Path(name), given.worlds, given.jobs)
    print_table(counted)
    return int(any(p_value < LEVEL for p_value in adjusted(counted)))


if __name__ == "__main__":
    exit_with(main)
