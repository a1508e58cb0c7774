"""Relevance of the hard negatives of negatives_sandbox, which the sandbox knows.

    python benchmarks/negatives_truth.py          (after the study; SYNTHBENCH_HOME is its home; seconds)

Prints the table of docs/negatives.md. A question is answered if its positive answers, at least in part;
shares of negatives are over these questions. A denial has a negation.
"""

from collections import defaultdict
from pathlib import Path

from synthbench.base.home import home
from synthbench.config.load import load_experiment
from synthbench.config.overrides import Overrides
from synthbench.data.dataset import SyntheticDataset
from synthbench.data.records import Record, Triplet
from synthbench.engine.artifacts import Artifacts
from synthbench.engine.store import Store
from synthbench.pipeline.planning import make_plan
from synthbench.results.collect import collect
from synthbench.worlds.sandbox.parsing import sentences_told
from synthbench.worlds.sandbox.relevance import relevance_of

FILE = Path(__file__).parents[1] / "experiments/studies/negatives_sandbox.yaml"


def line(name: str, records: list[Record]) -> str:
    """Return a row of the table: its questions and hard negatives of all seeds."""
    triplets = [one for one in records if isinstance(one, Triplet)]
    own = [one for one in triplets if relevance_of(one.positive, one.anchor)]
    grades = [relevance_of(text, one.anchor) for one in own for text in one.negatives]
    denials = [
        any(known.event.is_negative for known in sentences_told(text))
        for one in own
        for text in one.negatives
    ]
    shares = (
        len(own) / len(triplets),
        sum(grade == 1 for grade in grades) / len(grades),
        sum(grade == 0.5 for grade in grades) / len(grades),
        sum(denials) / len(denials),
    )
    return f"| {name} | {len(triplets):,} | {' | '.join(f'{share:.1%}' for share in shares)} |"


def main() -> None:
    """Print the table."""
    artifacts = Artifacts(Store(home() / "store"))
    records: dict[str, list[Record]] = defaultdict(list)
    for run in collect(make_plan(load_experiment(FILE, Overrides())), artifacts).runs:
        for data in run.datasets:
            records[run.variant] += SyntheticDataset.read(artifacts.dataset(data.stage))
    print("| row | triplets | answered by the positive | negatives that answer | in part | denials |")
    for name, found in records.items():
        if isinstance(found[0], Triplet):
            print(line(name, found))


if __name__ == "__main__":
    main()
