"""Small causal language models for tests of generation."""

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
import transformers
from hub_cache import SENTENCES, tiny_gpt2
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

from synthbench.generation.jobs import Job

INSTRUCTIONS = {
    "1": "mean the same thing",
    "0.5": "are somewhat similar",
    "0": "are on completely different topics",
}
COUNTERLABELS: dict[str, tuple[str, ...]] = {"1": (), "0.5": ("1",), "0": ("0.5", "1")}
ARCHITECTURES = ("GPT-2", "Llama", "GPT-NeoX")
_END = "<|endoftext|>"
# Large enough that a random model prefers some tokens; otherwise debiasing has no effect.
_SPREAD = 0.4


def prompts(x1: str) -> dict[str, str]:
    """Return DINO's prompt of each label."""
    return {
        label: f'Task: Write two sentences that {phrase}.\nSentence 1: "{x1}"\nSentence 2: "'
        for label, phrase in INSTRUCTIONS.items()
    }


def jobs(number: int) -> list[Job]:
    """Return jobs for the first sentences, of different lengths."""
    texts = [" ".join(SENTENCES[7 * index : 7 * index + 1 + index % 3]) for index in range(number)]
    return [Job(key=text, prompts=prompts(text), unwanted=frozenset({text})) for text in texts]


class ScriptedEndings:
    """Ends attempts at steps of its own, up to `longest`: a random model closes no quotation."""

    def __init__(self, longest: int) -> None:
        self._longest = longest

    def is_end(self, key: str, label: str, number: int, tokens: Sequence[int]) -> bool:
        """Say whether this attempt ends with its latest token."""
        digest = hashlib.sha256(f"{key}/{label}/{number}".encode()).digest()
        return len(tokens) > digest[0] % self._longest


def random_model(architecture: str, folder: Path) -> None:
    """Write a random model with a byte-level tokenizer; all but GPT-2 have rotary positions."""
    tiny_gpt2(folder)
    size = len(transformers.AutoTokenizer.from_pretrained(folder))
    common: dict[str, Any] = {
        "vocab_size": size,
        "max_position_embeddings": 256,
        "initializer_range": _SPREAD,
        "bos_token_id": 0,
        "eos_token_id": 0,
    }
    layers: dict[str, Any] = {"hidden_size": 32, "num_hidden_layers": 2, "intermediate_size": 64}
    if architecture == "GPT-2":
        config = transformers.AutoConfig.for_model("gpt2", n_embd=32, n_layer=2, n_head=2, **common)
    elif architecture == "Llama":
        config = transformers.AutoConfig.for_model(
            "llama", num_attention_heads=4, num_key_value_heads=2, **layers, **common
        )
    else:
        config = transformers.AutoConfig.for_model("gpt_neox", num_attention_heads=2, **layers, **common)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        transformers.AutoModelForCausalLM.from_config(config).save_pretrained(folder)


def random_t5(folder: Path) -> None:
    """Write a random T5 with a byte-level tokenizer, as a small sequence-to-sequence model."""
    tiny_gpt2(folder)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder, pad_token=_END)
    tokenizer.save_pretrained(folder)
    config = transformers.T5Config(
        vocab_size=len(tokenizer),
        d_model=32,
        d_kv=8,
        num_heads=4,
        num_layers=2,
        d_ff=64,
        initializer_factor=0.7,
        dropout_rate=0.0,
        decoder_start_token_id=0,
        eos_token_id=0,
        pad_token_id=0,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        transformers.T5ForConditionalGeneration(config).save_pretrained(folder)


def scripted_model(follows: Mapping[str, Mapping[str, float]], folder: Path) -> None:
    """Write a model whose next byte depends on the latest byte only: `follows[latest][next]` is its chance.

    A Llama whose layers add nothing: a token's embedding is its own axis, so a row of the output matrix says
    what comes next. Each byte is a token; after bytes that `follows` lacks, all are equally likely.
    """
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {_END: 0, **{letter: index for index, letter in enumerate(alphabet, start=1)}}
    backend = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=backend, bos_token=_END, eos_token=_END)
    tokenizer.save_pretrained(folder)
    width = len(vocabulary) + len(vocabulary) % 2
    config = transformers.AutoConfig.for_model(
        "llama",
        vocab_size=len(vocabulary),
        hidden_size=width,
        intermediate_size=2,
        num_hidden_layers=1,
        num_attention_heads=1,
        max_position_embeddings=512,
        tie_word_embeddings=False,
        bos_token_id=0,
        eos_token_id=0,
    )
    model = transformers.AutoModelForCausalLM.from_config(config)
    with torch.no_grad():
        for layer in model.model.layers:
            layer.self_attn.o_proj.weight.zero_()
            layer.mlp.down_proj.weight.zero_()
        model.model.embed_tokens.weight.copy_(torch.eye(len(vocabulary), width))
        # The norm before the output makes the one coordinate the square root of the width.
        model.lm_head.weight.copy_(_scores(follows, tokenizer, len(vocabulary), width) / width**0.5)
    model.save_pretrained(folder)


def _scores(
    follows: Mapping[str, Mapping[str, float]], tokenizer: Any, size: int, width: int
) -> torch.Tensor:
    """Return log-chances, shape (next, latest)."""
    scores = torch.zeros(size, width)
    for latest, chances in follows.items():
        (column,) = tokenizer(latest)["input_ids"]
        scores[:, column] = -50.0
        for byte, chance in chances.items():
            (row,) = tokenizer(byte)["input_ids"]
            scores[row, column] = float(torch.tensor(chance).log())
    return scores
