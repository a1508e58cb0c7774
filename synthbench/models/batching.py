"""Batches of texts of similar length: little padding, and similar work in each."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch
    from sentence_transformers.base import BaseModel


SMALLEST_SHARE = 4
PADDING_SHARE = 10


def length_batches(lengths: Sequence[int], batch_tokens: int) -> Iterator[list[int]]:
    """Yield batches of text indices, longest texts first; every index is in one batch.

    A batch holds at most `batch_tokens` tokens, padding included, or one longer text. A text shorter than the
    batch's longest joins on two conditions. The batch must have less than a quarter of `batch_tokens` before
    the text joins, and at most a tenth of it may be padding then: on a CPU, tiny batches cost more than a
    little padding. The result depends only on the arguments.
    """
    order = sorted(range(len(lengths)), key=lambda index: (-lengths[index], index))
    batch: list[int] = []
    num_tokens = 0
    for index in order:
        length = lengths[index]
        longest = lengths[batch[0]] if batch else length
        if batch and not _fits(len(batch) + 1, num_tokens + length, length, longest, batch_tokens):
            yield batch
            batch, num_tokens = [], 0
        batch.append(index)
        num_tokens += length
    if batch:
        yield batch


def _fits(num_rows: int, num_tokens: int, length: int, longest: int, batch_tokens: int) -> bool:
    """Return whether a text of `length` tokens may join a batch whose longest text has `longest`.

    `num_rows` and `num_tokens` (without padding) count the batch together with this text.
    """
    padded = num_rows * longest
    if padded > batch_tokens:
        return False
    if length == longest:
        return True
    small = SMALLEST_SHARE * (padded - longest) < batch_tokens
    return small and PADDING_SHARE * (padded - num_tokens) <= padded


class TokenisedTexts:
    """Texts (or pairs of texts) tokenised by the model's own tokenizer, with prompt and truncation.

    `prompt` None: the checkpoint's default prompt, if any.
    """

    def __init__(self, model: "BaseModel", texts: Sequence[Any], prompt: str | None = None) -> None:
        unpadded = {"text": {"padding": False}, "common": {"return_tensors": None}}
        prompt = default_prompt(model) if prompt is None else prompt
        features = model.preprocess(list(texts), prompt=prompt, processing_kwargs=unpadded)
        self._tokenizer = model.tokenizer
        self._columns: Mapping[str, list[list[int]]] = {
            name: value for name, value in features.items() if isinstance(value, list)
        }
        self._shared = {name: value for name, value in features.items() if name not in self._columns}

    @property
    def lengths(self) -> list[int]:
        """Number of tokens of each text."""
        return [len(row) for row in self._columns["input_ids"]]

    def features(self, indices: Sequence[int], device: "torch.device") -> dict[str, Any]:
        """Return the input of the model's first module for these texts, padded to the longest of them."""
        rows = {name: [column[index] for index in indices] for name, column in self._columns.items()}
        # A model reads at least one token, though a text without special tokens may have none.
        to_one = {} if any(rows["input_ids"]) else {"padding": "max_length", "max_length": 1}
        padded = self._tokenizer.pad(rows, **{"padding": True, **to_one}, return_tensors="pt")
        return {**{name: tensor.to(device) for name, tensor in padded.items()}, **self._shared}


def read_once(model: "BaseModel", *, padded: bool) -> None:
    """Tokenise one text, so that the tokenizer has the settings of training (`padded`) or of scoring."""
    texts: list[Any] = [("a", "a")] if model.model_type == "CrossEncoder" else ["a"]
    if padded or not takes_token_batches(model):
        model.preprocess(texts)
    else:
        TokenisedTexts(model, texts)


def default_prompt(model: "BaseModel") -> str | None:
    """Return the checkpoint's default prompt; None without one."""
    if model.default_prompt_name is None:
        return None
    prompt: str | None = model.prompts.get(model.default_prompt_name)
    return prompt


def prompt_of_queries(model: "BaseModel") -> str | None:
    """Return the prompt that sentence-transformers' `encode_query` uses; None without one."""
    return _prompt_named(model, ("query",))


def prompt_of_passages(model: "BaseModel") -> str | None:
    """Return the prompt that sentence-transformers' `encode_document` uses; None without one."""
    return _prompt_named(model, ("document", "passage", "corpus"))


def _prompt_named(model: "BaseModel", names: Sequence[str]) -> str | None:
    found = next((name for name in names if name in model.prompts), None)
    return default_prompt(model) if found is None else model.prompts[found]


def routes_tasks(model: "BaseModel") -> bool:
    """Return whether the model may read queries and passages by different modules."""
    return "task" in model.get_model_kwargs()


def takes_token_batches(model: "BaseModel") -> bool:
    """Return whether the model is a transformer over padded tokens.

    False for static embeddings, chat templates and packed (flash attention) inputs: sentence-transformers'
    own loops run these.
    """
    from sentence_transformers.base.modules import Transformer

    first = model[0]
    return isinstance(first, Transformer) and first.modalities == ["text"] and not first.can_flatten_inputs


def length_sorted_units(text_lengths: Sequence[int], unit_size: int) -> list[list[int]]:
    """Divide work into units of texts of similar length; return the indices of each unit, shortest first.

    `text_lengths` may have any unit that grows with the cost, such as characters. Units depend only on the
    arguments, so resumed scoring gives the same scores. Lengths are sorted globally, so batches within a unit
    need hardly any padding. The last unit may be smaller.

    Raises ValueError if `unit_size` is not positive.
    """
    if unit_size < 1:
        raise ValueError(f"unit_size is {unit_size}, must be at least 1")
    order = sorted(range(len(text_lengths)), key=text_lengths.__getitem__)
    return [order[start : start + unit_size] for start in range(0, len(order), unit_size)]
