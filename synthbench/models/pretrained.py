"""The pretrained model that an experiment starts from: its settings and their checks."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from synthbench.base.errors import UserError
from synthbench.base.frozen import added_field, sections
from synthbench.base.user_files import GivenName
from synthbench.models import reference, word_vectors
from synthbench.models.facts import CheckpointFacts, EncoderKind, facts_of
from synthbench.models.loading import Dtype
from synthbench.models.precision import Precision
from synthbench.worlds import MODEL_PREFIX

_DESCRIPTIONS = ("config.json", "modules.json")
QUERY, PASSAGE = "query", "document"
"""sentence-transformers' names of the prompts; a saved model stores them under these names."""


class Prompts(BaseModel):
    """The prompts of an encoder, put before texts; their tokens are pooled with the text's."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    query: str = Field(
        "", description="prompt of queries and anchors, and of both sentences where neither is a query"
    )
    passage: str = Field(
        "", description="prompt of a query's candidates, and of an anchor's positives and negatives"
    )


class Pretrained(BaseModel):
    """`base:` of an experiment: the checkpoint, and which parts of it are used."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, protected_namespaces=())

    model: GivenName = Field(
        min_length=1,
        description="hub id, local folder (relative to the experiment file), `package:module/path` (a"
        f" folder in an installed package), a model of the generated world (`{MODEL_PREFIX}encoder`), or word"
        f" vectors: a file that ends in {', '.join(word_vectors.SUFFIXES)}, or a folder with .npy and"
        " .parquet",
    )
    revision: str | None = Field(
        None,
        pattern=r"^[0-9a-f]{40}$",
        description="full commit hash of a hub model. Default: main",
    )
    num_layers: int | None = Field(None, ge=1, description="use only this many first layers. Default: all")
    static: bool = Field(False, description="use the mean of the model's token embeddings, without layers")
    static_dimension: int | None = Field(
        None,
        ge=1,
        description="with `static`: draw random token embeddings of this size. Default: use the model's"
        " embeddings",
    )
    pooling: Literal["mean", "cls", "lasttoken"] | None = Field(
        None,
        description="pooling of token vectors. Default: the model's own, else `mean`; lasttoken is for "
        "decoders",
    )
    max_length: int | None = Field(
        None, ge=3, description="longest input in tokens. Default: the model's own limit"
    )
    prompts: Prompts | None = added_field(
        None,
        description="prompts of an encoder, such as E5's `{query: 'query: ', passage: 'passage: '}`. "
        "Default: the model's own",
    )
    trust_remote_code: bool = added_field(
        False,
        description="run the Python code that comes with the model; needs --allow-code. The table names the"
        " model",
    )
    encoder: EncoderKind = added_field(
        "dense",
        description="dense: one vector for a text; sparse: a weight for each word (SPLADE); "
        "late-interaction: a vector for each token (ColBERT). The last two are only for a row's base, and "
        "for the evaluators retrieval, reranking, sts and pairs",
    )
    drop_stop_words: bool = added_field(
        False,
        description="for word vectors: leave out English stop words and punctuation, as listed by "
        "sentence-transformers",
    )

    dtype: Dtype = added_field(
        "fp32",
        description="dtype of the weights, also in training; bf16 and fp16 lose small updates there. The "
        "table names any dtype but fp32",
    )
    precision: Precision = added_field(
        "fp32",
        description="precision of encoding and scoring; for training, see `train.precision`. tf32: only in "
        "matrix products on an NVIDIA GPU",
    )

    @model_validator(mode="after")
    def _static_has_no_layers(self) -> Self:
        if self.static_dimension is not None and not self.static:
            raise ValueError("static_dimension needs static: true")
        if self.static and (self.num_layers is not None or self.pooling is not None):
            raise ValueError("a static base has neither num_layers nor pooling")
        if self.encoder != "dense" and (self.static or self.pooling is not None):
            raise ValueError(f"a {self.encoder} encoder has neither `static` nor `pooling`")
        if self.static and self.precision != "fp32":
            raise ValueError(f"a static base computes no products, so precision can't be {self.precision}")
        if self.static and self.dtype != "fp32":
            raise ValueError(f"a static base keeps its vectors in fp32, so dtype can't be {self.dtype}")
        return self

    @property
    def is_word_vectors(self) -> bool:
        """Whether the model is word vectors (a file or folder) instead of a checkpoint."""
        return word_vectors.is_named(self.model)

    @property
    def has_layers(self) -> bool:
        """Whether the model has layers above its token or word vectors."""
        return not (self.static or self.is_word_vectors)

    def why_no_pair_reader(self) -> str:
        """Return why a cross-encoder can't start from a base with these settings, "" if it can."""
        if self.static or self.pooling is not None or self.prompts is not None:
            return "a cross-encoder has no `static`, `pooling` or `prompts`; they are an encoder's"
        if self.encoder != "dense":
            return "a cross-encoder reads two texts at once; leave out `encoder`"
        if self.is_word_vectors:
            return "word vectors have no layers; a cross-encoder needs some that read both sentences"
        return ""

    def vectors(self) -> Path:
        """Return the path of the word vectors.

        Raises UserError if there are none, or for a setting that word vectors don't have.
        """
        given = {
            "static": self.static,
            "num_layers": self.num_layers is not None,
            "pooling": self.pooling is not None,
            "revision": self.revision is not None,
            "prompts": self.prompts is not None,
            "trust_remote_code": self.trust_remote_code,
            "dtype": self.dtype != "fp32",
            "precision": self.precision != "fp32",
            "encoder": self.encoder != "dense",
        }
        if wrong := [name for name, is_given in given.items() if is_given]:
            raise UserError(f"{self.model}: word vectors have no {' and no '.join(wrong)}")
        return word_vectors.find(self.model)

    def check_folder(self) -> None:
        """Raise UserError if a local folder or packaged model is missing, or lacks weights or configuration.

        Does not look up hub models; for word vectors, checks the first lines and the settings. Raises
        UserError, too, if `drop_stop_words` is set for a checkpoint, or `revision` for a local one.
        """
        if self.is_word_vectors:
            word_vectors.check(self.vectors())
            return
        folder = reference.local(self.model)
        if folder is not None:
            reference.check_local(self.model, self.revision)
            if not any((folder / name).is_file() for name in _DESCRIPTIONS):
                raise UserError(f"{self.model}: neither {' nor '.join(_DESCRIPTIONS)} in {folder}")
        if self.drop_stop_words:
            raise UserError(f"{self.model}: drop_stop_words is for word vectors, and this is a checkpoint")

    def facts(self, *, asks: bool = False) -> CheckpointFacts | None:
        """Return the checkpoint's metadata; None for word vectors or without a configuration on this machine.

        With `asks`, request from the hub what the local cache lacks. Raises UserError if the configuration
        is invalid.
        """
        if self.is_word_vectors:
            return None
        return facts_of(self.model, self.revision, asks=asks)

    def require_layers(self, available: int) -> None:
        """Raise UserError if the settings ask for more layers than `available`."""
        if self.num_layers is not None and self.num_layers > available:
            raise UserError(f"{self.model}: num_layers is {self.num_layers}, the model has only {available}")

    def check_encoder(self, facts: CheckpointFacts) -> None:
        """Raise UserError if the checkpoint can't be the base of an encoder of the kind `self.encoder`."""
        if facts.encoder not in ("dense", self.encoder):
            raise UserError(
                f"{self.model}: was saved as a {facts.encoder} encoder; write `encoder: {facts.encoder}`"
            )
        if self.encoder == "sparse" and facts.encoder == "dense" and not facts.predicts_words:
            raise UserError(
                f"{self.model}: a sparse encoder starts from a masked language model, and this checkpoint"
                " has no head that predicts words"
            )

    def fingerprint(self) -> dict[str, str]:
        """Return {model: commit or content hash}; raises UserError if the model can't be found."""
        if self.is_word_vectors:
            return reference.content_of(self.model, word_vectors.files(self.vectors()))
        return reference.fingerprint(self.model, self.revision)


def _reads_pairs(base: Pretrained) -> Pretrained:
    if fault := base.why_no_pair_reader():
        raise ValueError(fault)
    return base


PairReader = Annotated[Pretrained, AfterValidator(_reads_pairs)]
"""Type of a trainer's field for the base of a cross-encoder."""


def only_dense(base: Pretrained) -> str:
    """Return the error message for a sparse or late-interaction base where texts need one vector each."""
    return (
        f"a {base.encoder} encoder is the base of a row (trainers bi-encoder and none); here texts need one"
        " vector each, so leave out `encoder`"
    )


def pretrained_in(settings: object) -> Iterator[Pretrained]:
    """Yield every model that a plug-in's settings name."""
    return (section for section in sections(settings) if isinstance(section, Pretrained))
