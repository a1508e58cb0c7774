"""DINO's generation by two simple means, and the bare forward pass as upper bound.

The plain form, written from the paper: one call per x1 and label, the samples' regular and counter prompts as
left-padded rows of one batch, a key-value cache, always all steps, and filters over the full vocabulary. The
strongest simple form: transformers' `generate` with all x1 of a label in one batch, one processor that
debiases all of them at once, and a criterion that stops when all texts are closed.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any

import torch
from dino_setting import COUNTERLABELS, DECAY, STEPS, TOP_K, TOP_P
from transformers import (
    DynamicCache,
    LogitsProcessor,
    PreTrainedModel,
    PreTrainedTokenizerBase,
    StoppingCriteria,
    TopKLogitsWarper,
    TopPLogitsWarper,
)

from synthbench.models.precision import reading_in

SMALLEST_FACTOR = 0.01


class PlainLoop:
    """Writes `samples` texts for one x1 and label at a time."""

    def __init__(self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, samples: int) -> None:
        self._model, self._tokenizer, self._samples = model, tokenizer, samples
        self._top_k, self._top_p = TopKLogitsWarper(TOP_K), TopPLogitsWarper(TOP_P)
        self._generator = torch.Generator(model.device).manual_seed(0)

    @torch.inference_mode()
    def write(self, prompts: Mapping[str, str], label: str) -> list[list[int]]:
        """Return the token ids of each sample, all of full length."""
        texts = [prompts[name] for name in (label, *COUNTERLABELS[label])]
        ids, mask = self._left_padded([text for text in texts for _ in range(self._samples)])
        cache, written = DynamicCache(), []
        for _ in range(STEPS):
            positions = mask.sum(1, keepdim=True) - torch.arange(ids.shape[1], 0, -1, device=ids.device)
            output = self._model(
                input_ids=ids,
                attention_mask=mask,
                position_ids=positions.clamp(min=0),
                past_key_values=cache,
            )
            chosen = self._choose(output.logits[:, -1])
            written.append(chosen)
            # The counter prompts continue with the token drawn for the regular prompt's row.
            ids = chosen.repeat(len(texts))[:, None]
            mask = torch.cat([mask, torch.ones_like(ids)], dim=1)
        return [list(row) for row in zip(*(step.tolist() for step in written), strict=True)]

    def _left_padded(self, texts: list[str]) -> tuple[torch.Tensor, torch.Tensor]:
        """Return token ids and mask, both of shape (rows, longest)."""
        rows = [self._tokenizer(text)["input_ids"] for text in texts]
        longest = max(len(row) for row in rows)
        ids = torch.zeros(len(rows), longest, dtype=torch.long)
        mask = torch.zeros_like(ids)
        for row, tokens in enumerate(rows):
            ids[row, longest - len(tokens) :] = torch.tensor(tokens)
            mask[row, longest - len(tokens) :] = 1
        return ids.to(self._model.device), mask.to(self._model.device)

    def _choose(self, logits: torch.Tensor) -> torch.Tensor:
        """Return one token per sample; rows of `logits`: samples, then counter prompts."""
        logits = logits.float()
        logits[:, self._tokenizer.eos_token_id] = -torch.inf
        probabilities = logits.softmax(-1)
        regular = probabilities[: self._samples].clone()
        for row in range(self._samples):
            counter = probabilities[self._samples + row :: self._samples]
            if len(counter):
                delta = regular[row] - counter.max(0).values
                factor = torch.exp(DECAY * delta).clamp(min=SMALLEST_FACTOR)
                regular[row] *= torch.where(delta < 0, factor, 1.0)
        scores = torch.log(regular / regular.sum(-1, keepdim=True))
        scores = self._top_p(None, self._top_k(None, scores))
        return torch.multinomial(scores.softmax(-1), 1, generator=self._generator)[:, 0]


IsClosed = Callable[[int, int], bool]
"""Whether the text of this row is closed after this number of tokens."""


class Debiasing(LogitsProcessor):
    """Draws the tokens of all regular rows, and lets the counter rows below them continue with the same."""

    def __init__(self, num_texts: int, end: int) -> None:
        self._num_texts, self._end = num_texts, end
        self._top_k, self._top_p = TopKLogitsWarper(TOP_K), TopPLogitsWarper(TOP_P)

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """Return scores whose greatest is the drawn token, for rows (prompts x texts)."""
        scores[:, self._end] = -torch.inf
        of_prompts = scores.float().softmax(-1).view(-1, self._num_texts, scores.shape[1])
        regular = of_prompts[0]
        if len(of_prompts) > 1:
            delta = regular - of_prompts[1:].amax(0)
            factor = torch.exp(DECAY * delta).clamp(min=SMALLEST_FACTOR)
            regular = regular * torch.where(delta < 0, factor, 1.0)
        kept = self._top_p(None, self._top_k(None, regular.log()))
        drawn = torch.multinomial(kept.softmax(-1), 1).repeat(len(of_prompts), 1)
        return torch.full_like(scores, -torch.inf).scatter_(1, drawn, 0.0)


class AllClosed(StoppingCriteria):
    """Stops each row when its text is closed."""

    def __init__(self, num_texts: int, begun: int, is_closed: IsClosed) -> None:
        self._num_texts, self._begun, self._is_closed = num_texts, begun, is_closed

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor, **_: object) -> torch.Tensor:
        """Return which rows are done."""
        steps = input_ids.shape[1] - self._begun
        done = [self._is_closed(row % self._num_texts, steps) for row in range(len(input_ids))]
        return torch.tensor(done, device=input_ids.device)


class ByGenerate(PlainLoop):
    """Writes `samples` texts for all x1 of a label in one call of `generate`."""

    @torch.inference_mode()
    def write_all(self, texts: Sequence[Mapping[str, str]], label: str, is_closed: IsClosed) -> torch.Tensor:
        """Return token ids: regular rows first, each x1's samples in a row, with their prompts."""
        names = (label, *COUNTERLABELS[label])
        rows = [text[name] for name in names for text in texts for _ in range(self._samples)]
        ids, mask = self._left_padded(rows)
        num_texts = len(texts) * self._samples
        end = self._tokenizer.eos_token_id
        model: Any = self._model
        written: torch.Tensor = model.generate(
            input_ids=ids,
            attention_mask=mask,
            do_sample=False,
            max_new_tokens=STEPS,
            pad_token_id=end,
            logits_processor=[Debiasing(num_texts, end)],
            stopping_criteria=[AllClosed(num_texts, ids.shape[1], is_closed)],
        )
        return written


