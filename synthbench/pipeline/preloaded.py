"""What stages import and takes long: imported once, by the process that the others are copies of.

Nothing here may start a thread or use a GPU: neither survives the copying.
"""

import gc

import synthbench.models.encoder
import synthbench.models.pair_scorer
import synthbench.stages.evaluation
import synthbench.stages.generation
import synthbench.stages.preparation
import synthbench.training.trainers

__all__ = ["synthbench"]

# Each training collects garbage. Among the libraries' objects that takes half a second, and copies the memory
# that processes share.
gc.collect()
gc.freeze()
