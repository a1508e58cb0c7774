"""Word guesses for blanks by a masked language model."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from synthbench.base.errors import UserError
from synthbench.generation.language_model import NamedLanguageModel

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedTokenizerBase

    from synthbench.base.runtime import Runtime

BATCH = 32  # blanks per pass; each has logits for the whole vocabulary at every token
CONTEXT = "a"
"""A word put before a text, since the first word of a text is tokenized differently."""
SPELLINGS = 4  # further candidates, for the blank's own word in other cases


@dataclass(frozen=True)
class Blank:
    """A word to replace: `text[start:end]`."""

    text: str
    start: int
    end: int

    @property
    def word(self) -> str:
        """The original word."""
        return self.text[self.start : self.end]

    def filled(self, word: str) -> str:
        """Return the text with `word` in the blank."""
        return self.text[: self.start] + word + self.text[self.end :]


class MaskedLanguageModel(NamedLanguageModel):
    """`language_model:` of a method that guesses words: a masked language model."""

    def load(self, runtime: "Runtime") -> "MaskedModel":
        """Load model and tokenizer onto the runtime's device.

        Raises UserError if the model can't be found or loaded, or has no tokenizer or mask token.
        """
        model, tokenizer = self._loaded(runtime, "masked", "fp32")
        if tokenizer.mask_token is None:
            raise UserError(f"{self.model}: its tokenizer has no mask token; is it a masked language model?")
        return MaskedModel(model, tokenizer)


@dataclass(frozen=True)
class MaskedModel:
    """A masked language model of transformers with its tokenizer, ready to use."""

    model: Any
    tokenizer: "PreTrainedTokenizerBase"

    def guesses(self, blanks: Sequence[Blank], top_k: int) -> Iterator[list[tuple[str, float]]]:
        """Yield, for each blank, the `top_k` most probable words except its own, as (word, probability).

        The best word is first; the probabilities sum to 1. Guesses are whole words of one token that differ
        from the blank's word in more than case. The list is empty if the blank lies beyond the model's
        maximum length, and shorter than `top_k` if the vocabulary is small.
        """
        for start in range(0, len(blanks), BATCH):
            batch = blanks[start : start + BATCH]
            for blank, logits in zip(batch, self._logits(batch), strict=True):
                yield [] if logits is None else self._best(blank, logits, top_k)

    def _logits(self, blanks: Sequence[Blank]) -> "list[torch.Tensor | None]":
        """Return each blank's logits of the whole words, ordered as `_words`; None beyond the maximum length.

        One copy fetches all logits, since each copy waits for the device.
        """
        import torch

        mask = str(self.tokenizer.mask_token)
        features = self.tokenizer(
            [blank.filled(mask) for blank in blanks],
            padding=True,
            truncation=True,
            max_length=self._max_length,
            return_tensors="pt",
        )
        ids, _ = self._words
        places: dict[int, int] = {}
        for row, (blank, tokens) in enumerate(zip(blanks, features["input_ids"].tolist(), strict=True)):
            masks = [at for at, token in enumerate(tokens) if token == self.tokenizer.mask_token_id]
            index = blank.text[: blank.start].count(mask)
            if index < len(masks):
                places[row] = masks[index]
        rows, columns, words = (
            torch.tensor(each, dtype=torch.long, device=self.model.device)
            for each in (list(places), list(places.values()), ids)
        )
        with torch.inference_mode():
            logits = self.model(**features.to(self.model.device)).logits
            of_words = dict(zip(places, logits[rows, columns][:, words].float().cpu(), strict=True))
        return [of_words.get(row) for row in range(len(blanks))]

    def _best(self, blank: Blank, logits: "torch.Tensor", top_k: int) -> list[tuple[str, float]]:
        _, words = self._words
        values, indices = logits.topk(min(top_k + SPELLINGS, len(words)))
        own = blank.word.casefold()
        others = [
            (words[index], value)
            for index, value in zip(indices.tolist(), values, strict=True)
            if words[index].casefold() != own
        ][:top_k]
        if not others:
            return []
        shares = logits.new_tensor([float(value) for _, value in others]).double().softmax(0).tolist()
        return [(word, share) for (word, _), share in zip(others, shares, strict=True)]

    @cached_property
    def _max_length(self) -> int | None:
        """The maximum length in tokens; None if unknown."""
        positions = getattr(self.model.config, "max_position_embeddings", None)
        padding = getattr(self.model.config, "pad_token_id", None) or 0
        # RoBERTa's positions start after the padding token's id, BERT's at 0; the smaller limit fits both.
        limits = [positions - padding - 1 if positions else None, self.tokenizer.model_max_length]
        return min((int(limit) for limit in limits if limit and limit < 10**6), default=None)

    @cached_property
    def _words(self) -> "tuple[list[int], list[str]]":
        """The ids of the tokens that form a whole word when they follow another word, and these words."""
        words = [str(self.tokenizer.decode([token])).strip() for token in range(len(self.tokenizer))]
        lettered = [(token, word) for token, word in enumerate(words) if word.isalpha()]
        before = self._ids([CONTEXT])[0]
        written = self._ids([f"{CONTEXT} {word}" for _, word in lettered])
        whole = [
            (token, word)
            for (token, word), ids in zip(lettered, written, strict=True)
            if ids == [*before, token]
        ]
        return [token for token, _ in whole], [word for _, word in whole]

    def _ids(self, texts: list[str]) -> list[list[int]]:
        ids: list[list[int]] = self.tokenizer(texts, add_special_tokens=False)["input_ids"]
        return ids
