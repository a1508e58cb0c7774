"""SimCSE: pull each sentence towards its positive and away from all others of the batch."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Literal, Self

from pydantic import Field, field_validator, model_validator

from synthbench.base.errors import UserError
from synthbench.base.frozen import Constant, WithConstants, added_field
from synthbench.data.conversions import Thresholds, thresholds, why_impossible
from synthbench.data.dataset import SyntheticDataset
from synthbench.data.records import RecordKind
from synthbench.models.interfaces import ModelKind
from synthbench.models.pretrained import Pretrained, only_dense
from synthbench.models.work import FORWARD, TRAINED
from synthbench.plugins.model_contracts import TrainingContext, TrainingSummary
from synthbench.training.settings import MASKED_SHARE, LearningRate, Scheduler, TrainingSettings, WarmupRatio
from synthbench.training.teaching import FalseNegatives, SoftLabels

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

    from synthbench.training.objectives import Objective
    from synthbench.training.teaching import TrainingRecords


class SimCSE(TrainingSettings, WithConstants):
    """Fine-tunes an encoder by a contrastive loss; defaults as in Zhang et al. 2023 on SynCSE's triplets.

    Supervised on triplets and pairs, unsupervised on sentences (Gao et al. 2021, sections 3 and 4).
    """

    version = 1
    model_kind = ModelKind.ENCODER

    learns_from: Literal["triplet", "pair", "sentence"] = Field(
        "triplet",
        description="training records. triplet: hard and in-batch negatives; pair: in-batch negatives "
        "only; sentence: unsupervised, a sentence's positive is itself with other dropout. "
        "Other data are converted",
    )
    positives_from: float = added_field(
        0.9,
        default=Thresholds.high,
        gt=Thresholds.low,
        le=1,
        description="lowest score at which scored pairs become pairs, or positives of triplets; lower it "
        "for silver scores that rarely reach 0.9",
    )
    temperature: float = Field(0.05, gt=0, le=10, description="temperature that divides cosines")
    hard_negative_weight: float = Field(
        0.0,
        ge=-100,
        le=100,
        description="logarithm of the weight of each anchor's own hard negative; 0: as for other negatives",
    )
    pooling: Literal["cls", "mean", "max", "own"] = Field(
        "cls",
        description="pooling of token vectors; `own`: the base's modules as they are. A base without layers"
        " takes only `mean`",
    )
    mlp: Literal["kept", "training", "without"] | None = Field(
        None,
        description="new tanh layer after the pooling. kept: stays in the model; training: removed after "
        "training; without: none. Default: without; with pooling `cls` kept, or training if `learns_from` is "
        "sentence",
    )
    dropout: float | None = Field(
        None,
        ge=0,
        lt=1,
        description="dropout of the transformer in training. Default: the base's own",
    )
    mlm_weight: float = Field(
        0.0,
        ge=0,
        le=100,
        description="weight of an additional masked-language-model loss (15 % of tokens) on all "
        "sentences; 0: none; SynCSE's released training has 0.1",
    )
    chunk_size: int | None = Field(
        None,
        ge=1,
        le=65_536,
        description="gradient caching: number of records in memory at once, with the loss of the full "
        "batch; null: no caching",
    )
    soft_labels: SoftLabels | None = added_field(
        None,
        description="soft labels from triplets' scores (step `score-triplets`). positive: scale the "
        "anchor's loss by the score. all: spread 1 - score over the other candidates. null: "
        "off",
    )
    false_negatives: FalseNegatives | None = added_field(
        None,
        description="mask candidates of the batch that a teacher finds equal in meaning; null: none",
    )
    loss: Literal["cross-entropy", "binary"] = added_field(
        "cross-entropy",
        description="p is a candidate's softmax probability. cross-entropy: -log p of the positive. binary: "
        "the mean of -log p for the positive and -log(1 - p) for each other candidate, as in MultiCSR's "
        "released code",
    )
    no_duplicates: bool = Field(
        False,
        description="no text occurs in two records of a batch, where it would be a false negative; "
        "records that fit into no batch of an epoch are left to the next",
    )
    batch_size: int = Field(512, ge=1, le=65_536, description="records per step")
    learning_rate: LearningRate = 5e-5
    scheduler: Scheduler = "linear"
    warmup_ratio: WarmupRatio = 0.0
    weight_decay: float = Field(0.0, ge=0, le=1, description="weight decay, except for biases and norms")
    max_length: int | None = Field(
        32,
        ge=0,
        le=32_768,
        description="longest training input in tokens, 3 or more; 0: the base's limit",
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
        # The word head calls the transformer outside the loss's passes, where torch does not average
        # gradients.
        faults = {
            self._fault_without_layers(): not self.base.has_layers,
            f"{only_dense(self.base)}, or take the trainer bi-encoder": self.base.encoder != "dense",
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
            "loss: binary takes no soft_labels; take one of them away (null)": (
                self.soft_labels and self.loss == "binary"
            ),
        }
        if found := next((fault for fault, applies in faults.items() if fault and applies), ""):
            raise ValueError(found)
        return self

    def constants(self) -> Mapping[str, Constant]:
        """Return the score threshold for hard negatives, and the share of masked words, if used."""
        masked = {"masked_share": Constant(MASKED_SHARE, 0.15)} if self.mlm_weight else {}
        return {**(thresholds("low") if self.learns_from == "triplet" else {}), **masked}

    def why_no_start(self) -> str:
        """Return why a trained model can't be the base (it has no head for masked words); "" if it can."""
        return (
            "mlm_weight needs the base's head for masked words, a trained model has none"
            if self.mlm_weight
            else ""
        )

    def obstacle(self, kind: RecordKind) -> str:
        """Return why records of this kind can't become those of `learns_from`, "" if they can."""
        return why_impossible(kind, RecordKind(self.learns_from))

    def if_unscored(self) -> str:
        """Return the error message for triplets without scores; "" without soft labels."""
        from synthbench.training.objectives import SOFT_LABELS_UNSCORED

        return SOFT_LABELS_UNSCORED if self.soft_labels else ""

    def revisions(self) -> dict[str, str]:
        """Return the commits or content hashes of base and teacher."""
        if self.false_negatives is None:
            return super().revisions()
        return {**self.false_negatives.teacher.fingerprint(), **super().revisions()}

    @property
    def losses(self) -> tuple[str, ...]:
        """The name of the class in sentence-transformers that SimCSE's loss extends."""
        cached = "" if self.chunk_size is None else "Cached"
        return (f"{cached}MultipleNegativesRankingLoss",)

    @property
    def takes_temperatures(self) -> bool:
        """True: each data set may have its own temperature."""
        return True

    @property
    def sentences_per_record(self) -> float:
        """The computation per record, as the number of texts in training passes (forward and backward).

        A sentence counts twice, as its own positive. Gradient caching adds a forward pass of each text.
        `mlm_weight` adds a training pass of each text, `false_negatives` one forward pass for all epochs.
        """
        columns = 3 if self.learns_from == "triplet" else 2
        again = 0.0 if self.chunk_size is None else FORWARD / TRAINED
        taught = FORWARD / TRAINED / max(1.0, self.epochs or 1.0) if self.false_negatives else 0.0
        return columns * (1 + again + taught + (1 if self.mlm_weight else 0))

    def train(self, data: Sequence[SyntheticDataset], context: TrainingContext) -> TrainingSummary:
        """Train on all records with split "train", converted to `learns_from`.

        Raises UserError without records, if they can't be converted, or if the base can't be found.
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
        table, records = training_records(
            table,
            self.soft_labels,
            self.false_negatives,
            context.runtime,
            is_binary=self.loss == "binary",
        )
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
        """Return the model to train; any `pooling` but "own" replaces all modules after the transformer.

        Raises UserError if sentences would equal their own positives (no dropout), or if the base lacks
        needed layers.
        """
        from synthbench.base.runtime import device_name
        from synthbench.models.building import build_encoder, build_language_model
        from synthbench.training.layers import has_layers, with_pooling, with_projection, with_word_head

        model = build_encoder(self.base, context.seed, device_name(context.runtime))
        if has_layers(model):
            model = model if self.pooling == "own" else with_pooling(model, self.pooling)
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
        from synthbench.training.layers import dropout_layers

        if self.dropout is not None:
            for layer in dropout_layers(model):
                layer.p = self.dropout
        if self.learns_from == "sentence" and not any(layer.p > 0 for layer in dropout_layers(model)):
            raise UserError(
                f"{self.base.model}: without dropout a sentence and its positive have equal vectors; "
                "give `dropout`, such as 0.1, beside learns_from: sentence"
            )

    def _fault_without_layers(self) -> str:
        """Return why these settings don't suit a base of token embeddings only, "" if they do."""
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
