"""The resources that a stage needs: CPU cores, GPUs, memory."""

import math

from synthbench.base.runtime import SEQUENCES, Resources, Runtime
from synthbench.config.experiment import PrepareStep
from synthbench.engine.ray_nodes import GB, Needs
from synthbench.engine.stage import Stage
from synthbench.estimates.facts import StageFacts, models_of, work_of
from synthbench.estimates.figures import weights
from synthbench.stages.preparation import ApplyStep, Prepare, memory_of

LIGHT_GB = 0.5
"""Gigabytes of memory for a stage that only reads and writes records."""
LOADED_GB = 2.0
"""Gigabytes of memory for torch, transformers and a batch of a small model."""
CORES_BESIDE_A_GPU = 2
USES_MODELS = ("train", "evaluate", "generate")


def needs_of(stage: Stage, num_gpus: float, *, known: StageFacts, runtime: Runtime) -> Needs:
    """Return a stage's cores, GPUs and memory: from `runtime.resources` for its kind, else from its models.

    `num_gpus`: the most GPUs on one machine. A stage with a model takes a GPU if a machine has one and the
    runtime's device allows it. A training on several GPUs takes all of them, whatever `resources` states.
    """
    view = known.view(stage)
    models, asks = models_of(view), stage.operation.asked_llm is not None
    takes_model = any(models.values()) or (stage.kind in USES_MODELS and (bool(models) or not asks))
    gpus = 1.0 if takes_model and num_gpus and runtime.device.partition(":")[0] in ("auto", "cuda") else 0.0
    # Each process of a shared training has a model of its own and, on a machine with GPUs, a GPU of its own.
    number = stage.operation.num_devices
    memory_gb = number * (LOADED_GB + weights(view) / GB) if takes_model else LIGHT_GB
    if not gpus and (work := work_of(view)) is not None:
        memory_gb += work.kept * runtime.num_sequences("cpu") / SEQUENCES["cuda"] / GB
    memory_gb += _bytes_of_steps(stage, known) / GB
    stated = runtime.resources.get(stage.kind, Resources())  # type: ignore[call-overload] # any kind may be asked for
    if stated.gpus is not None and number == 1:
        gpus = stated.gpus
    gpus *= number
    cpus = stated.cpus or number * (runtime.threads or (CORES_BESIDE_A_GPU if gpus else 1))
    return Needs(cpus, gpus, math.ceil(10 * (stated.memory_gb or memory_gb)) / 10)


def _bytes_of_steps(stage: Stage, known: StageFacts) -> float:
    """Return the bytes of memory that a prepare stage's steps declare; 0 if unknown, and for other stages."""
    size, operation = known.view(stage).data.num_records, stage.operation
    if size is None:
        return 0.0
    if isinstance(operation, ApplyStep):
        return memory_of([PrepareStep(operation.name, operation.plugin)], size)
    return memory_of(operation.steps, size) if isinstance(operation, Prepare) else 0.0
