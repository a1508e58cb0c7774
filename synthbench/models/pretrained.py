"""The pretrained model that an experiment starts from, and how to build it."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from synthbench.base.errors import UserError
from synthbench.base.frozen import added_field, sections
from synthbench.base.terminal import quiet_transformers
from synthbench.base.user_files import GivenName
from synthbench.models import reference, word_vectors
from synthbench.models.facts import CheckpointFacts, EncoderKind, facts_in, facts_of
from synthbench.models.loading import (
    Dtype,
    check_outputs,
    check_vocabulary,
    check_weights,
    convert_weights,
    give_padding,
    limit_length,
    loading_errors,
    weights_in,
    without_padding,
)
from synthbench.models.precision import Precision
from synthbench.worlds import MODEL_PREFIX

if TYPE_CHECKING:
    from sentence_transformers import CrossEncoder, SentenceTransformer
    from sentence_transformers.base import BaseModel as LibraryModel
    from torch import nn
    from transformers import PreTrainedModel


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
        f" folder in an installed package), `{MODEL_PREFIX}encoder` and the like, or word vectors: a file"
        f" that ends in {', '.join(word_vectors.SUFFIXES)}",
    )
    revision: str | None = Field(
        None,
        pattern=r"^[0-9a-f]{40}$",
        description="full commit hash of a hub model. Default: main",
    )
    num_layers: int | None = Field(None, ge=1, description="use only this many first layers. Default: all")
    static: bool = Field(False, description="the mean of the model's token embeddings, without layers")
    static_dimension: int | None = Field(
        None,
        ge=1,
        description="with `static`: size of random token embeddings. Default: the model's own",
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
        description="run the Python code of the model; needs --allow-code, and the table names the model",
    )
    encoder: EncoderKind = added_field(
        "dense",
        description="dense: one vector for a text; sparse: a weight for each word (SPLADE); "
        "late-interaction: a vector for each token (ColBERT). The last two are for rows that search",
    )
    drop_stop_words: bool = added_field(
        False,
        description="for word vectors: leave out English stop words and punctuation, as listed by "
        "sentence-transformers",
    )

    dtype: Dtype = added_field(
        "fp32",
        description="dtype of the weights after loading, in training, too, where half precision loses "
        "small updates; the table names any but fp32",
    )
    precision: Precision = added_field(
        "fp32",
        description="precision of encoding and scoring (`train.precision` sets the training's); tf32: "
        "matrix products of an NVIDIA GPU",
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
        """Whether the model is a file of word vectors instead of a checkpoint."""
        return word_vectors.is_named(self.model)

    @property
    def has_layers(self) -> bool:
        """Whether there are layers above the token or word vectors."""
        return not (self.static or self.is_word_vectors)

    def why_no_pair_reader(self) -> str:
        """Return why a cross-encoder can't start from this base, "" if it can."""
        if self.static or self.pooling is not None or self.prompts is not None:
            return "a cross-encoder has no `static`, `pooling` or `prompts`; they are an encoder's"
        if self.encoder != "dense":
            return "a cross-encoder reads two texts at once; leave out `encoder`"
        if self.is_word_vectors:
            return "word vectors have no layers; a cross-encoder needs some that read both sentences"
        return ""

    def vectors(self) -> Path:
        """Return the path of the word vectors; raises UserError if it, or a setting, is wrong."""
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

        Skips hub models; for word vectors, reads the first lines.
        """
        if self.is_word_vectors:
            word_vectors.check(self.vectors())
            return
        folder = reference.local(self.model)
        if folder is not None and not any((folder / name).is_file() for name in _DESCRIPTIONS):
            raise UserError(f"{self.model}: neither {' nor '.join(_DESCRIPTIONS)} in {folder}")
        if self.drop_stop_words:
            raise UserError(f"{self.model}: drop_stop_words is for word vectors, and this is a checkpoint")

    def facts(self, *, asks: bool = False) -> CheckpointFacts | None:
        """Return the checkpoint's metadata; None for word vectors, or if it is not on this machine.

        With `asks`, request from the hub what the local cache lacks.
        """
        if self.is_word_vectors:
            return None
        return facts_of(self.model, self.revision, asks=asks)

    def require_layers(self, available: int) -> None:
        """Raise UserError if the settings ask for more layers than `available`."""
        if self.num_layers is not None and self.num_layers > available:
            raise UserError(f"{self.model}: num_layers is {self.num_layers}, the model has only {available}")

    def check_encoder(self, facts: CheckpointFacts) -> None:
        """Raise UserError if the checkpoint was saved as another kind of encoder, or is no start for it."""
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


def only_dense(base: Pretrained) -> str:
    """Return the message on a sparse or late-interaction encoder where one vector for a text is needed."""
    return (
        f"a {base.encoder} encoder is the base of a row (trainers bi-encoder and none); here texts need one"
        " vector each, so leave out `encoder`"
    )


def pretrained_in(settings: object) -> Iterator[Pretrained]:
    """Yield every model that a plug-in's settings name."""
    return (section for section in sections(settings) if isinstance(section, Pretrained))


