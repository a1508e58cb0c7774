"""The DINO benchmark's setting: a random GPT-2, a byte-level vocabulary of its size, prompts and endings.

GPT-2's own vocabulary may be missing, so one is learnt from the sentences and filled up with entries that no
text uses; as in GPT-2's, frequent words are single tokens.
"""

import hashlib
import json
import os
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedTokenizerBase, PreTrainedTokenizerFast

from synthbench.models.loading import DTYPES
from synthbench.sources.description import Roots
from synthbench.sources.models import TaskSource, WorldSource

INSTRUCTIONS = {
    "1": "mean the same thing",
    "0.5": "are somewhat similar",
    "0": "are on completely different topics",
}
COUNTERLABELS: dict[str, tuple[str, ...]] = {"1": (), "0.5": ("1",), "0": ("0.5", "1")}
DECAY, TOP_K, TOP_P, STEPS = 100.0, 5, 0.9, 40
NEVER_CLOSES = 0.2
VOCABULARY, LEARNT = 50257, 16000
SIZES = {"tiny": (2, 64, 2), "small": (6, 384, 6), "xl": (48, 1600, 25)}
"""Layers, width and heads."""
DTYPE_OF: dict[str, Literal["fp32", "bf16"]] = {"tiny": "fp32", "small": "fp32", "xl": "bf16"}
_END = "<|endoftext|>"


@dataclass(frozen=True)
class Setting:
    """Texts to write for, and the token lengths from which closing steps are drawn.

    Drawn steps are cached, since drawing them is not the engine's work.
    """

    sentences: list[str]
    lengths: list[int]
    known: dict[tuple[str, str, int], int | None] = field(default_factory=dict)

    def closing_step(self, key: str, label: str, number: int) -> int | None:
        """Return after how many tokens this attempt closes its quotation, None if not within the limit."""
        attempt = (key, label, number)
        if attempt not in self.known:
            self.known[attempt] = self._drawn(key, label, number)
        return self.known[attempt]

    def _drawn(self, key: str, label: str, number: int) -> int | None:
        draw = random.Random(hashlib.sha256(f"{key}\0{label}\0{number}".encode()).digest())
        if draw.random() < NEVER_CLOSES:
            return None
        return draw.choice(self.lengths)

    def is_end(self, key: str, label: str, number: int, tokens: Sequence[int]) -> bool:
        """Return whether this attempt ends with its latest token; a random model never ends by itself."""
        step = self.closing_step(key, label, number)
        return step is not None and len(tokens) >= step


def prompts(sentence: str) -> dict[str, str]:
    """Return the prompt of each label."""
    return {
        label: f'Task: Write two sentences that {phrase}.\nSentence 1: "{sentence}"\nSentence 2: "'
        for label, phrase in INSTRUCTIONS.items()
    }


def real_or_sandbox_sentences() -> list[str]:
    """Return distinct sentences of STSb train if SYNTHBENCH_DATA has them, else of the sandbox."""
    if "SYNTHBENCH_DATA" in os.environ:
        places = Roots(data=Path(os.environ["SYNTHBENCH_DATA"]))
        texts = TaskSource(task="STSb", split="train").load(places).texts
    else:
        description = {"sandbox": "sentences", "split": "train", "size": 10_000}
        texts = WorldSource.model_validate(description).load(Roots()).texts
    return sorted({text for text in texts if '"' not in text and "\n" not in text})


def save_model(folder: Path, size: str, sentences: Sequence[str], device: str) -> None:
    """Save a randomly initialised GPT-2 of `size`, and a tokenizer with its number of entries."""
    layers, width, heads = SIZES[size]
    tokenizer = _tokenizer(sentences)
    end = tokenizer.eos_token_id
    config = AutoConfig.for_model(
        "gpt2",
        n_layer=layers,
        n_embd=width,
        n_head=heads,
        vocab_size=VOCABULARY,
        bos_token_id=end,
        eos_token_id=end,
    )
    torch.manual_seed(0)
    with torch.device(device):
        dtype = getattr(torch, DTYPES[DTYPE_OF[size]])
        model = AutoModelForCausalLM.from_config(config, dtype=dtype)  # type: ignore[no-untyped-call]
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def setting(tokenizer: PreTrainedTokenizerBase, sentences: Sequence[str], number: int) -> Setting:
    """Draw `number` sentences to write for; closing steps come from the lengths of all."""
    draw = random.Random(0)
    sample = draw.sample(list(sentences), min(len(sentences), 2000))
    # The closing quotation mark is a token, too; an attempt that needs more than the limit never closes.
    lengths = [len(ids) + 1 for ids in tokenizer(sample)["input_ids"]]
    return Setting(draw.sample(list(sentences), number), [length for length in lengths if length <= STEPS])


def _tokenizer(sentences: Sequence[str]) -> PreTrainedTokenizerFast:
    learnt = Tokenizer(models.BPE())
    learnt.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    learnt.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=LEARNT,
        special_tokens=[_END],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    texts = [text for sentence in sentences for text in prompts(sentence).values()]
    learnt.train_from_iterator(texts, trainer)
    description = json.loads(learnt.to_str())
    entries = description["model"]["vocab"]
    entries.update({f"unused{index}": index for index in range(len(entries), VOCABULARY)})
    filled = Tokenizer.from_str(json.dumps(description))
    return PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_object=filled, bos_token=_END, eos_token=_END
    )
