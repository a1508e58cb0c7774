"""False findings: how often two methods differ significantly in sandbox worlds in which they can't differ.

    python benchmarks/sandbox_null.py [--worlds 200] [--jobs 1]

Each finished world is three lines of benchmarks/results/sandbox_null.csv, one per comparison; the same
command goes on with the next world, and prints the figures of all (`--worlds 0`: of those that are recorded).

A world is one draw of everything: gold pairs, unlabelled sentences, first texts and test pairs from source
seeds of its own, generation and training. Row and control of each comparison are two draws from one
distribution, whatever the seed: the sandbox's code ensures it. So their true difference is zero. A false
finding is a difference over seeds with p < 0.05, two-sided, in either direction: 5 % of the worlds have one,
as far as Student's t is valid for so few seeds. Exit code 1 if a comparison has more than that allows
(one-sided binomial test at the 5 % level, Bonferroni-adjusted over the comparisons).
"""

import argparse
import csv
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module, resources
from pathlib import Path
from statistics import fmean
from typing import Any

from measure import exit_with

from synthbench.base.yaml_loading import load_yaml
from synthbench.config.overrides import Overrides
from synthbench.engine.progress import QuietProgress
from synthbench.engine.workers import PRELOADED
from synthbench.pipeline.experiment_run import compute
from synthbench.pipeline.invocation import load_invocation
from synthbench.reporting.model.shared_draws import share_draws
from synthbench.reporting.results import RunResult
from synthbench.results.collect import to_yaml
from synthbench.statistics.differences import SeedScores, over_seeds

LEVEL = 0.05
SEEDS = (0, 1, 2)
CSV = Path(__file__).parent / "results" / "sandbox_null.csv"
FIELDS = ("world", "row", "control", "difference", "p_value")
# "foreign: 1" makes a source's domains meaningless.
TESTED, ELSEWHERE = ["crime"], ["cooking"]
OFF = {"stories": 0, "usual_words": 0, "edits": 0, "foreign": 1}


@dataclass(frozen=True)
class Comparison:
    """A row, its control, and how their settings differ, which changes nothing in these worlds."""

    row: str
    control: str
    what: str


COMPARISONS = (
    Comparison("dino", "dino-elsewhere", "first texts of the tested domain against another's"),
    Comparison("adapted", "adapted-elsewhere", "target pairs of the tested domain against another's"),
    Comparison("partial", "one-prompt", "prompts that vary against one"),
)


@dataclass(frozen=True)
class Found:
    """A comparison's difference over seeds in one world, in points, and its p value."""

    value: float
    p_value: float


@dataclass(frozen=True)
class Tally:
    """What was found of one comparison, by world."""

    comparison: Comparison
    worlds: tuple[Found, ...]

    @property
    def false_findings(self) -> int:
        """The number of worlds in which row and control differ significantly."""
        return sum(each.p_value < LEVEL for each in self.worlds)

    @property
    def values(self) -> list[float]:
        """The difference in each world, in points."""
        return [each.value for each in self.worlds]

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

        found = binomtest(self.false_findings, len(self.worlds), LEVEL, alternative="greater")
        return float(found.pvalue)

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % Wilson interval of the share of false findings."""
        from scipy.stats import binomtest

        found = binomtest(self.false_findings, len(self.worlds)).proportion_ci(method="wilson")
        return float(found.low), float(found.high)


def adjusted(tallies: Sequence[Tally]) -> tuple[float, ...]:
    """Return the Bonferroni-adjusted p value of each comparison's false findings."""
    return tuple(min(1.0, len(tallies) * each.p_value) for each in tallies)


def run_world(world: int, folder: Path, jobs: int) -> list[Found]:
    """Run one world as an experiment in `folder`; return what was found of each comparison."""
    invocation = load_invocation(write_experiment(folder, world), Overrides())
    computed = compute(invocation, QuietProgress(), jobs=jobs, force=(), output=folder / "reports")
    runs: dict[str, list[RunResult]] = {}
    for run in computed.result.runs:
        runs.setdefault(run.variant, []).append(run)
    return [found(runs[each.row], runs[each.control]) for each in COMPARISONS]


