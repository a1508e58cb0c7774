"""Import the slow libraries of stages once, in the process that worker processes are forked from.

Nothing here may start a thread or use a GPU: neither survives a fork.
"""

import gc
from importlib import import_module

# Imports make a million objects and hardly any garbage; looking for it takes a tenth of their time.
gc.disable()
for name in (
    "synthbench.api",  # plug-ins import it
    "synthbench.models.encoder",
    "synthbench.models.pair_scorer",
    "synthbench.stages.evaluation",
    "synthbench.stages.generation",
    "synthbench.stages.preparation",
    "synthbench.training.trainers",
):
    import_module(name)

# Each training collects garbage. With the libraries' objects that takes half a second, and it copies memory
# that the processes share.
gc.collect()
gc.freeze()
gc.enable()
