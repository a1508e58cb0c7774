"""Whether a synthetic test set orders encoders as people's questions do, in sandbox worlds.

    python benchmarks/synthetic_test_set.py [--worlds 4] [--jobs 1] [--minutes 60]

Each finished world is written to benchmarks/results/synthetic_test_set.csv; the same command goes on with the
next one, and prints the figures of all. `--minutes` begins no world after this time.

The rule was declared before the first world was run. docs/documents.md lists all deviations.

World n is a corpus of 800 passages of medicine, drawn with seed n. No encoder trains on labelled text of
medicine. Half of the passages are for training, half for the synthetic test sets. All test sets search all
passages.

people      the sandbox's own questions, about 100, with known relevance: they stand for people's
same        a question for each passage of the test half, by the LLM that also writes training questions
other       a question for each, by an LLM without habits (habits ask about objects, in the passage's words)
noisy       a question for each, by an LLM with habits that gives 30 % wrong answers

Ten encoders with two seeds differ in data and steps. None is left out afterwards:

untrained                   the base
domains-20, -60, -200       questions and passages of other domains; 20, 60 and 200 steps
queries-20, -60, -200       the LLM's questions for the training half
few-60                      the LLM's questions for 40 passages
wrong-60                    questions by an LLM that gives 50 % wrong answers
mined-60                    the LLM's questions with negatives mined by BM25

Primary: Kendall's tau between people and same, of the encoders' mean nDCG@10. Secondary, for all three sets:

- Spearman's rho, and the order of clear pairs (`synthbench.statistics.orders`);
- the favour. The lead is the mean difference of queries-N and domains-N over the three numbers of steps. The
  favour is the lead on the synthetic set minus the lead on people's questions.

Figures are means over worlds, with Student's t intervals. Each world's own figure has a bootstrap's interval
over questions and seeds.
"""

import argparse
import csv
import math
import time
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from measure import exit_with

import synthbench
from synthbench.base.home import home
from synthbench.data.beir import write_retrieval_task
from synthbench.data.dataset import SyntheticDataset
from synthbench.engine.artifacts import Artifacts
from synthbench.engine.stores import open_store
from synthbench.results.collect import to_yaml
from synthbench.sources.description import Roots
from synthbench.sources.models import WorldSource
from synthbench.statistics.differences import t_quantile

CSV = Path(__file__).parent / "results" / "synthetic_test_set.csv"
SETS = ("same", "other", "noisy")
FIELDS = ("world", "measure", *(f"{name}{end}" for name in SETS for end in ("", "_low", "_high")))
STEPS = (20, 60, 200)
HALVES = {"train": 0.5, "test": 0.5}
LLMS = {
    "writer": {"endpoint": "sandbox", "seed": 0},
    "other": {"endpoint": "sandbox", "seed": 1, "habits": 0.0},
    "noisy": {"endpoint": "sandbox", "seed": 2, "noise": 0.3},
    "wrong": {"endpoint": "sandbox", "seed": 3, "noise": 0.5},
}


def passages(world: int) -> dict[str, Any]:
    """Return the source of a world's passages."""
    return {"sandbox": "passages", "split": "test", "size": 800, "domains": "held-out", "seed": world}


def half(world: int, take: str) -> dict[str, Any]:
    """Return the source of half of a world's passages."""
    return {**passages(world), "part": {"take": take, "by": "record", "shares": HALVES}}


def questions(source: str, llm: str, **more: Any) -> dict[str, Any]:  # noqa: ANN401 - keys of a part
    """Return a part: a question for each passage of a source."""
    part = {"method": "gpl-queries", "llm": llm, "sources": {"passages": source}, "queries_per_passage": 1}
    return {**part, **more}


def questions_file(world: int) -> dict[str, Any]:
    """Return the experiment that writes the synthetic test sets."""
    writers = {"same": "writer", "other": "other", "noisy": "noisy"}
    return {
        "experiment": f"questions-{world}",
        "llms": {name: LLMS[name] for name in writers.values()},
        "sources": {"passages": half(world, "test")},
        "variants": {
            name: {"data": {"questions": questions("passages", llm)}} for name, llm in writers.items()
        },
    }


