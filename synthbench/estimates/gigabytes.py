"""How many bytes a stage's artifact takes in the store, and how many its models take on a GPU."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from synthbench.engine.stage import Stage
from synthbench.estimates.facts import SENTENCES, Known, work_of
from synthbench.estimates.gpus import USED_SHARE, Gpu
from synthbench.estimates.needs import BYTES_TRAINED, models_of
from synthbench.models.work import BYTES_READ, Shape, shape_of, shape_of_base
from synthbench.plugins.contracts import Trainer

OF_SENTENCE, OF_RECORD = 60, 20
"""Bytes of a data set's file: assumed, compressed; an evaluated record takes as much as a sentence."""
PAUSED_BYTES = 12
"""Bytes for each parameter of a paused training: value and AdamW's two moments."""
CONTEXT = 1e9
"""Bytes that CUDA and its libraries take."""
LONGEST = 128
"""Tokens of the longest sentence in a batch, where the file gives no `max_length`."""
HEAD = 64
"""Assumed size of an attention head."""


@dataclass(frozen=True)
class Amount:
    """Bytes, None: unknown, as `unknown` says."""

    num_bytes: float | None
    unknown: str = ""


def stored(stage: Stage, known: Known) -> Amount:
    """Return the bytes of a stage's artifact: its model, its records, or the scores of each record."""
    plugin = getattr(stage.operation, "plugin", None)
    if isinstance(plugin, Trainer):
        return _stored_model(stage, known, plugin)
    if stage.kind in ("select", "audit"):
        return Amount(0.0)
    if stage.kind == "evaluate":
        facts = known.facts(stage.inputs["task"])
        return _times(facts.num_records, OF_SENTENCE)
    facts = known.facts(stage)
    if facts.kind is None:
        return Amount(None, "the amount of its records")
    return _times(facts.num_records, OF_RECORD + OF_SENTENCE * SENTENCES[facts.kind])


def on_gpu(stage: Stage, known: Known, gpu: Gpu) -> Amount:
    """Return the bytes that a stage fills on this GPU at most: weights, and what computing keeps.

    A language model writes as many texts at a time as there is room for, one at least.
    """
    piece = known.piece(stage)
    base = getattr(piece.plugin, "base", None)
    if isinstance(piece.plugin, Trainer) and base is not None:
        shape = shape_of_base(base)
        if shape is None:
            return Amount(None, f"the size of {base.model}")
        return Amount(CONTEXT + BYTES_TRAINED * shape.num_parameters + _kept(shape, piece.plugin))
    work = work_of(piece)
    if work is not None and work.writing is not None:
        room = USED_SHARE * gpu.memory_gb * 1e9
        return Amount(CONTEXT + work.writing.weights + work.writing.batch(room) * work.writing.sequence)
    shapes = [(model, shape_of(model, revision)) for model, revision in models_of(stage, known)]
    gaps = [model for model, shape in shapes if shape is None]
    if gaps:
        return Amount(None, f"the size of {gaps[0]}")
    return Amount(CONTEXT + sum(BYTES_READ * shape.num_parameters for _, shape in shapes if shape))


def added(stages: Iterable[Stage], amount_of: Callable[[Stage], Amount]) -> tuple[float, dict[str, int]]:
    """Return the known bytes of stages together, and the number of unknown ones by what is unknown."""
    total, unknown = 0.0, dict[str, int]()
    for stage in stages:
        amount = amount_of(stage)
        if amount.num_bytes is None:
            what = f"{stage.kind} {stage.operation.component}: {amount.unknown}"
            unknown[what] = unknown.get(what, 0) + 1
        total += amount.num_bytes or 0.0
    return total, unknown


def _stored_model(stage: Stage, known: Known, trainer: Trainer) -> Amount:
    base = known.facts(stage).base
    if base is None or not trainer.takes_data:
        return Amount(0.0)
    shape = shape_of_base(base)
    if shape is None:
        return Amount(None, f"the size of {base.model}")
    is_paused = known.facts(stage).until < 1
    return Amount(float(shape.num_parameters * (PAUSED_BYTES if is_paused else BYTES_READ)))


def _times(number: int | None, each: int) -> Amount:
    return Amount(None, "the amount of its records") if number is None else Amount(float(number * each))


def _kept(shape: Shape, trainer: Trainer) -> float:
    """Return the bytes of the activations of a batch, or of a device's share.

    The formula is that of Korthikanti et al. 2022.
    """
    share = getattr(trainer, "batch_size", 1) // trainer.num_devices
    rows: int = min(getattr(trainer, "chunk_size", 0) or share, share)
    sentences: float = rows * getattr(trainer, "sentences_per_record", 1)
    tokens: int = getattr(trainer, "max_length", None) or LONGEST
    of_layer = sentences * tokens * (34 * shape.width + 5 * tokens * shape.width / HEAD)
    wide = 1 if getattr(trainer, "precision", "fp32") == "bf16" else 2
    if getattr(trainer, "gradient_checkpointing", False):
        of_inputs = 2 * sentences * tokens * shape.width * shape.num_layers
        return float(wide * (of_layer + of_inputs))
    return float(wide * of_layer * shape.num_layers)
