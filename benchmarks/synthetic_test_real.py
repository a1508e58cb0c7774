"""Whether test pairs that real LLMs wrote order encoders as people's judgements do.

    python benchmarks/synthetic_test_real.py --data DIR [--jobs 1]

Runs experiments/studies/synthetic_test_real.yaml, whose head states the rule, and writes
benchmarks/results/synthetic_test_real.csv: for each LLM's and each of people's test sets, Kendall's tau and
Spearman's rho of the rows' scores with 95 % intervals over test pairs and seeds, the share of clear pairs of
rows in the same order, and the favour of the LLM's own texts in points.
"""

import argparse
import csv
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING

from measure import exit_with

import synthbench

if TYPE_CHECKING:
    import pandas as pd

ROOT = Path(__file__).parents[1]
STUDY = ROOT / "experiments" / "studies" / "synthetic_test_real.yaml"
CSV = Path(__file__).parent / "results" / "synthetic_test_real.csv"
LLMS = ("mistral", "llama", "gemma")
PEOPLE = ("STSb", "SICK-R")
FIELDS = ("llm", "people", "measure", "value", "low", "high", "number")


def lead(means: "pd.Series[float]", llm: str, task: str) -> float:
    """Return how far an LLM's row is above the mean of the other LLMs' rows, in points."""
    others = [means[other, task] for other in LLMS if other != llm]
    return 100 * (means[llm, task] - fmean(others))


def figures(results: synthbench.Results) -> list[dict[str, object]]:
    """Return all lines of the CSV."""
    main = results.scores[results.scores["is_main"]]
    means = main.groupby(["variant", "task"])["score"].mean()
    lines: list[dict[str, object]] = []
    for llm in LLMS:
        for people in PEOPLE:
            found = results.agreement(people, f"{llm}-test").round(3)
            lines += [
                {"llm": llm, "people": people, **{str(name): value for name, value in each.items()}}
                for each in found.to_dict("records")
            ]
            favour = lead(means, llm, f"{llm}-test") - lead(means, llm, people)
            lines.append({"llm": llm, "people": people, "measure": "favour", "value": round(favour, 2)})
    return lines


def main() -> None:
    """Run the study, write the figures and print them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--jobs", type=int, default=1)
    given = parser.parse_args()
    lines = figures(synthbench.run(STUDY, data=given.data, jobs=given.jobs))
    with CSV.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, FIELDS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(lines)
    for line in lines:
        print(*(f"{line.get(name, '')!s:>22}" for name in FIELDS))


if __name__ == "__main__":
    exit_with(main)