def build_encoder(base: Pretrained, seed: int, device: str) -> "SentenceTransformer":
    """Load or build the encoder; `seed` governs all weights that the checkpoint lacks.

    Raises UserError if the model can't be found or loaded, has too few layers, or is not dense.
    """
    if base.encoder != "dense":
        raise UserError(f"{base.model}: {only_dense(base)}")
    if base.is_word_vectors:
        return word_vectors.build(
            base.vectors(),
            drop_stop_words=base.drop_stop_words,
            max_length=base.max_length,
            device=device,
        )
    folder = _resolved(base) if base.static else folder_of_encoder(base)
    with seeded(seed), quiet_transformers(), loading_errors(base.model, folder):
        model = (_static_encoder if base.static else _transformer_encoder)(folder, base, device)
        convert_weights(model, base.dtype)
        if base.prompts is not None:
            model.prompts = {QUERY: base.prompts.query, PASSAGE: base.prompts.passage}
            model.default_prompt_name = QUERY
        return model


def build_cross_encoder(
    base: Pretrained, seed: int, device: str, num_labels: int | None = 1
) -> "CrossEncoder":
    """Load a checkpoint with a classification head; a missing head is initialised with `seed`.

    `num_labels` None keeps the head's number of outputs, one for a new head.

    Raises UserError if the model can't be found or loaded, has too few layers, or `base` is static.
    """
    from sentence_transformers import CrossEncoder

    folder = _folder_of_pair_reader(base)
    facts = facts_in(Path(folder))
    if facts is not None:
        check_outputs(base.model, facts.outputs)
    with seeded(seed), quiet_transformers(), loading_errors(base.model, folder):
        model: CrossEncoder = CrossEncoder(
            folder,
            device=device,
            trust_remote_code=base.trust_remote_code,
            num_labels=num_labels,
            max_length=base.max_length,
            model_kwargs=weights_in(base.dtype),
            config_kwargs=layers_kept(folder, base),
        )
        _check_pair_reader(base, model)
        return model


def build_with_hidden_layer(base: Pretrained, size: int, seed: int, device: str) -> "CrossEncoder":
    """Load a checkpoint without its head, and add a hidden tanh layer and a score on its [CLS] vector.

    `seed` governs both. `build_cross_encoder` loads the saved model. Raises UserError as that does.
    """
    from sentence_transformers import CrossEncoder
    from sentence_transformers.base.modules import Dense, Transformer
    from sentence_transformers.sentence_transformer.modules import Pooling
    from torch import nn

    folder = _folder_of_pair_reader(base)
    with seeded(seed), quiet_transformers(), loading_errors(base.model, folder):
        length = {} if base.max_length is None else {"model_max_length": base.max_length}
        code = _trusted(base)
        transformer = Transformer(
            folder,
            model_kwargs={**weights_in(base.dtype), **code},
            config_kwargs={**layers_kept(folder, base), **code},
            processor_kwargs={**length, **code},
        )
        dimension = transformer.get_embedding_dimension()
        modules = [
            transformer,
            Pooling(dimension, "cls"),
            Dense(dimension, size, activation_function=nn.Tanh()),
            Dense(size, 1, activation_function=nn.Identity(), module_output_name="scores"),
        ]
        model: CrossEncoder = CrossEncoder(modules=modules, device=device)
        _check_pair_reader(base, model)
        return model


def _folder_of_pair_reader(base: Pretrained) -> str:
    if fault := base.why_no_pair_reader():
        raise UserError(f"{base.model}: {fault}")
    return _resolved(base)


def folder_of_encoder(base: Pretrained) -> str:
    """Return the checkpoint's folder; raises UserError if it is no start for this kind of encoder."""
    folder = _resolved(base)
    if (facts := facts_in(Path(folder))) is not None:
        base.check_encoder(facts)
    return folder


def _resolved(base: Pretrained) -> str:
    """Return the checkpoint's folder after checking its description and weight headers."""
    folder = reference.resolve(base.model, base.revision)
    if (facts := facts_in(Path(folder))) is not None:
        check_weights(base.model, facts, base.num_layers if base.has_layers else 0)
    return folder


