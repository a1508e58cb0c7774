"""The settings that all trainers share."""

import math
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from synthbench.base.frozen import Omitted, added_field
from synthbench.models.precision import TrainingPrecision
from synthbench.models.pretrained import Pretrained
from synthbench.models.work import Work, training
from synthbench.plugins.model_contracts import Trainer

LearningRate = Annotated[float, Field(gt=0, le=1, description="peak learning rate of AdamW")]
Scheduler = Annotated[
    Literal["constant", "linear", "cosine"],
    Field(description="schedule of the learning rate after the warm-up"),
]
WarmupRatio = Annotated[
    float, Field(ge=0, lt=1, description="share of the steps with a rising learning rate")
]

MASKED_SHARE = 0.15
"""Share of tokens masked in training with masked words."""
OF_RECORD = "label"
"""The label column that the library passes to the loss: a record's score, or its row in the table (int64)."""
NUM_NEGATIVES, RECORD_TEMPERATURE = "num_negatives", "temperature"
"""Columns that no model reads: a record's number of negatives, and its temperature (NaN: the loss's own)."""

USUAL_LIST = 5
"""Texts per ranking assumed by estimates: a query and four candidates, as `graded-documents` writes."""

BothOrders = Annotated[
    bool,
    Field(
        exclude_if=Omitted(False),
        description="repeat each gold pair as (b, a) in every epoch; pairs made by a method are not repeated",
    ),
]


class Every(BaseModel):
    """Evaluations at a fixed interval of steps."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    every: int = Field(
        ge=1, le=10_000_000, description="number of steps between evaluations on dev; the last is at the end"
    )


class TrainingSettings(Trainer):
    """Settings of all trainers; each trainer has its own defaults for the learning rate's schedule."""

    can_pause: ClassVar[bool] = True
    takes_weights: ClassVar[bool] = True

    base: Pretrained = Field(description="the base model of the training")
    epochs: float | None = Field(
        None, gt=0, le=10_000, description="passes over the data. Default: 1, unless `max_steps` is set"
    )
    max_steps: int | None = Field(
        None, ge=1, le=10_000_000, description="number of optimiser steps, instead of `epochs`"
    )
    least_steps: int | None = added_field(
        None,
        ge=1,
        le=10_000_000,
        description="with `epochs`: minimum number of steps, for small data sets",
    )
    batch_size: int = Field(16, ge=1, le=65_536, description="records per step")
    learning_rate: LearningRate
    scheduler: Scheduler
    warmup_ratio: WarmupRatio
    weight_decay: float = Field(0.01, ge=0, le=1, description="weight decay, except for biases and norms")
    max_length: int | None = Field(
        None,
        ge=3,
        le=32_768,
        description="longest training input in tokens. Default: the base's limit; static models ignore it",
    )
    evaluations: Annotated[int, Field(ge=1, le=1000)] | Every = Field(
        4,
        description="with `selection`: number of evenly spaced evaluations on dev, the last at the end; "
        "`{every: 100}`: one after every 100 steps, and one at the end",
    )
    gradient_checkpointing: bool = added_field(
        False,
        description="recompute activations for the gradients: less memory, more time",
    )
    devices: int = added_field(
        1,
        ge=1,
        le=64,
        description="number of GPUs (processes on a CPU) that share this training: each takes an equal "
        "share of every batch, and losses with in-batch negatives see the whole batch",
    )
    precision: TrainingPrecision = Field(
        "fp32",
        description="precision of the computation, also in dev evaluations; the weights stay fp32. tf32: "
        "only matrix products, on an NVIDIA GPU; fp16: with loss scaling",
    )
    max_grad_norm: float = added_field(
        1.0, gt=0, le=1e6, description="gradient clipping: larger norms are scaled down to this"
    )

    @property
    def losses(self) -> tuple[str, ...]:
        """Class names of the losses in sentence-transformers; () if unknown."""
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
    def _steps_are_possible(self) -> "TrainingSettings":
        if self.epochs is not None and self.max_steps is not None:
            raise ValueError("give either epochs or max_steps, not both (null takes one away)")
        if self.least_steps is not None and self.max_steps is not None:
            raise ValueError("least_steps goes with epochs, not with max_steps (null takes one away)")
        if self.batch_size % self.devices:
            raise ValueError(
                f"batch_size {self.batch_size} can't be shared equally by devices: {self.devices}; take a"
                " multiple of it"
            )
        return self

    @property
    def num_devices(self) -> int:
        """The number of GPUs, or CPU processes, of a training."""
        return self.devices

    def why_no_start(self) -> str:
        """Return why a trained model can't be the base, "" if it can."""
        return ""

    def starting_from(self, artifact: Path, trusted: Collection[Pretrained] = ()) -> Self:
        """Return the same settings with the artifact's trained model as base.

        Only code of the `trusted` bases may run.
        """
        from synthbench.models.artifact import base_of

        return self.model_copy(update={"base": base_of(artifact, trusted)})

    def revisions(self) -> dict[str, str]:
        """Return the content hash or commit of the base."""
        return self.base.fingerprint()

    def num_steps(self, num_records: int) -> int:
        """Return the number of optimiser steps of a training on `num_records` records.

        Each epoch leaves out the records that the devices can't share equally.
        """
        if self.max_steps is not None:
            return self.max_steps
        num_records -= num_records % self.devices
        of_epochs = math.ceil((self.epochs or 1.0) * math.ceil(num_records / self.batch_size))
        return max(of_epochs, self.least_steps or 0)

    @property
    def sentences_per_record(self) -> float:
        """The number of sentences that the model reads per record."""
        return 2

    def work(self, num_records: int | None, num_dev: int | None) -> Work | None:
        """Return the computation of training and dev evaluations; None if the number of steps is unknown."""
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
        """Return the steps after which the model is evaluated, ascending and ending with `num_steps`."""
        if isinstance(self.evaluations, Every):
            return (*range(self.evaluations.every, num_steps, self.evaluations.every), num_steps)
        planned = (round(num_steps * turn / self.evaluations) for turn in range(1, self.evaluations + 1))
        return tuple(sorted({max(1, step) for step in planned}))
