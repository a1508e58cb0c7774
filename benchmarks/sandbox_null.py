"""False wins: how often a method wins in sandbox worlds in which it has no advantage.

    python benchmarks/sandbox_null.py [--worlds 12] [--jobs 2]

A world is one draw of everything: gold pairs, unlabelled sentences, first texts and test pairs from source
seeds of its own, generation and training. All premises are off. A win: the row is above its control, and the
difference over seeds has p < 0.05, two-sided. So without any difference 2.5 % of the worlds have a win. Exit
code 1 if a comparison has more wins than that allows (one-sided binomial test at the 5 % level,
Bonferroni-adjusted over the comparisons).

Two kinds of comparisons:

exchangeable  Row and control are two draws from one distribution, whatever the seed: the sandbox's code
ensures it.
              Wins and losses are equally frequent, each in 2.5 % of the worlds, as far as Student's t is
              valid for so few seeds.
no gain       The method's advantage is switched off, but its data differ from its control's. It may be worse,
and
              then wins less often. Nothing proves that it can't be better.
"""

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from statistics import fmean
from typing import Any

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
# "foreign: 1" makes a source's domains meaningless.
TESTED, ELSEWHERE = ["crime"], ["cooking"]
OFF = {"stories": 0, "usual_words": 0, "edits": 0, "foreign": 1}
EXCHANGEABLE, NO_GAIN = "exchangeable", "no gain"


@dataclass(frozen=True)
class Comparison:
    """A row, its control, and why the row has no advantage."""

    row: str
    control: str
    kind: str
    reason: str


COMPARISONS = (
    Comparison("dino", "dino-elsewhere", EXCHANGEABLE, "first texts of the tested domain; domains are alike"),
    Comparison(
        "adapted", "adapted-elsewhere", EXCHANGEABLE, "target pairs of the tested domain; domains are alike"
    ),
    Comparison("partial", "one-prompt", EXCHANGEABLE, "prompts vary; the LLM answers each of them alike"),
    Comparison("dino", "no-debiasing", NO_GAIN, "all labels ask the language model for the same"),
    Comparison("bm25", "random", NO_GAIN, "the labeller never learnt to compare"),
    Comparison("bm25", "gold-only", NO_GAIN, "the labeller never learnt to compare"),
    Comparison(
        "adapted",
        "gold-only",
        NO_GAIN,
        "the labeller never learnt to compare, and gold is of the same domain",
    ),
)


@dataclass(frozen=True)
class Tally:
    """The differences of one comparison, one per world; None: all seeds have equal scores."""

    comparison: Comparison
    differences: tuple[Difference | None, ...]

    @property
    def wins(self) -> int:
        """The number of worlds in which the row is significantly above its control."""
        return sum(each.value > 0 for each in self._significant)

    @property
    def losses(self) -> int:
        """The number of worlds in which it is significantly below."""
        return sum(each.value < 0 for each in self._significant)

    @property
    def mean(self) -> float:
        """The mean difference, in points."""
        return fmean(each.value if each else 0.0 for each in self.differences)

    @property
    def p_value(self) -> float:
        """The probability of at least so many wins, if each world has one with probability 2.5 %."""
        from scipy.stats import binomtest

        return float(binomtest(self.wins, len(self.differences), LEVEL / 2, alternative="greater").pvalue)

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % Wilson interval of the share of wins."""
        from scipy.stats import binomtest

        found = binomtest(self.wins, len(self.differences)).proportion_ci(method="wilson")
        return float(found.low), float(found.high)

    @property
    def _significant(self) -> list[Difference]:
        return [each for each in self.differences if each is not None and each.p_value < LEVEL]


def adjusted(tallies: Sequence[Tally]) -> tuple[float, ...]:
    """Return the Bonferroni-adjusted p value of each comparison's wins."""
    return tuple(min(1.0, len(tallies) * each.p_value) for each in tallies)


def measured(folder: Path, num_worlds: int, jobs: int) -> list[Tally]:
    """Run `num_worlds` worlds as one experiment, written into `folder`, and count the wins.

    Stages in the store of SYNTHBENCH_HOME are not computed again. Raises CalledProcessError if the run fails.
    """
    file = write_experiment(folder, num_worlds)
    command = ["run", str(file), "--jobs", str(jobs), "--output", str(folder / "reports")]
    subprocess.run(
        [str(Path(sys.executable).with_name("synthbench")), *command], check=True, stdout=subprocess.DEVNULL
    )
    given = load_invocation(file, Overrides())
    return tallies(MlflowTracker(home()).load(NAME, request(given.experiment, given.overrides)), num_worlds)


def tallies(result: ExperimentResult, num_worlds: int) -> list[Tally]:
    """Count each comparison over the worlds of a result."""
    return [
        Tally(
            each,
            tuple(
                _difference(*(_runs(result, name, world) for name in (each.row, each.control)))
                for world in map(str, range(num_worlds))
            ),
        )
        for each in COMPARISONS
    ]


def _difference(row: Sequence[RunResult], control: Sequence[RunResult]) -> Difference | None:
    return over_seeds(_scores(row), _scores(control), is_paired=share_draws(row, control))


def _runs(result: ExperimentResult, row: str, world: str) -> list[RunResult]:
    return [run for run in result.runs if run.variant == row and run.axes["world"] == world]


