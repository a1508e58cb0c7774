"""SimCSE: each sentence is drawn to its positive and pushed from all others of the batch."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Literal, Self

from pydantic import Field, field_validator, model_validator

from synthbench.base.errors import UserError
from synthbench.base.frozen import Constant, WithConstants
from synthbench.data.conversions import Thresholds, thresholds
from synthbench.data.dataset import SyntheticDataset
from synthbench.data.records import RecordKind
from synthbench.models.interfaces import ModelKind
from synthbench.models.pretrained import Pretrained
from synthbench.models.work import FORWARD, TRAINED
from synthbench.plugins.contracts import TrainingContext, TrainingSummary
from synthbench.training.settings import MASKED_SHARE, LearningRate, Scheduler, TrainingSettings, WarmupRatio
from synthbench.training.teaching import FalseNegatives, SoftLabels

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

    from synthbench.training.objectives import Objective
    from synthbench.training.teaching import TrainingRecords


class SimCSE(TrainingSettings, WithConstants):
    """Fine-tunes an encoder contrastively; defaults as Zhang et al. 2023 train on SynCSE's triplets.

    Supervised on triplets and pairs, unsupervised on sentences (Gao et al. 2021, sections 3 and 4).
    """

    version = 1
    model_kind = ModelKind.ENCODER

    learns_from: Literal["triplet", "pair", "sentence"] = Field(
        "triplet",
        description="triplet: hard negatives and those of the batch; pair: those of the batch alone;"
        " sentence: unsupervised, itself under other dropout is its positive; other data are converted",
    )
    # Left out of what identifies a training with the value that was the only one before there was this key.
    positives_from: float = Field(
        Thresholds.high,
        gt=Thresholds.low,
        le=1,
        exclude_if=lambda value: value == 0.9,
        description="scored pairs become pairs, or positives of triplets, if they have at least this score;"
        " lower it for silver scores that rarely reach 0.9",
    )
    temperature: float = Field(0.05, gt=0, le=10, description="cosines are divided by it")
    hard_negative_weight: float = Field(
        0.0,
        ge=-100,
        le=100,
        description="logarithm of the weight of each anchor's own hard negative; 0: weighs as all others",
    )
    pooling: Literal["cls", "mean", "max"] = Field(
        "cls", description="how token vectors become one; of a base without layers only `mean`"
    )
    mlp: Literal["kept", "training", "without"] | None = Field(
        None,
        description="a new tanh layer behind the pooling: kept in the model, there in training only, or none;"
        " null: with `cls` kept, of sentences training only; without for other poolings",
    )
    dropout: float | None = Field(
        None,
        ge=0,
        lt=1,
        description="in training, of all the transformer's dropout layers; null: the base's own",
    )
    mlm_weight: float = Field(
        0.0,
        ge=0,
        le=100,
        description="adds so many times the loss of guessing masked words (15 %) of all sentences; 0: no such"
        " term; SynCSE's released training has 0.1",
    )
    chunk_size: int | None = Field(
        None,
        ge=1,
        le=65_536,
        description="gradient caching: so many records at a time take memory, the loss is the whole batch's;"
        " null: no caching",
    )
    # Left out of what identifies a training while they are off, as it was before there were these keys.
    soft_labels: SoftLabels | None = Field(
        None,
        exclude_if=lambda value: value is None,
        description="of triplets with a teacher's scores (step `score-triplets`): positive: the score weighs"
        " the anchor's loss; all: what it lacks to 1 is shared by all other candidates; null: off",
    )
    false_negatives: FalseNegatives | None = Field(
        None,
        exclude_if=lambda value: value is None,
        description="candidates of the batch that a teacher holds for the same leave the loss; null: none",
    )
    no_duplicates: bool = Field(
        False,
        description="no text is in two records of a batch, where it would be a false negative; what finds"
        " no place in an epoch's batches is left to the next epoch",
    )
    batch_size: int = Field(512, ge=1, le=65_536, description="records in one step")
    learning_rate: LearningRate = 5e-5
    scheduler: Scheduler = "linear"
    warmup_ratio: WarmupRatio = 0.0
    weight_decay: float = Field(0.0, ge=0, le=1, description="of all weights but biases and norms")
    max_length: int | None = Field(
        32,
        ge=0,
        le=32_768,
        description="longest input in training, in tokens, 3 or more; 0: what the base reads",
    )

    @field_validator("max_length")
    @classmethod
    def _has_room_for_text(cls, length: int | None) -> int | None:
        if length in (1, 2):
            raise ValueError(
                f"an input of {length} tokens holds no text: give 3 or more, or 0 for what the base reads"
            )
        return length

    @field_validator("base")
    @classmethod
    def _has_no_pooling(cls, base: Pretrained) -> Pretrained:
        if base.pooling is not None:
            raise ValueError("simcse says `pooling` beside `base` instead of base.pooling")
        return base

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        kind, is_triplet = self.learns_from, self.learns_from == "triplet"
        # The word head reads the transformer beside the loss's own passes, where torch averages no gradients.
        faults = {
            self._fault_without_layers(): not self.base.has_layers,
            f"batch_size 1 leaves a {kind} without negatives, and nothing to learn; take 2 or more": (
                self.batch_size == 1 and not is_triplet
            ),
            f"mlm_weight can't be shared by devices: {self.devices}; take devices: 1, or mlm_weight: 0": (
                self.devices > 1 and self.mlm_weight
            ),
            f"hard_negative_weight needs learns_from: triplet; a {kind} has no hard negative": (
                self.hard_negative_weight and not is_triplet
            ),
            "positives_from needs learns_from: pair or triplet; a sentence is its own positive": (
                self.positives_from != Thresholds.high and kind == "sentence"
            ),
            f"soft_labels needs learns_from: triplet; a {kind} has no scores": (
                self.soft_labels and not is_triplet
            ),
        }
        if found := next((fault for fault, applies in faults.items() if fault and applies), ""):
            raise ValueError(found)
        return self

    def constants(self) -> Mapping[str, Constant]:
        """Return which scores make a hard negative, and the share of masked words, where these matter."""
        masked = {"masked_share": Constant(MASKED_SHARE, 0.15)} if self.mlm_weight else {}
        return {**(thresholds("low") if self.learns_from == "triplet" else {}), **masked}

    def why_no_start(self) -> str:
        """Return why it can't start from a trained model: that has no head for masked words."""
        return (
            "mlm_weight needs the base's head for masked words, a trained model has none"
            if self.mlm_weight
            else ""
        )

    def if_unscored(self) -> str:
        """Return what to say if triplets lack the scores that soft labels are."""
        from synthbench.training.objectives import SOFT_LABELS_UNSCORED

        return SOFT_LABELS_UNSCORED if self.soft_labels else ""

    def revisions(self) -> dict[str, str]:
        """Return the commits or content hashes of base and teacher."""
        if self.false_negatives is None:
            return super().revisions()
        return {**self.false_negatives.teacher.fingerprint(), **super().revisions()}

    @property
    def losses(self) -> tuple[str, ...]:
        """The library's loss that this one is a kind of."""
        cached = "" if self.chunk_size is None else "Cached"
        return (f"{cached}MultipleNegativesRankingLoss",)

    @property
    def takes_temperatures(self) -> bool:
        """Each anchor's loss has a temperature."""
        return True

    @property
    def sentences_per_record(self) -> float:
        """As many as the loss has columns; a sentence is read twice, and so is all with cached gradients.

        A teacher of false negatives reads all once.
        """
        columns = 3 if self.learns_from == "triplet" else 2
        again = 0.0 if self.chunk_size is None else FORWARD / TRAINED
        taught = FORWARD / TRAINED / max(1.0, self.epochs or 1.0) if self.false_negatives else 0.0
        return columns * (1 + again + taught + (1 if self.mlm_weight else 0))

    def train(self, data: Sequence[SyntheticDataset], context: TrainingContext) -> TrainingSummary:
        """Train on all records with split "train", other kinds than `learns_from` converted to it.

        Raises UserError if there are none, or they can't be converted, or the base can't be found.
        """
        from synthbench.models.artifact import save_model
        from synthbench.training.layers import without_training_layers
        from synthbench.training.loop import TrainingJob, fit
        from synthbench.training.objectives import training_table
        from synthbench.training.teaching import training_records
        from synthbench.training.trainers import DistinctBatches, ShuffledBatches

        temperatures = [self.temperature if each is None else each for each in context.temperatures]
        table = training_table(
            data, self._objective(), self.positives_from, weights=context.weights, temperatures=temperatures
        )
        table, records = training_records(table, self.soft_labels, self.false_negatives, context.runtime)
        model = self.build(context)

        batches = DistinctBatches if self.no_duplicates else ShuffledBatches
        loss = self._objective(records).loss(model)
        summary = fit(TrainingJob(model, loss, table, batches), self, context)
        save_model(without_training_layers(model), context.output, self.base.precision, self.base.dtype)
        return summary

    def _objective(self, records: "TrainingRecords | None" = None) -> "Objective":
        from synthbench.training.objectives import contrastive

        objective = contrastive(
            RecordKind(self.learns_from),
            self.temperature,
            self.hard_negative_weight,
            self.chunk_size,
            self.mlm_weight,
            records,
        )
        return replace(objective, if_unscored=self.if_unscored())

    def build(self, context: TrainingContext) -> "SentenceTransformer":
        """Return the model that is trained; what the base has behind its transformer is left away.

        Raises UserError if sentences would be their own positives without any difference, or if settings need
        layers that the base does not have.
        """
        from synthbench.base.runtime import device_name
        from synthbench.models.pretrained import build_encoder, build_language_model
        from synthbench.training.layers import has_layers, with_pooling, with_projection, with_word_head

        model = build_encoder(self.base, context.seed, device_name(context.runtime))
        if has_layers(model):
            model = with_pooling(model, self.pooling)
            self._set_dropout(model)
        elif fault := self._fault_without_layers():
            raise UserError(f"{self.base.model}: {fault}")
        mlp = self.mlp or self._usual_mlp()
        if mlp != "without":
            model = with_projection(model, context.seed, training_only=mlp == "training")
        if self.mlm_weight:
            model = with_word_head(model, build_language_model(self.base, context.seed))
        return model

    def _set_dropout(self, model: "SentenceTransformer") -> None:
        from synthbench.training.layers import has_dropout, set_dropout

        if self.dropout is not None:
            set_dropout(model, self.dropout)
        if self.learns_from == "sentence" and not has_dropout(model):
            raise UserError(
                f"{self.base.model}: without dropout a sentence does not differ from itself as its positive; "
                "give `dropout`, such as 0.1, beside learns_from: sentence"
            )

    def _fault_without_layers(self) -> str:
        """Return why these settings don't go with a base of token embeddings alone, "" if they do."""
        if self.learns_from == "sentence":
            return (
                "learns_from: sentence needs a base with layers: dropout in them makes a sentence differ from"
                " itself as its positive; without layers take pair or triplet"
            )
        if self.pooling != "mean":
            return "a base without layers is the mean of its token embeddings; say pooling: mean"
        layered = {
            "dropout": self.dropout is not None,
            "mlm_weight": self.mlm_weight,
            "chunk_size": self.chunk_size,
        }
        given = [name for name, is_given in layered.items() if is_given]
        return f"{' and '.join(given)} would change nothing: the base has no layers" if given else ""

    def _usual_mlp(self) -> str:
        if self.pooling != "cls":
            return "without"
        return "training" if self.learns_from == "sentence" else "kept"
