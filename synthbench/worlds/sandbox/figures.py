"""Measure the sandbox's checkpoints as they are, without any method or training."""

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from synthbench.worlds.sandbox.documents import INSTRUCTIONS, prompt
from synthbench.worlds.sandbox.events import similarity
from synthbench.worlds.sandbox.oracle import BANDS, OUTSIDE, band
from synthbench.worlds.sandbox.parsing import parse
from synthbench.worlds.sandbox.realisation import REGISTERS
from synthbench.worlds.sandbox.sampling import Scope
from synthbench.worlds.sandbox.sets import pairs, sentences
from synthbench.worlds.sandbox.vocabulary import domain_names

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

UNCLOSED = "no closing quote"
IDENTICAL = "identical"
TRUE_LABELS = (IDENTICAL, *reversed(BANDS), OUTSIDE, UNCLOSED)
# Sampling of second sentences in Schick & Schütze 2021, section 4, "hyperparameters".
TOP_K, TOP_P, LONGEST_CONTINUATION = 5, 0.9, 40
ROWS_AT_ONCE = 50
_TEST = Scope(split="test", seed=0, registers=REGISTERS, domains=domain_names())


def lm_labels(folder: Path, num_sentences: int, kind: str = "Task") -> Iterator[tuple[str, str]]:
    """Yield (instruction's label, true label) of each text that the LM writes for a test sentence.

    `kind` is the prompts' first word, which determines how well the LM follows them. The LM is sampled
    without debiasing. The true label is one of `TRUE_LABELS`.
    """
    from transformers import AutoModelForCausalLM, AutoTokenizer, set_seed

    tokenizer = AutoTokenizer.from_pretrained(folder, padding_side="left")
    model = AutoModelForCausalLM.from_pretrained(folder, dtype="float32").train(mode=False)
    texts = [drawn.sentence for drawn, _ in islice(sentences(_TEST), num_sentences)]
    set_seed(0)
    for label in INSTRUCTIONS:
        for text, written in zip(texts, _continued(model, tokenizer, label, kind, texts), strict=True):
            yield label, _judged(text, written)


def encoder_spearman(folder: Path, num_pairs: int) -> float:
    """Return Spearman's correlation of the encoder's cosines with true similarities on test pairs.

    Embeddings are means of token vectors.
    """
    import numpy as np
    from scipy.stats import spearmanr
    from sentence_transformers import SentenceTransformer

    drawn = [pair for pair, _ in islice(pairs(_TEST), num_pairs)]
    model = SentenceTransformer(str(folder), device="cpu")
    embeddings = model.encode([text for pair in drawn for text in pair.texts()])
    embeddings /= np.linalg.norm(embeddings, axis=1, keepdims=True)
    cosines = (embeddings[::2] * embeddings[1::2]).sum(axis=1)
    return float(spearmanr(cosines, [pair.score for pair in drawn]).statistic)


def _continued(
    model: Any,  # noqa: ANN401 - what generates has no common type
    tokenizer: "PreTrainedTokenizerBase",
    label: str,
    kind: str,
    texts: Sequence[str],
) -> list[str]:
    """Return the model's continuation of each prompt, including closing quotes."""
    import torch

    written: list[str] = []
    for start in range(0, len(texts), ROWS_AT_ONCE):
        prompts = [prompt(label, text, kind) for text in texts[start : start + ROWS_AT_ONCE]]
        inputs = tokenizer(prompts, return_tensors="pt", padding=True)
        with torch.inference_mode():
            tokens = model.generate(
                **inputs,
                do_sample=True,
                top_k=TOP_K,
                top_p=TOP_P,
                max_new_tokens=LONGEST_CONTINUATION,
                pad_token_id=tokenizer.pad_token_id,
            )
        new = tokens[:, inputs["input_ids"].shape[1] :]
        written += tokenizer.batch_decode(new, skip_special_tokens=True)
    return written


def _judged(text: str, written: str) -> str:
    second, quote, _ = written.partition('"')
    if not quote or "\n" in second:
        return UNCLOSED
    if second == text:
        return IDENTICAL
    events = (parse(text), parse(second))
    if events[0] is None or events[1] is None:
        return OUTSIDE
    return band(similarity(events[0], events[1]))
