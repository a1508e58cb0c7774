"""The cache fixture itself: tiny checkpoints load by their hub ids, offline, through the ordinary code."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hub_cache import (
    HubCache,
    quoting_gpt2,
    tiny_bert,
    tiny_gpt2,
    tiny_roberta,
    tiny_sentence_transformer,
)

COMMIT = "86b5e0934494bd15c9632b12f734a8a67f723594"


@pytest.mark.parametrize(
    ("name", "build", "architecture"),
    [
        ("bert-base-uncased", tiny_bert, "AutoModelForSequenceClassification"),
        ("FacebookAI/roberta-base", tiny_roberta, "AutoModel"),
        ("openai-community/gpt2-xl", tiny_gpt2, "AutoModelForCausalLM"),
        ("gpt2-xl", quoting_gpt2, "AutoModelForCausalLM"),
    ],
)
def test_a_tiny_checkpoint_replaces_a_real_one(
    hub_cache: HubCache, name: str, build: Callable[[Path], None], architecture: str
) -> None:
    import transformers

    hub_cache.add_model(name, COMMIT, build)
    tokenizer = transformers.AutoTokenizer.from_pretrained(name, revision=COMMIT)
    model: Any = getattr(transformers, architecture).from_pretrained(name, revision=COMMIT)
    batch = tokenizer("A man plays the guitar; zebras?", return_tensors="pt")
    assert model(**batch)[0].isfinite().all()
    assert model.config.vocab_size == len(tokenizer)


@pytest.mark.parametrize("top_k", [5, 0])
def test_a_random_language_model_closes_most_quotations(hub_cache: HubCache, top_k: int) -> None:
    import torch
    import transformers

    hub_cache.add_model("gpt2-xl", COMMIT, quoting_gpt2)
    tokenizer = transformers.AutoTokenizer.from_pretrained("gpt2-xl", revision=COMMIT)
    model: Any = transformers.AutoModelForCausalLM.from_pretrained("gpt2-xl", revision=COMMIT)
    batch = tokenizer('Sentence 1: "a man plays the guitar."\nSentence 2: "', return_tensors="pt")
    length = batch["input_ids"].shape[1]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        written = model.generate(
            **batch,
            do_sample=True,
            top_k=top_k,
            top_p=0.9,
            max_new_tokens=40,
            num_return_sequences=40,
            pad_token_id=0,
        )
    texts = tokenizer.batch_decode(written[:, length:])
    closed = [text for text in texts if text.partition('"')[0].strip() and '"' in text]
    assert len(closed) >= len(texts) / 3


def test_the_byte_level_tokenizers_preserve_every_text(hub_cache: HubCache) -> None:
    import transformers

    hub_cache.add_model("gpt2", COMMIT, tiny_gpt2)
    tokenizer = transformers.AutoTokenizer.from_pretrained("gpt2", revision=COMMIT)
    text = 'Sentence 1: "Naïve zebras — 7!"'
    assert tokenizer.decode(tokenizer(text)["input_ids"]) == text


@pytest.mark.experiments
def test_another_process_loads_a_sentence_encoder(hub_cache: HubCache, tmp_path: Path) -> None:
    name = "sentence-transformers/all-MiniLM-L6-v2"
    hub_cache.add_model(name, COMMIT, tiny_sentence_transformer)
    program = (
        "from sentence_transformers import SentenceTransformer\n"
        f"print(SentenceTransformer('{name}', revision='{COMMIT}', device='cpu').encode(['a man']).shape)"
    )
    child = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, **hub_cache.environment()},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert child.stdout.strip() == "(1, 32)", child.stderr


def test_building_a_checkpoint_twice_gives_the_same_bytes(tmp_path: Path) -> None:
    first, second = HubCache(tmp_path / "first"), HubCache(tmp_path / "second")
    blobs = [
        {path.name for path in (cache.add_model("gpt2", COMMIT, tiny_bert).parents[1] / "blobs").iterdir()}
        for cache in (first, second)
    ]
    assert blobs[0] == blobs[1]
