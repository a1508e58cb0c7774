"""The settings that all trainers share."""

import math
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from synthbench.models.precision import Precision
from synthbench.models.pretrained import Pretrained
from synthbench.models.work import Work, training
from synthbench.plugins.contracts import Trainer

LearningRate = Annotated[float, Field(gt=0, le=1, description="peak learning rate of AdamW")]
Scheduler = Annotated[
    Literal["constant", "linear", "cosine"],
    Field(description="course of the learning rate after the warm-up"),
]
WarmupRatio = Annotated[
    float, Field(ge=0, lt=1, description="share of the steps in which the learning rate rises from 0")
]

MASKED_SHARE = 0.15
"""Of the tokens, those that a training with masked words guesses."""
OF_RECORD = "label"
"""Column that the library hands to the loss: a record's score, or its row in the table (int64)."""
NUM_NEGATIVES, RECORD_TEMPERATURE = "num_negatives", "temperature"
"""Columns of facts about a record, which no model reads: int64, and float32 with NaN for the loss's own."""

# Left out of what identifies a training while it is off, as it was before there was this key.
BothOrders = Annotated[
    bool,
    Field(
        exclude_if=lambda is_on: not is_on,
        description="an epoch has each gold pair twice, as (a, b) and (b, a); pairs that a method made stay"
        " as they are",
    ),
]


class Every(BaseModel):
    """Evaluations so many steps apart."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    every: int = Field(
        ge=1, le=10_000_000, description="dev is scored after each so many steps, and at the end"
    )


class TrainingSettings(Trainer):
    """The fields that the trainers share; each gives its own defaults to the course of the learning rate.

    Gradients are clipped to norm 1, as sentence-transformers does.
    """

    can_pause: ClassVar[bool] = True
    takes_weights: ClassVar[bool] = True

    base: Pretrained = Field(description="the model that the training starts from")
    epochs: float | None = Field(
        None, gt=0, le=10_000, description="passes over the data; 1 if neither this nor `max_steps` is given"
    )
    max_steps: int | None = Field(
        None, ge=1, le=10_000_000, description="optimiser steps, instead of `epochs`"
    )
    batch_size: int = Field(16, ge=1, le=65_536, description="records in one step")
    learning_rate: LearningRate
    scheduler: Scheduler
    warmup_ratio: WarmupRatio
    weight_decay: float = Field(0.01, ge=0, le=1, description="of all weights but biases and norms")
    max_length: int | None = Field(
        None,
        ge=3,
        le=32_768,
        description="longest input in training, in tokens; null: what the base reads; no matter if static",
    )
    evaluations: Annotated[int, Field(ge=1, le=1000)] | Every = Field(
        4,
        description="with `selection`: how often dev is scored, evenly spread, the last at the end;"
        " `{every: 100}`: after each 100 steps, and at the end",
    )
    gradient_checkpointing: bool = Field(
        False,
        exclude_if=lambda is_on: not is_on,
        description="compute activations again for the gradients: less memory, more time",
    )
    devices: int = Field(
        1,
        ge=1,
        le=64,
        exclude_if=lambda number: number == 1,
        description="GPUs that share this training: each takes an equal share of every batch, and losses with"
        " negatives of the batch see all of it; on a CPU so many processes",
    )
    precision: Precision = Field(
        "fp32",
        description="of the computation, in dev evaluations too; the weights stay fp32. tf32: matrix products"
        " of an NVIDIA GPU",
    )

    @property
    def losses(self) -> tuple[str, ...]:
        """The losses that it minimises, by their classes' names in sentence-transformers; () if unknown."""
        return ()

    @model_validator(mode="before")
    @classmethod
    def _one_epoch_by_default(cls, given: Any) -> Any:  # noqa: ANN401 - whatever the file holds
        if (
            not isinstance(given, dict)
            or given.get("epochs") is not None
            or given.get("max_steps") is not None
        ):
            return given
        return {**given, "epochs": 1.0}

    @model_validator(mode="after")
    def _one_length(self) -> "TrainingSettings":
        if self.epochs is not None and self.max_steps is not None:
            raise ValueError("give either epochs or max_steps, not both (null takes one away)")
        return self

    @model_validator(mode="after")
    def _batch_can_be_shared(self) -> "TrainingSettings":
        if self.batch_size % self.devices:
            raise ValueError(
                f"batch_size {self.batch_size} can't be shared equally by devices: {self.devices}; take a"
                " multiple of it"
            )
        return self

    @property
    def num_devices(self) -> int:
        """How many GPUs, or processes of a CPU, share a training."""
        return self.devices

    def why_no_start(self) -> str:
        """Return why it can't start from a trained model, "" if it can."""
        return ""

    def starting_from(self, artifact: Path, trusted: Collection[Pretrained] = ()) -> Self:
        """Return the same training with the trained model of an artifact as its base.

        Of code that comes with it, only that of the `trusted` bases runs.
        """
        from synthbench.models.artifact import base_of

        return self.model_copy(update={"base": base_of(artifact, trusted)})

    def revisions(self) -> dict[str, str]:
        """Return the content hash or commit of the base."""
        return self.base.fingerprint()

    def num_steps(self, num_records: int) -> int:
        """Return the optimiser steps of a training on so many records.

        Those that are left over when devices share an epoch are in none of its steps.
        """
        if self.max_steps is not None:
            return self.max_steps
        num_records -= num_records % self.devices
        return math.ceil((self.epochs or 1.0) * math.ceil(num_records / self.batch_size))

    @property
    def sentences_per_record(self) -> float:
        """How many sentences the model reads of each record."""
        return 2

    def work(self, num_records: int | None, num_dev: int | None) -> Work | None:
        """Return what the steps and the scoring of dev pairs compute; None if the steps are unknown."""
        if num_records is None and self.max_steps is None:
            return None
        num_steps = self.num_steps(num_records or 0)
        work = training(
            self.base,
            num_steps,
            self.batch_size * self.sentences_per_record,
            num_dev=2 * len(self.evaluation_steps(num_steps)) * (num_dev or 0),
        )
        return replace(work, precision=self.precision)

    def evaluation_steps(self, num_steps: int) -> tuple[int, ...]:
        """Return after which of `num_steps` steps the model is evaluated: ascending, the last included."""
        if isinstance(self.evaluations, Every):
            return (*range(self.evaluations.every, num_steps, self.evaluations.every), num_steps)
        planned = (round(num_steps * turn / self.evaluations) for turn in range(1, self.evaluations + 1))
        return tuple(sorted({max(1, step) for step in planned}))
