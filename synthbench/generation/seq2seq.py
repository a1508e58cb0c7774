"""Text generation by an encoder-decoder model, such as a T5 that writes queries for passages."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from synthbench.base.errors import UserError
from synthbench.base.frozen import Constant, WithConstants
from synthbench.generation.language_model import NamedLanguageModel
from synthbench.generation.sampling import Sampler, Sampling, uniforms
from synthbench.models.work import FORWARD, Work, shape_of

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedTokenizerBase

    from synthbench.base.runtime import Runtime

LONGEST_INPUT = 512
"""Input limit in tokens if neither model nor tokenizer has one; T5 was trained with it."""
CROSS = 4 / 3
"""Size of a decoder's layer relative to an encoder's: a second attention adds a third of the parameters."""


class Seq2SeqLanguageModel(NamedLanguageModel, WithConstants):
    """An encoder-decoder model that writes texts, and its sampling."""

    dtype: Literal["fp32", "bf16", "fp16"] = Field(
        "fp32", description="dtype of weights and products; probabilities are always fp32"
    )
    top_k: int = Field(25, ge=0, description="top-k: draw among the k most probable tokens; 0: no limit")
    top_p: float = Field(
        0.95,
        gt=0,
        le=1,
        description="top-p: draw among the most probable tokens that together have this probability; 1: no"
        " limit",
    )
    max_new_tokens: int = Field(64, ge=1, le=1024, description="maximum length of a text in tokens")
    max_length: int | None = Field(
        None,
        ge=3,
        description="longest input in tokens, at most the limit of model and tokenizer; longer ones are"
        " truncated. Default: this limit, else 512",
    )

    def constants(self) -> Mapping[str, Constant]:
        """Return the input limit for a model that has none; {} if `max_length` is set."""
        return {} if self.max_length else {"longest_input": Constant(LONGEST_INPUT, 512)}

    def load(self, runtime: "Runtime") -> "Seq2SeqModel":
        """Load model and tokenizer onto the runtime's device.

        Raises UserError if the model can't be found or loaded, has no tokenizer, or is no encoder-decoder.
        """
        model, tokenizer = self._loaded(runtime, "seq2seq", self.dtype)
        return Seq2SeqModel(self, _with_plain_generation(model, self.model), tokenizer)

    def work(self, num_inputs: int, input_tokens: int, texts_per_input: int, text_tokens: int) -> Work:
        """Return the amount of computation to read each input once and to write its texts.

        `input_tokens` and `text_tokens` are the tokens of one input and of one text. The operations are None
        if the model's size is unknown.
        """
        num_texts = num_inputs * texts_per_input
        shape = shape_of(self.model, self.revision)
        if shape is None:
            return Work(self.model, None, num_texts, self.dtype)
        written = CROSS * shape.layer_parameters + shape.vocabulary * shape.width
        read = shape.layer_parameters * num_inputs * input_tokens
        return Work(self.model, FORWARD * (read + written * num_texts * text_tokens), num_texts, self.dtype)


@dataclass(frozen=True)
class Seq2SeqModel:
    """An encoder-decoder model of transformers with its tokenizer, ready to compute."""

    settings: Seq2SeqLanguageModel
    model: Any
    tokenizer: "PreTrainedTokenizerBase"

    def texts(self, inputs: Sequence[str], keys: Sequence[Sequence[str]], seed: int) -> Iterator[list[str]]:
        """Yield, for each input, a text for each of its keys.

        There must be an input, and all inputs need the same number of keys, at least 1. A text's key and
        `seed` seed its random numbers. A text depends on the model, its input, key and seed alone; other
        inputs change only rounding.
        """
        import torch

        features = self.tokenizer(
            list(inputs),
            padding=True,
            truncation=True,
            max_length=self._longest_input,
            return_tensors="pt",
        ).to(self.model.device)
        number = len(keys[0])
        length = self.settings.max_new_tokens
        numbers = [uniforms(length, seed, key).tolist() for of_input in keys for key in of_input]
        with torch.inference_mode():
            # Each input is encoded once for all of its texts.
            read = self.model.get_encoder()(**features)
            read.last_hidden_state = read.last_hidden_state.repeat_interleave(number, 0)
            tokens = self.model.generate(
                encoder_outputs=read,
                attention_mask=features["attention_mask"].repeat_interleave(number, 0),
                max_new_tokens=length,
                do_sample=False,
                logits_processor=[_DrawnToken(self.settings, torch.tensor(numbers, dtype=torch.float64))],
            )
        texts = self.tokenizer.batch_decode(tokens, skip_special_tokens=True)
        for start in range(0, len(texts), number):
            yield [text.strip() for text in texts[start : start + number]]

    @property
    def _longest_input(self) -> int:
        limits = (self.settings.max_length, getattr(self.model.config, "max_position_embeddings", None))
        known = [limit for limit in (*limits, self.tokenizer.model_max_length) if limit and limit < 10**6]
        return min(known, default=LONGEST_INPUT)


def _with_plain_generation(model: Any, name: str) -> Any:  # noqa: ANN401 - transformers is untyped
    """Return the model with only special tokens in its generation settings: no beams, no penalties.

    Raises UserError if its settings name no first token for texts.
    """
    from transformers import GenerationConfig

    names = ("bos_token_id", "eos_token_id", "pad_token_id", "decoder_start_token_id")
    special = {each: getattr(model.generation_config, each, None) for each in names}
    if special["decoder_start_token_id"] is None:
        special["decoder_start_token_id"] = getattr(model.config, "decoder_start_token_id", None)
    if special["decoder_start_token_id"] is None and special["bos_token_id"] is None:
        raise UserError(f"{name}: names no token that a text begins with; is it an encoder-decoder model?")
    model.generation_config = GenerationConfig.from_dict(special)
    return model


class _DrawnToken:
    """Masks all tokens but the one that a text's random number draws, so that greedy decoding takes it."""

    def __init__(self, settings: Seq2SeqLanguageModel, draws: "torch.Tensor") -> None:
        self._draws = draws
        sampling = Sampling(0.0, settings.top_k or None, settings.top_p, settings.max_new_tokens)
        self._sampler = Sampler(sampling)

    def __call__(self, input_ids: "torch.Tensor", scores: "torch.Tensor") -> "torch.Tensor":
        """Return scores, shape (texts, vocabulary), that are 0 for the drawn token, else minus infinity."""
        import torch

        rows = torch.arange(len(scores), device=scores.device)
        none = torch.empty((len(scores), 0), dtype=torch.long, device=scores.device)
        tokens, probabilities = self._sampler.candidates(scores.float().clone(), rows, none)
        # The first token is the start token.
        chosen = self._sampler.choose(tokens, probabilities, self._draws[:, input_ids.shape[1] - 1])
        only = torch.full_like(scores, float("-inf"))
        return only.scatter_(1, chosen.to(scores.device).unsqueeze(1), 0.0)
