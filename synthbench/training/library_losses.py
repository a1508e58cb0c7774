"""Losses of sentence-transformers by name: the records and models that each needs."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from synthbench.base.errors import UserError
from synthbench.base.frozen import Constant, WithConstants, added_field
from synthbench.data.conversions import why_impossible
from synthbench.data.records import RecordKind
from synthbench.models.facts import EncoderKind
from synthbench.models.pretrained import Pretrained
from synthbench.training.objectives import Objective
from synthbench.training.search_losses import COUNTERPARTS, PREFIXES, Sparsity, search_loss
from synthbench.training.settings import NUM_NEGATIVES, OF_RECORD, RECORD_TEMPERATURE
from synthbench.training.teaching import SCORES

if TYPE_CHECKING:
    import pyarrow as pa
    from torch import nn

    from synthbench.plugins.model_contracts import TrainingContext

CLASSES: Mapping[str, str] = {
    "cosine": "CosineSimilarityLoss",
    "cosent": "CoSENTLoss",
    "angle": "AnglELoss",
    "multiple-negatives": "MultipleNegativesRankingLoss",
    "cached-multiple-negatives": "CachedMultipleNegativesRankingLoss",
    "gist": "GISTEmbedLoss",
    "cached-gist": "CachedGISTEmbedLoss",
    "margin-mse": "MarginMSELoss",
    "kl-divergence": "DistillKLDivLoss",
    "distillation": "EmbedDistillLoss",
}
"""Our name of a loss -> its class in sentence-transformers."""
if TYPE_CHECKING:
    LossName = str
else:
    LossName = Literal[tuple(CLASSES)]
OF_SCORES = ("cosine", "cosent", "angle")
OF_NEGATIVES = ("multiple-negatives", "cached-multiple-negatives", "gist", "cached-gist")
"""Losses with the other records of a batch as negatives."""
OF_LISTS = {"margin-mse": RecordKind.TRIPLET, "kl-divergence": RecordKind.RANKING}
"""Losses on labelled texts of one anchor or query -> the kind of record that they take by default."""
OF_WHOLE_BATCHES = ("cosent", "angle", "gist", "cached-gist")
"""Losses that compare all anchors or pairs of a batch; the library does not gather them across devices."""
UNSCORED = "loss {name}: {{missing}}; let the step `score-triplets` give them{others}"
SCALED = ("cosent", "angle", *OF_NEGATIVES)
DIVIDED = (*SCALED, "kl-divergence")
TEMPERATURE, TEMPERATURE_OF_GIST, TEMPERATURE_OF_KL, LABEL_TEMPERATURE = 0.05, 0.01, 1.0, 1.0
"""The library's defaults, fixed here since later versions may change them."""