class PlainForward:
    """Decodes a full batch of rows with the model's own forward and cache; tokens are given, not sampled.

    `as_engine`: linear layers use the engine's library instead of torch's default.
    """

    def __init__(
        self, model: PreTrainedModel, rows: int, prompt_tokens: int, steps: int, *, as_engine: bool
    ) -> None:
        self._model, self._prompt_tokens, self.row_tokens = model, prompt_tokens, rows * steps
        self._steps, self._as_engine = steps, as_engine
        self._ids = torch.randint(1000, (rows, prompt_tokens), device=model.device)
        self._cache = DynamicCache()
        with torch.inference_mode():
            model(input_ids=self._ids, past_key_values=self._cache, logits_to_keep=1)

    @torch.inference_mode()
    def decode(self) -> None:
        """Run the steps after the prompts, which stay in the cache between calls."""
        with reading_in("fp32", self._model, self._model.device) if self._as_engine else nullcontext():
            for step in range(self._steps):
                ids = self._ids[:, step % self._prompt_tokens, None]
                self._model(input_ids=ids, past_key_values=self._cache)
        self._cache.crop(-self._steps)


class PlainReading:
    """Reads a full batch of prompts with the model's own forward; their common beginning was read before.

    It computes only keys and values, since the first logits belong to decoding, with the engine's library.
    """

    def __init__(self, model: PreTrainedModel, rows: int, shared_tokens: int, own_tokens: int) -> None:
        self._model, self.rows, self._own_tokens = model, rows, own_tokens
        self._ids = torch.randint(1000, (rows, shared_tokens + own_tokens), device=model.device)
        self._cache = DynamicCache()
        with torch.inference_mode():
            model.base_model(input_ids=self._ids[:, :shared_tokens], past_key_values=self._cache)

    @torch.inference_mode()
    def read(self) -> None:
        """Read the parts of prompts that are not shared, then remove them from the cache."""
        with reading_in("fp32", self._model, self._model.device):
            own = self._ids[:, -self._own_tokens :]
            self._model.base_model(input_ids=own, past_key_values=self._cache)
        self._cache.crop(-self._own_tokens)
