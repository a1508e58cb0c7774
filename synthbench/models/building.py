"""Builders of pretrained models: encoders, cross-encoders and masked language models."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from synthbench.base.errors import UserError
from synthbench.base.terminal import quiet_transformers
from synthbench.models import reference, word_vectors
from synthbench.models.checks import check_dense
from synthbench.models.facts import facts_in
from synthbench.models.loading import (
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
from synthbench.models.pretrained import PASSAGE, QUERY, Pretrained

if TYPE_CHECKING:
    from sentence_transformers import CrossEncoder, SentenceTransformer
    from sentence_transformers.base import BaseModel as LibraryModel
    from torch import nn
    from transformers import PreTrainedModel


def build_encoder(base: Pretrained, seed: int, device: str) -> "SentenceTransformer":
    """Load or build the encoder; `seed` governs all weights that the checkpoint lacks.

    Raises UserError if the model can't be found or loaded, has too few layers, or is not dense.
    """
    check_dense(base)
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

    `num_labels`: outputs of the head; None: as many as the checkpoint's head has, one for a new head.

    Raises UserError if the model can't be found or loaded, has too few layers or a head with several outputs,
    or if `base` can't read pairs (`Pretrained.why_no_pair_reader`).
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
    """Load a checkpoint without its head, and add a new head: [CLS] vector, tanh layer, score.

    `size`: units of the tanh layer. `seed` governs the head's weights. `build_cross_encoder` loads the saved
    model. Raises UserError as `build_cross_encoder` does; a head with several outputs is no error here.
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
    """Return the folder of an encoder's checkpoint, downloading it if necessary.

    Raises UserError if the checkpoint can't be found, is damaged, or doesn't suit `base.encoder`.
    """
    folder = _resolved(base)
    if (facts := facts_in(Path(folder))) is not None:
        base.check_encoder(facts)
    return folder


def _resolved(base: Pretrained) -> str:
    """Return the checkpoint's folder, downloaded if necessary, after checking its weights' headers."""
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
    """Return a model of these modules, with `model`'s prompts, device and `trust_remote_code`."""
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
    from transformers import AutoModel, AutoModelForTextEncoding, AutoTokenizer

    code = _trusted(base)
    tokenizer = AutoTokenizer.from_pretrained(folder, **code)
    if not hasattr(tokenizer, "backend_tokenizer"):
        raise UserError(
            f"{base.model}: `static` needs a tokenizer with a tokenizer.json, and {type(tokenizer).__name__}"
            " has none; leave out `static`"
        )
    if base.static_dimension is not None:
        check_vocabulary(base.model, tokenizer, None)
        weights = torch.randn(len(tokenizer), base.static_dimension)
    else:
        facts = facts_in(Path(folder))
        # AutoModel would ask for the decoder, too.
        loader = AutoModelForTextEncoding if facts is not None and facts.is_t5_encoder else AutoModel
        transformer = loader.from_pretrained(folder, **weights_in(base.dtype), **code)
        check_vocabulary(base.model, tokenizer, transformer)
        weights = transformer.get_input_embeddings().weight.detach().clone()
    module = StaticEmbedding(tokenizer.backend_tokenizer, embedding_weights=weights)
    module.tokenizer.no_truncation()
    if base.max_length is not None:
        module.tokenizer.enable_truncation(base.max_length)
    return SentenceTransformer(modules=[module], device=device)


def _trusted(base: Pretrained) -> dict[str, bool]:
    """Return transformers' argument `trust_remote_code`; without it, transformers asks on the terminal."""
    return {"trust_remote_code": base.trust_remote_code}


def layers_kept(folder: str, base: Pretrained) -> dict[str, Any]:
    """Return the configuration keys that keep only the first `base.num_layers` layers; {} for all.

    The loader then skips the weights of the other layers. Raises UserError if the configuration names no
    number of layers, or fewer layers than `base.num_layers`.
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