class LibraryLoss(BaseModel, WithConstants):
    """A loss of sentence-transformers, with the library's defaults.

    cosine, cosent, angle: on scored pairs. multiple-negatives, gist and their cached forms: on pairs or
    triplets. margin-mse: on triplets, with a teacher's scores or a cross-encoder as teacher (Hofstätter et
    al. 2020, arXiv 2010.02666): the mean squared difference between s(anchor, positive) - s(anchor, negative)
    and the same margin of the teacher. kl-divergence: on rankings: the divergence from the softmax of the
    grades to the softmax of the similarities, over a query's candidates. With `learns_from`, margin-mse also
    takes rankings, and kl-divergence triplets. distillation: on sentences; their vectors are fitted to a
    teacher's.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)

    name: LossName = Field(description="name of the loss")
    learns_from: Literal["pair", "triplet", "ranking"] = Field(
        "pair",
        description="for losses with in-batch negatives: pairs, or triplets with a hard negative; for "
        "margin-mse and kl-divergence: triplets with a teacher's scores, or rankings with grades. Default: "
        "pair, for margin-mse triplet, for kl-divergence ranking",
    )
    temperature: float | None = Field(
        None,
        gt=0,
        le=10,
        description="temperature that divides similarities, except for cosine, margin-mse and distillation. "
        "Default: 0.05, for gist 0.01, for kl-divergence 1",
    )
    label_temperature: float | None = added_field(
        None,
        gt=0,
        le=1000,
        description="for kl-divergence: temperature that divides grades, or a teacher's scores. Default: 1",
    )
    chunk_size: int = Field(
        32, ge=1, le=65_536, description="for cached losses: number of records in memory at once"
    )
    guide: Pretrained | None = Field(
        None, description="for gist: the encoder whose cosines decide which negatives are masked as false"
    )
    teacher: Pretrained | None = Field(
        None,
        description="for margin-mse: the cross-encoder that gives the margins. Default: the triplets' own "
        "scores (step `score-triplets`); for distillation: the encoder to imitate",
    )
    similarity: Literal["dot", "cosine"] = added_field(
        "dot",
        description="for margin-mse and kl-divergence: the similarity that is fitted to the labels",
    )
    sparsity: Sparsity | None = added_field(
        None,
        description="for a sparse encoder: weights of SPLADE's regulariser",
    )
    dimensions: tuple[Annotated[int, Field(ge=1)], ...] = Field(
        (),
        description="Matryoshka: compute the loss on vectors cut to each of these dimensions, such as [384, "
        "128, 64]; name the full dimension, too. Not for cached losses and distillation",
    )

    @field_validator("dimensions", mode="before")
    @classmethod
    def _is_a_list(cls, given: Any) -> Any:  # noqa: ANN401 - whatever the file holds
        # A trainer's validators get Python values, where a list is not a tuple.
        return tuple(given) if isinstance(given, list) else given

    @model_validator(mode="after")
    def _check_options(self) -> Self:
        takes = {
            "guide": self.name in ("gist", "cached-gist"),
            "teacher": self.name == "distillation"
            or (self.name == "margin-mse" and self.learns_from != "ranking"),
        }
        for key, is_taken in takes.items():
            is_optional = is_taken and self.name == "margin-mse"
            if is_taken != (getattr(self, key) is not None) and not is_optional:
                raise ValueError(f"loss {self.name} {f'needs `{key}`' if is_taken else f'takes no `{key}`'}")
        if self.similarity != "dot" and self.name not in OF_LISTS:
            raise ValueError(f"loss {self.name} takes no `similarity`; those that do: {', '.join(OF_LISTS)}")
        if self.temperature is not None and self.name not in DIVIDED:
            raise ValueError(f"loss {self.name} takes no `temperature`; those that do: {', '.join(DIVIDED)}")
        if self.label_temperature is not None and self.name != "kl-divergence":
            raise ValueError(f"loss {self.name} takes no `label_temperature`; only kl-divergence does")
        if self.guide is not None and self.guide.prompts is not None:
            raise ValueError(f"loss {self.name}: the guide reads the base's prompts; leave out guide.prompts")
        if self.learns_from != "pair" and self.name not in (*OF_NEGATIVES, *OF_LISTS):
            raise ValueError(
                f"loss {self.name} learns from {self.record_kind} records; leave out learns_from"
            )
        if self.learns_from == "ranking" and self.name not in OF_LISTS:
            raise ValueError(
                f"loss {self.name} can't learn from rankings; those that can: {', '.join(OF_LISTS)}"
            )
        if self.dimensions and self.name in ("distillation", "cached-gist", "cached-multiple-negatives"):
            raise ValueError(f"loss {self.name} takes no `dimensions`")
        return self

    def constants(self) -> Mapping[str, Constant]:
        """Return the defaults of the temperatures that are null."""
        found: dict[str, Constant] = {}
        if self.temperature is None and self.name in DIVIDED:
            first = 1.0 if self.name == "kl-divergence" else 0.05 if self.guide is None else 0.01
            found["temperature"] = Constant(self._temperature, first)
        if self.label_temperature is None and self.name == "kl-divergence":
            found["label_temperature"] = Constant(LABEL_TEMPERATURE, 1.0)
        return found

    @property
    def _temperature(self) -> float:
        if self.temperature is not None:
            return self.temperature
        if self.name == "kl-divergence":
            return TEMPERATURE_OF_KL
        return TEMPERATURE if self.guide is None else TEMPERATURE_OF_GIST

    def class_names(self, encoder: EncoderKind) -> tuple[str, ...]:
        """Return the library's loss class for this kind of encoder, followed by its wrapper, if any."""
        wrappers = {"MatryoshkaLoss": bool(self.dimensions), "SpladeLoss": self.sparsity is not None}
        return (
            PREFIXES.get(encoder, "") + CLASSES[self.name],
            *(name for name, is_on in wrappers.items() if is_on),
        )

    def why_not_for(self, encoder: EncoderKind) -> str:
        """Return why this loss can't train this kind of encoder, "" if it can."""
        if encoder == "dense":
            return "sparsity is for a sparse encoder; leave it out" if self.sparsity is not None else ""
        if self.name not in COUNTERPARTS:
            others = ", ".join(COUNTERPARTS)
            return f"loss {self.name} trains dense encoders only; a {encoder} one takes {others}"
        if self.temperature is None and self.name == "multiple-negatives":
            return (
                f"a {encoder} encoder needs loss.temperature: its similarities are sums; the library's is 1"
            )
        if (encoder == "sparse") != (self.sparsity is not None):
            needs = "needs loss.sparsity: {queries: 5e-4, passages: 3e-4}, or other weights"
            return f"a {encoder} encoder {needs if encoder == 'sparse' else 'takes no loss.sparsity'}"
        given = {"dimensions": bool(self.dimensions), "similarity": self.similarity != "dot"}
        wrong = [name for name, is_given in given.items() if is_given]
        return f"a {encoder} encoder takes no loss.{wrong[0]}" if wrong else ""

    @property
    def takes_temperatures(self) -> bool:
        """Whether parts of the data may have different temperatures."""
        return self.name == "multiple-negatives"

    @property
    def record_kind(self) -> RecordKind:
        """The kind of record that the loss learns from."""
        if self.name in OF_SCORES:
            return RecordKind.SCORED_PAIR
        if self.name in OF_NEGATIVES:
            return RecordKind(self.learns_from)
        if self.name in OF_LISTS:
            return OF_LISTS[self.name] if self.learns_from == "pair" else RecordKind(self.learns_from)
        return RecordKind.SENTENCE

    def obstacle(self, kind: RecordKind) -> str:
        """Return why the loss can't learn from records of this kind, naming losses that can; "" if it can."""
        why = why_impossible(kind, self.record_kind)
        if kind == RecordKind.RANKING and self.if_unscored():
            return f"loss {self.name}: rankings have grades, no teacher's scores; set `learns_from: ranking`"
        if not why:
            return ""
        wanted = {
            **dict.fromkeys(OF_SCORES, RecordKind.SCORED_PAIR),
            **dict.fromkeys(OF_NEGATIVES, RecordKind.PAIR),
            **OF_LISTS,
            "distillation": RecordKind.SENTENCE,
        }
        fit = [name for name, each in wanted.items() if not why_impossible(kind, each)]
        return f"loss {self.name}: {why}; losses that fit {kind} records: {', '.join(fit)}"

    def if_unscored(self) -> str:
        """Return the error for triplets without scores, with the slot {missing}; "" if it can't occur."""
        if self.name not in OF_LISTS or self.record_kind != RecordKind.TRIPLET or self.teacher is not None:
            return ""
        return UNSCORED.format(name=self.name, others=", or set `teacher`" * (self.name == "margin-mse"))

    def revisions(self) -> dict[str, str]:
        """Return the commits or content hashes of guide and teacher."""
        models = [model for model in (self.guide, self.teacher) if model is not None]
        return {name: value for model in models for name, value in model.fingerprint().items()}

    def objective(self, context: "TrainingContext") -> Objective:
        """Return the objective; models that the loss uses are loaded when the loss is built."""
        return Objective(
            self.record_kind,
            lambda model: self._module(model, context),
            takes_several=self.record_kind is RecordKind.TRIPLET,
            if_unscored=self.if_unscored(),
        )

    def labelled(self, table: "pa.Table", context: "TrainingContext") -> "pa.Table":
        """Return the table with the column `label`, if the loss needs one.

        The column holds the data sets' temperatures, the triplets' own scores, or labels that the teacher
        computes here. Raises UserError if records differ in their number of negatives.
        """
        import pyarrow as pa

        if NUM_NEGATIVES in table.column_names:
            numbers = sorted(set(table[NUM_NEGATIVES].to_pylist()))
            if len(numbers) > 1:
                raise UserError(
                    f"loss {self.name}: takes as many negatives of every record; these have {numbers[0]} to"
                    f" {numbers[-1]}. The trainer simcse takes any number"
                )
            temperatures = table[RECORD_TEMPERATURE]
            table = table.drop_columns([NUM_NEGATIVES, RECORD_TEMPERATURE])
            if context.temperatures and self.takes_temperatures:
                return table.append_column(OF_RECORD, temperatures)
        if SCORES in table.column_names:
            return table.drop_columns([SCORES]).append_column(OF_RECORD, table[SCORES])
        if self.teacher is None:
            return table
        return table.append_column(OF_RECORD, pa.array(self._labels(table, self.teacher, context)))

    def _labels(self, table: "pa.Table", teacher: Pretrained, context: "TrainingContext") -> Any:  # noqa: ANN401
        from synthbench.base.runtime import device_name
        from synthbench.models.building import build_cross_encoder, build_encoder
        from synthbench.models.encoder import LengthBatchedEncoder

        device = device_name(context.runtime)
        if self.name == "distillation":
            encoder = LengthBatchedEncoder(build_encoder(teacher, 0, device))
            return encoder.encode(table["sentence"].to_pylist()).tolist()
        scorer = build_cross_encoder(teacher, 0, device)
        anchors = table["anchor"].to_pylist()
        positive, *negatives = (
            scorer.predict(
                list(zip(anchors, table[column].to_pylist(), strict=True)), show_progress_bar=False
            ).astype("float64")
            for column in table.column_names[1:]
        )
        margins = [positive - negative for negative in negatives]
        return margins[0].tolist() if len(margins) == 1 else list(zip(*margins, strict=True))

    def _module(self, model: Any, context: "TrainingContext") -> "nn.Module":  # noqa: ANN401 - a SentenceTransformer
        from sentence_transformers.sentence_transformer import losses

        if model.model_type != "SentenceTransformer":
            return search_loss(CLASSES[self.name], model, self.sparsity, **self._options())
        loss: nn.Module = self._plain(model, context)
        if self.dimensions:
            width, largest = model.get_embedding_dimension(), max(self.dimensions)
            if width is not None and largest > width:
                raise UserError(
                    f"loss.dimensions: {largest} is more than the model's {width}; name at most {width}"
                )
            return losses.MatryoshkaLoss(model, loss, list(self.dimensions))
        return loss

    def _plain(self, model: Any, context: "TrainingContext") -> Any:  # noqa: ANN401 - a module of the library
        from sentence_transformers.sentence_transformer import losses

        from synthbench.base.runtime import device_name
        from synthbench.models.building import build_encoder
        from synthbench.training import joint

        chunks: dict[str, Any] = (
            {"mini_batch_size": self.chunk_size} if self.name.startswith("cached-") else {}
        )
        is_gathered = self.name in OF_NEGATIVES and joint.num_processes() > 1
        gathers: dict[str, Any] = {"gather_across_devices": True} if is_gathered else {}
        of_scale = self._options()
        if self.guide is not None:
            guide = build_encoder(self.guide, 0, device_name(context.runtime))
            loss = getattr(losses, CLASSES[self.name])
            return loss(model, guide, temperature=self._temperature, **chunks)
        if self.name == "distillation" and self.teacher is not None:
            teacher = build_encoder(self.teacher, 0, device_name(context.runtime))
            theirs = teacher.get_embedding_dimension()
            is_equal = model.get_embedding_dimension() == theirs
            return losses.EmbedDistillLoss(model, projection_dim=None if is_equal else theirs)
        if context.temperatures and self.takes_temperatures:
            from synthbench.training.losses import OwnTemperatures

            return OwnTemperatures(model, **of_scale, **gathers)
        if self.name in OF_LISTS:
            from sentence_transformers.util import pairwise_cos_sim, pairwise_dot_score

            of_pairs = pairwise_dot_score if self.similarity == "dot" else pairwise_cos_sim
            if self.name == "margin-mse":
                return losses.MarginMSELoss(model, of_pairs)
            return losses.DistillKLDivLoss(model, of_pairs, **of_scale)
        return getattr(losses, CLASSES[self.name])(model, **of_scale, **chunks, **gathers)

    def _options(self) -> dict[str, Any]:
        """Return the temperatures as arguments of sentence-transformers' loss; {} if it takes none."""
        if self.name == "kl-divergence":
            return {
                "student_temperature": self._temperature,
                "teacher_temperature": self.label_temperature or LABEL_TEMPERATURE,
            }
        return {"scale": 1 / self._temperature} if self.name in SCALED else {}
