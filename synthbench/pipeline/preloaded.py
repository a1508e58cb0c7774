"""Import the slow libraries of stages once, in the process that worker processes are forked from.

Nothing here may start a thread or use a GPU: neither survives a fork.
"""

import gc

import synthbench.models.encoder
import synthbench.models.pair_scorer
import synthbench.stages.evaluation
import synthbench.stages.generation
import synthbench.stages.preparation
import synthbench.training.trainers

__all__ = ["synthbench"]

# Each training collects garbage. With the libraries' objects that takes half a second, and it copies memory
# that the processes share.
gc.collect()
gc.freeze()