def _check_pair_reader(base: Pretrained, model: "CrossEncoder") -> None:
    convert_weights(model, base.dtype)
    check_vocabulary(base.model, model.tokenizer, transformer_of(model))
    if getattr(model.config, "pad_token_id", None) is None:
        raise UserError(without_padding(base.model))
    limit_length(model, base.max_length)


def build_language_model(base: Pretrained, seed: int) -> "PreTrainedModel":
    """Load the checkpoint with a masked-language-model head; a missing head is initialised with `seed`.

    Raises UserError if the model can't be found or loaded, or if its architecture has no such head.
    """
    from transformers import AutoModelForMaskedLM

    folder = _resolved(base)
    with seeded(seed), quiet_transformers(), loading_errors(base.model, folder):
        model: PreTrainedModel = AutoModelForMaskedLM.from_pretrained(
            folder,
            trust_remote_code=base.trust_remote_code,
            **weights_in(base.dtype),
            **layers_kept(folder, base),
        )
        return model


def _transformer_encoder(folder: str, base: Pretrained, device: str) -> "SentenceTransformer":
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(
        folder,
        device=device,
        trust_remote_code=base.trust_remote_code,
        model_kwargs=weights_in(base.dtype),
        config_kwargs=layers_kept(folder, base),
    )
    tokenizer = getattr(model, "tokenizer", None)
    check_vocabulary(base.model, tokenizer, transformer_of(model))
    give_padding(base.model, tokenizer)
    if base.pooling is not None:
        model = with_modules(model, _with_pooling(list(model), base))
    limit_length(model, base.max_length)
    return model


def transformer_of(model: "LibraryModel") -> "nn.Module":
    """Return the inner transformers model, or the first module if there is none."""
    return getattr(model[0], "model", model[0])


def with_modules(model: "SentenceTransformer", modules: "Iterable[nn.Module]") -> "SentenceTransformer":
    """Return a model with these modules and the same prompts."""
    from sentence_transformers import SentenceTransformer

    return SentenceTransformer(
        modules=list(modules),
        device=str(model.device),
        prompts={name: text for name, text in model.prompts.items() if text is not None},
        default_prompt_name=model.default_prompt_name,
        trust_remote_code=model.trust_remote_code,
    )


def _with_pooling(modules: "list[nn.Module]", base: Pretrained) -> "list[nn.Module]":
    """Return the modules with their pooling replaced, or added after the transformer."""
    from sentence_transformers.sentence_transformer.modules import Pooling

    dimension = modules[0].get_embedding_dimension()  # type: ignore[operator]
    behind = [module for module in modules[1:] if not isinstance(module, Pooling)]
    return [modules[0], Pooling(dimension, base.pooling), *behind]


def _static_encoder(folder: str, base: Pretrained, device: str) -> "SentenceTransformer":
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import StaticEmbedding
    from transformers import AutoModel, AutoTokenizer

    code = _trusted(base)
    tokenizer = AutoTokenizer.from_pretrained(folder, **code)
    if base.static_dimension is not None:
        check_vocabulary(base.model, tokenizer, None)
        weights = torch.randn(len(tokenizer), base.static_dimension)
    else:
        transformer = AutoModel.from_pretrained(folder, **weights_in(base.dtype), **code)
        check_vocabulary(base.model, tokenizer, transformer)
        weights = transformer.get_input_embeddings().weight.detach().clone()
    module = StaticEmbedding(tokenizer.backend_tokenizer, embedding_weights=weights)
    module.tokenizer.no_truncation()
    if base.max_length is not None:
        module.tokenizer.enable_truncation(base.max_length)
    return SentenceTransformer(modules=[module], device=device)


def _trusted(base: Pretrained) -> dict[str, bool]:
    """Return the argument that keeps transformers from asking on the terminal."""
    return {"trust_remote_code": base.trust_remote_code}


def layers_kept(folder: str, base: Pretrained) -> dict[str, Any]:
    """Return the change of configuration that keeps the first layers.

    The loader then skips the checkpoint's weights of further layers. This works if layers are numbered.
    """
    if base.num_layers is None:
        return {}
    from transformers import AutoConfig

    config = AutoConfig.from_pretrained(folder, **_trusted(base))
    available = getattr(config, "num_hidden_layers", None)
    if available is None:
        raise UserError(f"{base.model}: num_layers is not supported for a {config.model_type} model")
    base.require_layers(available)
    return {"num_hidden_layers": base.num_layers}


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Seed torch's CPU generator, which draws new weights, and restore its state afterwards."""
    import torch

    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        yield
