"""Checks and set-up of every loaded checkpoint: errors in one line, dtype, length limit, padding."""

import importlib.util
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from pickle import UnpicklingError
from typing import TYPE_CHECKING, Any, Literal

from synthbench.base.errors import UserError, in_one_line
from synthbench.models.checkpoint_files import PICKLED
from synthbench.models.completeness import weights_complete

if TYPE_CHECKING:
    from sentence_transformers.base import BaseModel
    from torch import nn
    from transformers import PreTrainedTokenizerBase

    from synthbench.models.facts import CheckpointFacts

Dtype = Literal["fp32", "bf16", "fp16"]
DTYPES = {"fp32": "float32", "bf16": "bfloat16", "fp16": "float16"}
"""The names of dtypes in torch."""
_POSITIONS = ("position_embeddings", "wpe", "embed_positions")
_IN_EVERY_TEXT = ("pad", "cls", "sep", "bos", "eos", "unk")
"""Special tokens that any text or its padding may contain."""


@contextmanager
def loading_errors(model: str, folder: str, what: str = "") -> Iterator[None]:
    """Turn errors from loading a damaged, unsafe or unsuitable checkpoint in `folder` into a UserError.

    Raises UserError, too, if weights of the network are missing (`weights_complete`). `what` names the loaded
    part in messages, such as "its tokenizer ".
    """
    from safetensors import SafetensorError

    try:
        with weights_complete(model):
            yield
    except (UnpicklingError, EOFError, TypeError) as error:
        if isinstance(error, TypeError) and not any(Path(folder).rglob(PICKLED)):
            raise
        raise UserError(
            f"{model}: its pickled weights (pytorch_model.bin) are damaged, or hold more than weights; code"
            " in them is never run. A copy as model.safetensors can be loaded (`save_pretrained` writes one)"
        ) from error
    except (OSError, ValueError, ImportError, KeyError, SafetensorError) as error:
        check_tokenizer_reader(model, Path(folder))
        if "trust_remote_code" in str(error):
            raise UserError(
                f"{model}: {what}needs Python code that comes with it; to run that code, write"
                " `trust_remote_code: true` beside `model` and give --allow-code"
            ) from error
        raise UserError(f"{model}: {what}can't be loaded: {in_one_line(error)}") from error
    except RuntimeError as error:
        if "mismatch" not in str(error):
            raise
        raise UserError(
            f"{model}: its weights have other shapes than its config.json says; is it that of another model?"
        ) from error


def check_tokenizer_reader(name: str, folder: Path) -> None:
    """Raise UserError if the tokenizer is only a SentencePiece model, and sentencepiece is not installed."""
    is_alone = not (folder / "tokenizer.json").is_file() and any(folder.glob("*.model"))
    if is_alone and importlib.util.find_spec("sentencepiece") is None:
        raise UserError(
            f"{name}: its tokenizer is a SentencePiece model, which sentencepiece reads: pip install"
            " 'synthbench[sentencepiece]'"
        )


def check_weights(name: str, facts: "CheckpointFacts", num_layers: int | None) -> None:
    """Raise UserError if the weights are quantised, or incomplete in the first `num_layers` layers.

    `num_layers` None: all layers. transformers would draw missing weights at random.
    """
    if facts.quantisation:
        raise UserError(
            f"{name}: its weights are quantised ({facts.quantisation}), and neither trained nor evaluated"
            " here; take the model that they were made of"
        )
    if missing := facts.lacks(num_layers):
        raise UserError(f"{name}: its weights lack '{missing}', which its config.json promises")


def weights_in(dtype: Dtype) -> dict[str, Any]:
    """Return the argument that makes transformers load weights in this dtype instead of the stored one."""
    import torch

    return {"dtype": getattr(torch, DTYPES[dtype])}


def convert_weights(model: "nn.Module", dtype: Dtype) -> None:
    """Convert all of a loaded model's weights to this dtype; `weights_in` covers only the transformer's."""
    model.to(weights_in(dtype)["dtype"])


