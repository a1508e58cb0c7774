"""What a stage needs of a machine: CPU cores, GPUs, memory."""

import math

from synthbench.base.runtime import SEQUENCES, Resources, Runtime
from synthbench.config.experiment import PrepareStep
from synthbench.engine.ray_nodes import GB, Needs
from synthbench.engine.stage import Stage
from synthbench.estimates.facts import Known, models_of, work_of
from synthbench.estimates.figures import weights
from synthbench.stages.preparation import ApplyStep, Prepare, memory_of

LIGHT_GB = 0.5
"""Memory of a stage that reads and writes records."""
LOADED_GB = 2.0
"""Memory that torch and transformers take, and a batch of a small model."""
CORES_BESIDE_A_GPU = 2
USES_MODELS = ("train", "evaluate", "generate")


def needs_of(stage: Stage, num_gpus: float, *, known: Known, runtime: Runtime) -> Needs:
    """Return what a stage needs: what `runtime.resources` states of its kind, the rest by its models' sizes.

    A stage with a model takes a GPU if some machine has one (`num_gpus`: the most that one has), and the
    runtime's device allows it; a training that several GPUs share takes all of them, whatever is stated.
    """
    piece = known.piece(stage)
    models, asks = models_of(piece), stage.operation.asked_llm is not None
    takes_model = any(models.values()) or (stage.kind in USES_MODELS and (bool(models) or not asks))
    gpus = 1.0 if takes_model and num_gpus and runtime.device.partition(":")[0] in ("auto", "cuda") else 0.0
    # Processes that share a training have a model each, and on a machine with GPUs one each.
    number = stage.operation.num_devices
    memory_gb = number * (LOADED_GB + weights(piece) / GB) if takes_model else LIGHT_GB
    if not gpus and (work := work_of(piece)) is not None:
        memory_gb += work.kept * runtime.num_sequences("cpu") / SEQUENCES["cuda"] / GB
    memory_gb += _bytes_of_steps(stage, known) / GB
    stated = runtime.resources.get(stage.kind, Resources())  # type: ignore[call-overload] # any kind may be asked for
    if stated.gpus is not None and number == 1:
        gpus = stated.gpus
    gpus *= number
    cpus = stated.cpus or number * (runtime.threads or (CORES_BESIDE_A_GPU if gpus else 1))
    return Needs(cpus, gpus, math.ceil(10 * (stated.memory_gb or memory_gb)) / 10)


def _bytes_of_steps(stage: Stage, known: Known) -> float:
    """Return the memory that a prepare stage's steps say they take."""
    size, operation = known.piece(stage).data.num_records, stage.operation
    if size is None:
        return 0.0
    if isinstance(operation, ApplyStep):
        return memory_of([PrepareStep(operation.name, operation.plugin)], size)
    return memory_of(operation.steps, size) if isinstance(operation, Prepare) else 0.0