def found(row: Sequence[RunResult], control: Sequence[RunResult]) -> Found:
    """Compare two rows; equal scores of all seeds are no finding."""
    difference = over_seeds(_scores(row), _scores(control), is_paired=share_draws(row, control))
    return Found(difference.value, difference.p_value) if difference else Found(0.0, 1.0)


def _scores(runs: Sequence[RunResult]) -> SeedScores:
    """Return a row's scores x 100 by seed."""
    values = [run.scores[0].scores[run.scores[0].main_score] * 100 for run in runs]
    return SeedScores(tuple(values), runs[0].is_seeded, tuple(run.seed for run in runs))


def write_experiment(folder: Path, world: int) -> Path:
    """Write the experiment file of this world."""
    file = folder / f"sandbox_null_{world}.yaml"
    file.write_text(to_yaml({"experiment": file.stem, **experiment(world)}), encoding="utf-8")
    return file


def experiment(world: int) -> dict[str, Any]:
    """Return a world's experiment."""
    return {
        "description": "A small world in which row and control can't differ",
        # Half of the paraphrases contradict and half of the contradictions paraphrase, whatever the prompt.
        "llm": {"endpoint": "sandbox", "noise": 0.5, "habits": 0},
        "sources": _sources(world),
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
        "table": {
            "caption": "Spearman correlation × 100 in a small world in which row and control can't differ",
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


def recorded(file: Path) -> dict[int, list[Found]]:
    """Return what was found in each finished world, by comparison."""
    worlds: dict[int, list[Found]] = {}
    if file.is_file():
        with file.open(encoding="utf-8", newline="") as stream:
            for line in csv.DictReader(stream):
                one = Found(float(line["difference"]), float(line["p_value"]))
                worlds.setdefault(int(line["world"]), []).append(one)
    return worlds


def record(world: int, found_there: Sequence[Found], file: Path) -> None:
    """Add a world's lines to a CSV file."""
    is_new = not file.is_file()
    with file.open("a", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        if is_new:
            writer.writerow(FIELDS)
        writer.writerows(
            (world, what.row, what.control, f"{each.value:.6f}", f"{each.p_value:.6f}")
            for what, each in zip(COMPARISONS, found_there, strict=True)
        )


def tallies(worlds: Mapping[int, Sequence[Found]]) -> list[Tally]:
    """Return each comparison's tally."""
    by_comparison = zip(*worlds.values(), strict=True)
    return [Tally(what, tuple(each)) for what, each in zip(COMPARISONS, by_comparison, strict=True)]


def lines(counted: Sequence[Tally]) -> list[str]:
    """Return the table of docs/sandbox_findings.md: a line for each comparison, and one for all."""
    together = Tally(Comparison("", "", ""), tuple(one for each in counted for one in each.worlds))
    found = [
        f"| {each.comparison.row}, {each.comparison.what} | {_mean(each)} | {_share(each)} | {p_value:.2f} |"
        for each, p_value in zip(counted, adjusted(counted), strict=True)
    ]
    # Comparisons of one world share data, so the mean of all has no interval by Student's t.
    return [
        each.replace("-", "−") for each in (*found, f"| all | {together.mean:.2f} | {_share(together)} | |")
    ]


def _mean(tally: Tally) -> str:
    low, high = tally.interval_of_mean
    return f"{tally.mean:.2f} ({low:.2f} to {high:.2f})"


def _share(tally: Tally) -> str:
    number, (low, high) = len(tally.worlds), tally.interval
    share = f"{tally.false_findings / number:.1%} ({100 * low:.1f} to {100 * high:.1f})"
    return f"{tally.false_findings} of {number} | {share}"


def main() -> int:
    """Run the worlds that are missing, and print the table of all."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--worlds", type=int, default=200)
    parser.add_argument("--jobs", type=int, default=1)
    given = parser.parse_args()
    # Importing it freezes the libraries' objects; else each training looks for garbage among them.
    import_module(PRELOADED)
    for world in sorted(set(range(given.worlds)) - set(recorded(CSV))):
        with tempfile.TemporaryDirectory() as folder:
            record(world, run_world(world, Path(folder), given.jobs), CSV)
    counted = tallies(recorded(CSV))
    print(*lines(counted), sep="\n")
    return int(any(p_value < LEVEL for p_value in adjusted(counted)))


if __name__ == "__main__":
    exit_with(main)