def check_vocabulary(name: str, tokenizer: object, model: "nn.Module | None") -> None:
    """Raise UserError for a tokenizer without words (transformers may build one), or with too many tokens.

    Too many: more than the model has embeddings for.
    """
    from transformers import PreTrainedTokenizerBase

    if not isinstance(tokenizer, PreTrainedTokenizerBase):
        return
    if len(tokenizer) <= len(tokenizer.all_special_tokens):
        raise UserError(f"{name}: its tokenizer knows no words; is tokenizer.json or vocab.txt missing?")
    rows = _num_vectors(model)
    if rows is not None and (needed := _num_tokens(tokenizer)) > rows:
        raise UserError(too_many_tokens(name, needed, rows))


def too_many_tokens(name: str, num_tokens: int, num_vectors: int) -> str:
    """Return the message on a tokenizer with more tokens than the model's embeddings."""
    return (
        f"{name}: its tokenizer has {num_tokens:,} tokens, its embeddings hold {num_vectors:,}; is the"
        " tokenizer that of another model, or were tokens added without resizing the embeddings?"
    )


def _num_vectors(model: "nn.Module | None") -> int | None:
    embeddings = getattr(model, "get_input_embeddings", None)
    try:
        found = None if embeddings is None else embeddings()
    except (AttributeError, NotImplementedError):
        return None
    weight = getattr(found, "weight", None)
    return None if weight is None else int(weight.shape[0])


def _num_tokens(tokenizer: "PreTrainedTokenizerBase") -> int:
    """Return 1 + the largest id among words and the special tokens that any text may get."""
    special = {number for number, token in tokenizer.added_tokens_decoder.items() if token.special}
    used = {getattr(tokenizer, f"{kind}_token_id", None) for kind in _IN_EVERY_TEXT}
    ids = (number for number in tokenizer.get_vocab().values() if number not in special or number in used)
    return 1 + max(ids, default=-1)


def limit_length(model: "BaseModel", max_length: int | None) -> None:
    """Limit the model's input to `max_length` tokens and to its number of positions.

    RoBERTa's usable positions start after the padding token's id: they are fewer than configured.
    """
    if max_length is not None:
        model.max_seq_length = max_length
    positions = _num_positions(model)
    if positions is not None and (model.max_seq_length is None or model.max_seq_length > positions):
        model.max_seq_length = positions


def _num_positions(model: "nn.Module") -> int | None:
    """Return the number of learned positions that a text can use; None if positions are computed."""
    from torch import nn

    numbers = []
    for name, module in model.named_modules():
        if name.rpartition(".")[2] in _POSITIONS and isinstance(module, nn.Embedding):
            first = module.padding_idx + 1 if module.padding_idx is not None else getattr(module, "offset", 0)
            numbers.append(module.num_embeddings - int(first))
    return min(numbers, default=None)


def check_outputs(name: str, outputs: int | None) -> None:
    """Raise UserError if a head has several outputs instead of one score; `outputs` None: no head."""
    if outputs not in (None, 1):
        raise UserError(
            f"{name}: its head has {outputs} outputs, since it classifies; a cross-encoder has one. To train,"
            " take a checkpoint without a head, or let `train.hidden_size` put a new one on this"
        )


def without_padding(name: str) -> str:
    """Return the message on a cross-encoder's base without a padding token."""
    return (
        f"{name}: a cross-encoder needs a model that pads, and its configuration has no pad_token_id; take an"
        " encoder such as BERT as the base, not a language model"
    )


def no_pair_head(name: str) -> str:
    """Return the message on a checkpoint that can't score pairs."""
    return (
        f"{name}: no cross-encoder: it has no head that scores pairs; the trainer `cross-encoder` trains one,"
        " the trainer `none` takes an encoder"
    )


def give_padding(name: str, tokenizer: object) -> None:
    """Let a decoder's tokenizer pad with its end-of-text token; padding is masked, so any token will do.

    Raises UserError if the tokenizer has neither token.
    """
    if getattr(tokenizer, "pad_token", "") is not None:
        return
    if tokenizer.eos_token is None:  # type: ignore[attr-defined]
        raise UserError(
            f"{name}: its tokenizer has no padding token, and no end of text that could stand for one; set"
            " pad_token in its tokenizer_config.json"
        )
    tokenizer.pad_token = tokenizer.eos_token  # type: ignore[attr-defined]
