"""Use synthbench from Python: run experiments, score models, generate data. Results are data frames.

import synthbench

results = synthbench.load("experiments/quickstart.yaml")
results.scores.groupby(["variant", "task"])["score"].mean()
"""

from synthbench.python.generating import generate
from synthbench.python.results import Results
from synthbench.python.running import load, run
from synthbench.python.scoring import evaluate
from synthbench.python.study import Study

__all__ = ["Results", "Study", "evaluate", "generate", "load", "run"]