def encoders_file(world: int) -> dict[str, Any]:
    """Return the experiment that trains the encoders and scores them on all test sets."""
    own = half(world, "train")
    rows: dict[str, Any] = {
        "untrained": {"train": {"trainer": "none", "base": {"model": "sandbox/encoder"}}, "data": None}
    }
    for steps in STEPS:
        rows[f"domains-{steps}"] = {"data.gold": {"source": "answers"}, "train.max_steps": steps}
        rows[f"queries-{steps}"] = {"data.queries": questions("own", "writer"), "train.max_steps": steps}
    rows["few-60"] = {"data.queries": questions("few", "writer")}
    rows["wrong-60"] = {"data.queries": questions("own", "wrong")}
    mined = [{"step": "mine-negatives", "miner": "bm25"}]
    loss = {"name": "multiple-negatives", "learns_from": "triplet"}
    rows["mined-60"] = {"data.queries": questions("own", "writer", prepare=mined), "train.loss": loss}
    task = {"split": "test", "domains": "held-out", "seed": world, "size": 800}
    return {
        "experiment": f"encoders-{world}",
        "llms": {name: LLMS[name] for name in ("writer", "wrong")},
        "sources": {
            "own": own,
            "few": {**own, "sample": {"size": 40, "seed": 0}},
            "answers": {"sandbox": "answers", "split": "train", "size": 4000, "domains": "in-domain"},
            "people": {"sandbox": "retrieval", **task},
            **{name: {"corpus": name} for name in SETS},
        },
        "seeds": [0, 1],
        "defaults": {
            "train": {
                "trainer": "bi-encoder",
                "base": {"model": "sandbox/encoder"},
                "learning_rate": 3e-4,
                "batch_size": 32,
                "scheduler": "linear",
                "warmup_ratio": 0.1,
                "max_steps": 60,
                "loss": {"name": "multiple-negatives"},
            },
            "evaluate": {"search": {"evaluator": "retrieval", "tasks": ["people", *SETS]}},
        },
        "variants": rows,
    }


def run_world(world: int, folder: Path, jobs: int) -> list[dict[str, Any]]:
    """Return a world's lines: each measure of agreement with people's questions, by synthetic test set."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "questions.yaml"
    file.write_text(to_yaml(questions_file(world)), encoding="utf-8")
    made = synthbench.run(file, jobs=jobs, output=folder / "reports").result
    everything = WorldSource.model_validate(passages(world)).load(Roots())
    artifacts = Artifacts(open_store())
    for run in made.runs:
        data = SyntheticDataset.read(artifacts.dataset(run.datasets[0].stage))
        write_retrieval_task(data, everything, folder / run.variant, force=True)
    file = folder / "encoders.yaml"
    file.write_text(to_yaml(encoders_file(world)), encoding="utf-8")
    found = synthbench.run(file, jobs=jobs, output=folder / "reports")
    agreements = {name: found.agreement("people", name) for name in SETS}
    measures = list(agreements["same"]["measure"])
    ends = {"": "value", "_low": "low", "_high": "high"}
    lines = [
        {"world": world, "measure": measure}
        | {
            f"{name}{end}": each[column][at]
            for name, each in agreements.items()
            for end, column in ends.items()
        }
        for at, measure in enumerate(measures)
    ]
    scores = found.scores[found.scores["is_main"]].groupby(["task", "variant"])["score"].mean() * 100
    lead = {
        task: fmean(scores[task][f"queries-{steps}"] - scores[task][f"domains-{steps}"] for steps in STEPS)
        for task in ("people", *SETS)
    }
    favour = {name: lead[name] - lead["people"] for name in SETS}
    return [*lines, {"world": world, "measure": "favour, points of nDCG@10", **favour}]


def recorded() -> list[dict[str, str]]:
    """Return the lines of the worlds that are finished."""
    if not CSV.is_file():
        return []
    with CSV.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def interval(values: list[float]) -> str:
    """Return the mean and its 95 % interval over worlds."""
    known = [value for value in values if not math.isnan(value)]
    if len(known) < 2:
        return f"{fmean(known):.2f}" if known else "-"
    margin = t_quantile(len(known) - 1) * stdev(known) / math.sqrt(len(known))
    return f"{fmean(known):.2f} ({fmean(known) - margin:.2f} to {fmean(known) + margin:.2f})"


def _with_ends(line: dict[str, str], name: str) -> str:
    """Return a world's figure with the interval of its own bootstrap, if it has one."""
    value, low, high = (float(line[f"{name}{end}"]) for end in ("", "_low", "_high"))
    return f"{value:.2f}" + ("" if math.isnan(low) else f" ({low:.2f} to {high:.2f})")


def main() -> None:
    """Run the worlds that are missing, and print the figures of all."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--worlds", type=int, default=4)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=60)
    given = parser.parse_args()
    end = time.monotonic() + 60 * given.minutes
    done = {int(line["world"]) for line in recorded()}
    for world in range(given.worlds):
        if world in done or time.monotonic() > end:
            continue
        lines = run_world(world, home() / "synthetic_test_set" / str(world), given.jobs)
        is_new = not CSV.is_file()
        with CSV.open("a", encoding="utf-8", newline="") as stream:
            writer = csv.DictWriter(stream, FIELDS, lineterminator="\n")
            if is_new:
                writer.writeheader()
            writer.writerows(lines)
    found = recorded()
    print(f"{len({line['world'] for line in found})} worlds")
    for measure in dict.fromkeys(line["measure"] for line in found):
        of_measure = [line for line in found if line["measure"] == measure]
        cells = (f"{name} {interval([float(line[name]) for line in of_measure])}" for name in SETS)
        print(f"{measure}: {', '.join(cells)}")
        for line in of_measure if "favour" not in measure else ():
            own = (f"{name} {_with_ends(line, name)}" for name in SETS)
            print(f"  world {line['world']}: {', '.join(own)}")


if __name__ == "__main__":
    exit_with(main)