def _scores(runs: Sequence[RunResult]) -> SeedScores:
    """Return a row's scores x 100 by seed."""
    values = [run.scores[0].scores[run.scores[0].main_score] * 100 for run in runs]
    return SeedScores(tuple(values), runs[0].is_seeded, tuple(run.seed for run in runs))


def write_experiment(folder: Path, num_worlds: int) -> Path:
    """Write the experiment file, and the prompts of "one-prompt" beside it."""
    for purpose in ("positive", "negative"):
        shipped = resources.files("synthbench_syncse") / "pools" / f"{purpose}.yaml"
        prompts: Mapping[str, Any] = load_yaml(shipped.read_text("utf-8"), purpose)["prompts"]
        first = next(iter(prompts))
        (folder / f"{purpose}.yaml").write_text(
            to_yaml({"prompts": {first: prompts[first]}}), encoding="utf-8"
        )
    file = folder / f"{NAME}.yaml"
    file.write_text(to_yaml(experiment(num_worlds)), encoding="utf-8")
    return file


def experiment(num_worlds: int) -> dict[str, Any]:
    """Return the experiment of `num_worlds` worlds, which are an axis of its grid."""
    sources = [_sources(world) for world in range(num_worlds)]
    return {
        "experiment": NAME,
        "description": "Small worlds in which no method has anything to win",
        # Half of the paraphrases contradict and half of the contradictions paraphrase, whatever the prompt.
        "llm": {"endpoint": "sandbox", "noise": 0.5, "habits": 0},
        "sources": {
            f"{name}-{world}": each for world, named in enumerate(sources) for name, each in named.items()
        },
        "seeds": list(SEEDS),
        "vary": ["sample", "generation"],
        "defaults": {
            "data": {"gold": {"source": "gold"}},
            "train": _training("bi-encoder"),
            "evaluate": {"sts": {"evaluator": "sts", "tasks": ["test"]}},
        },
        "baseline": "gold-only",
        "variants": {
            **{row: {"data.silver": silver} for row, silver in _silver().items()},
            **{row: {"data": {"gold": None, "x2": x2}} for row, x2 in _dino().items()},
            **{row: _contrastive(data) for row, data in _syncse().items()},
        },
        "grid": {
            "world": {
                str(world): {"aliases": {name: f"{name}-{world}" for name in named}}
                for world, named in enumerate(sources)
            }
        },
        "table": {
            "caption": "Spearman correlation × 100 in small worlds in which no method has anything to win"
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
    augsbert = {"method": "augsbert", "sources": {"gold": "gold"}, "cross_encoder": cross_encoder}
    domain = {"method": "augsbert-domain", "cross_encoder": cross_encoder}
    return {
        "bm25": {**augsbert, "sampler": {"name": "bm25", "k": 2}},
        "random": {**augsbert, "sampler": {"name": "random", "size": 100}},
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
        "no-debiasing": {**dino, "decay": 0},
    }


def _syncse() -> dict[str, dict[str, Any]]:
    partial = {"method": "syncse-partial", "sources": {"sentences": "x1"}}
    pools = {f"{purpose}_pool": f"{purpose}.yaml" for purpose in ("positive", "negative")}
    return {
        "partial": partial,
        "one-prompt": {**partial, **pools},
    }


def _contrastive(data: Mapping[str, Any]) -> dict[str, Any]:
    training = {**_training("simcse"), "learns_from": "triplet", "pooling": "mean"}
    return {"data": {"gold": None, "written": data}, "train": training}


def print_table(counted: Sequence[Tally]) -> None:
    """Print a row for each comparison, and the sum of each kind."""
    print(
        "| row against control | kind | nothing to win, since | worlds | mean difference | wins | losses |",
        end="",
    )
    print(" share of wins [95 %] | p, adjusted | more than allowed |")
    print("| --- | --- | --- | ---: | ---: | ---: | ---: | --- | ---: | --- |")
    for tally, p_value in zip(counted, adjusted(counted), strict=True):
        what = tally.comparison
        names = f"{what.row} against {what.control} | {what.kind} | {what.reason}"
        print(f"| {names} | {_figures(tally)} | {p_value:.2f} | {'YES' if p_value < LEVEL else 'no'} |")
    for kind in (EXCHANGEABLE, NO_GAIN):
        tally = _sum(kind, counted)
        print(f"| all | {kind} | | {_figures(tally)} | | |")


def _figures(tally: Tally) -> str:
    number, (low, high) = len(tally.differences), tally.interval
    share = f"{tally.wins / number:.1%} [{low:.1%}, {high:.1%}]"
    return f"{number} | {tally.mean:+.2f} | {tally.wins} | {tally.losses} | {share}"


def _sum(kind: str, counted: Iterable[Tally]) -> Tally:
    of_kind = [each for each in counted if each.comparison.kind == kind]
    return Tally(Comparison("", "", kind, ""), tuple(one for each in of_kind for one in each.differences))


def main() -> int:
    """Run the worlds and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--worlds", type=int, default=12)
    parser.add_argument("--jobs", type=int, default=2)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        counted = measured(Path(name), given.worlds, given.jobs)
    print_table(counted)
    return int(any(p_value < LEVEL for p_value in adjusted(counted)))


if __name__ == "__main__":
    sys.exit(main())
