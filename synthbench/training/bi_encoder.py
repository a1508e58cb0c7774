"""The bi-encoder: texts are encoded separately, and compared by cosine or the encoder's own similarity."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self

from pydantic import model_validator

from synthbench.base.frozen import Constant, WithConstants, added_field
from synthbench.data.conversions import thresholds, why_impossible
from synthbench.data.dataset import SyntheticDataset
from synthbench.data.records import RecordKind
from synthbench.models.interfaces import ModelKind
from synthbench.plugins.model_contracts import TrainingContext, TrainingSummary
from synthbench.training.adapters import LoRA, merged, with_adapters
from synthbench.training.library_losses import OF_NEGATIVES, OF_WHOLE_BATCHES, LibraryLoss
from synthbench.training.settings import (
    USUAL_LIST,
    BothOrders,
    LearningRate,
    Scheduler,
    TrainingSettings,
    WarmupRatio,
)


class BiEncoder(TrainingSettings, WithConstants):
    """Fine-tunes an encoder; defaults as in Thakur et al. 2021, section 4 and table 8."""

    version = 1
    model_kind = ModelKind.ENCODER

    learning_rate: LearningRate = 2e-5
    scheduler: Scheduler = "constant"
    warmup_ratio: WarmupRatio = 0.0
    both_orders: BothOrders = False
    loss: LibraryLoss | None = added_field(
        None,
        description="a loss of sentence-transformers. Default: the paper's mean squared error of the cosine",
    )

    no_duplicates: bool | None = added_field(
        None,
        description="for losses with in-batch negatives: no text occurs in two records of a batch, where "
        "it would be a false negative; records that fit into no batch of an epoch are left to "
        "the next epoch. Default: true for these losses",
    )
    lora: LoRA | None = added_field(
        None,
        description="LoRA: in the transformer, train only adapters; null: all weights",
    )

    @model_validator(mode="before")
    @classmethod
    def _no_duplicates_by_default(cls, given: Any) -> Any:  # noqa: ANN401 - whatever the file holds
        loss = given.get("loss") if isinstance(given, dict) else None
        name = loss.get("name") if isinstance(loss, dict) else getattr(loss, "name", None)
        if name not in OF_NEGATIVES or given.get("no_duplicates") is not None:
            return given
        return {**given, "no_duplicates": True}

    @model_validator(mode="after")
    def _loss_takes_what_is_set(self) -> Self:
        name = "the default" if self.loss is None else self.loss.name
        kind = RecordKind.SCORED_PAIR if self.loss is None else self.loss.record_kind
        if self.no_duplicates is not None and name not in OF_NEGATIVES:
            raise ValueError(
                f"no_duplicates: loss {name} takes no negatives of the batch; those that do:"
                f" {', '.join(OF_NEGATIVES)}"
            )
        if self.both_orders and kind != RecordKind.SCORED_PAIR:
            raise ValueError(f"both_orders needs scored pairs; loss {name} learns from {kind}s")
        if self.devices > 1 and name in OF_WHOLE_BATCHES:
            raise ValueError(
                f"loss {name} compares all records of a batch with each other, and none of devices:"
                f" {self.devices} has all; take devices: 1, or another loss"
            )
        return self

    @model_validator(mode="after")
    def _encoder_can_learn(self) -> Self:
        encoder = self.base.encoder
        if self.loss is None:
            given = "it needs `loss`: multiple-negatives, margin-mse or kl-divergence"
            fault = "" if encoder == "dense" else f"a {encoder} encoder learns to rank; {given}"
        else:
            fault = self.loss.why_not_for(encoder)
        if fault:
            raise ValueError(fault)
        if encoder != "dense" and (self.lora is not None or self.devices > 1):
            raise ValueError(
                f"a {encoder} encoder is trained whole and on one device; leave out `lora`, `devices`"
            )
        return self

    def pair_readers(self) -> Mapping[str, bool]:
        """Return {"teacher": True} for margin-mse, whose teacher needs a trained head; else {}."""
        return {} if self.loss is None or self.loss.name != "margin-mse" else {"teacher": True}

    def constants(self) -> Mapping[str, Constant]:
        """Return the score thresholds for positives and hard negatives; {} if the loss uses none."""
        kind = RecordKind.SCORED_PAIR if self.loss is None else self.loss.record_kind
        names = {RecordKind.PAIR: ("high",), RecordKind.TRIPLET: ("high", "low")}
        return thresholds(*names.get(kind, ()))

    def revisions(self) -> dict[str, str]:
        """Return content hashes or commits of the base and of the loss's guide or teacher."""
        return {**super().revisions(), **({} if self.loss is None else self.loss.revisions())}

    def obstacle(self, kind: RecordKind) -> str:
        """Return why the loss can't learn from records of this kind, "" if it can."""
        if self.loss is None:
            return why_impossible(kind, RecordKind.SCORED_PAIR)
        return self.loss.obstacle(kind)

    def if_unscored(self) -> str:
        """Return the error message for triplets without scores; "" if the loss needs no scores.

        The message has the slot {missing}.
        """
        return "" if self.loss is None else self.loss.if_unscored()

    @property
    def losses(self) -> tuple[str, ...]:
        """Class names of the loss and its wrapper, if any, in sentence-transformers."""
        return ("CosineSimilarityLoss",) if self.loss is None else self.loss.class_names(self.base.encoder)

    @property
    def takes_temperatures(self) -> bool:
        """Whether each data set may have its own temperature."""
        return self.loss is not None and self.loss.takes_temperatures and self.base.encoder == "dense"

    @property
    def sentences_per_record(self) -> float:
        """The number of texts per record that the loss reads; for rankings, an assumed number."""
        if self.loss is None:
            return 2
        return {"triplet": 3, "sentence": 1, "ranking": USUAL_LIST}.get(self.loss.record_kind, 2)

    def train(self, data: Sequence[SyntheticDataset], context: TrainingContext) -> TrainingSummary:
        """Train on all records with split "train", converted to the loss's kind, and save the encoder.

        Raises UserError without records, if records can't be converted, if the base can't be found, or as
        `fit` does.
        """
        from synthbench.base.runtime import device_name
        from synthbench.models.artifact import save_model
        from synthbench.models.building import build_encoder
        from synthbench.models.search_encoders import build_search_encoder
        from synthbench.training.loop import TrainingJob, fit
        from synthbench.training.objectives import COSINE_SIMILARITY, training_table
        from synthbench.training.trainers import DistinctBatches, ShuffledBatches

        objective = COSINE_SIMILARITY if self.loss is None else self.loss.objective(context)
        given = context.temperatures if self.takes_temperatures else ()
        temperatures = [math.nan if each is None else each for each in given]
        table = training_table(
            data,
            objective,
            both_orders=self.both_orders,
            weights=context.weights,
            temperatures=temperatures,
        )
        if self.loss is not None:
            table = self.loss.labelled(table, context)
        build: Callable[..., Any] = build_encoder if self.base.encoder == "dense" else build_search_encoder
        model = build(self.base, context.seed, device_name(context.runtime))
        if self.lora is not None:
            model = with_adapters(model, self.lora, context.seed)

        batches = DistinctBatches if self.no_duplicates else ShuffledBatches
        summary = fit(TrainingJob(model, objective.loss(model), table, batches), self, context)
        save_model(
            model if self.lora is None else merged(model),
            context.output,
            self.base.precision,
            self.base.dtype,
            self.base.encoder,
        )
        return summary
