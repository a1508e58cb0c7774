"""Positions of sequences in a batch, and attention by parts, each compared with a plain version."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from small_models import COUNTERLABELS, ScriptedEndings, jobs, random_model
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

from synthbench.base.runtime import Runtime
from synthbench.generation import batch
from synthbench.generation.arrangement import Parts, in_parts, without_gaps
from synthbench.generation.attention import attending
from synthbench.generation.jobs import Amounts, WritingTask
from synthbench.generation.language_model import LanguageModel
from synthbench.generation.sampling import Sampling
from synthbench.generation.writer import Writer

LENGTHS = st.lists(st.integers(0, 9), min_size=1, max_size=30).map(np.array)
LONGEST = 12


@given(LENGTHS)
def test_active_sequences_move_to_the_front_and_only_the_last_ones_move(lengths: np.ndarray) -> None:
    origins = without_gaps(lengths)
    num_used = np.count_nonzero(lengths)
    assert sorted(origins) == list(range(len(lengths)))
    assert (lengths[origins][:num_used] > 0).all()
    moved = [line for line in range(num_used) if origins[line] != line]
    assert all(lengths[line] == 0 for line in moved)


@given(LENGTHS, st.integers(1, 31))
def test_longer_sequences_join_earlier_groups_and_few_move(lengths: np.ndarray, size: int) -> None:
    origins = in_parts(lengths, size)
    assert sorted(origins) == list(range(len(lengths)))
    parts = [lengths[origins][start : start + size] for start in range(0, len(lengths), size)]
    assert all(one.min() >= other.max() for one, other in pairwise(parts))
    # A sequence that is already in its part does not move.
    assert all(origin == line or origin // size != line // size for line, origin in enumerate(origins))


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 7), st.lists(st.integers(1, 12), min_size=1, max_size=4), st.integers(0, 2**31))
def test_attention_over_groups_equals_attention_over_the_whole_batch(
    size: int, widths: list[int], seed: int
) -> None:
    chance = torch.Generator().manual_seed(seed)
    rows = size * len(widths)
    query = torch.randn(rows, 4, 1, 8, generator=chance)
    key, value = (torch.randn(rows, 2, 12, 8, generator=chance) for _ in range(2))
    lengths = torch.tensor([1 + seed % width for width in widths for _ in range(size)])
    mask = (torch.arange(12) < lengths[:, None])[:, None, None]
    module = torch.nn.Module()
    module.num_key_value_groups, module.is_causal = 2, False
    with attending(Parts(size, tuple(widths))):
        attend = ALL_ATTENTION_FUNCTIONS["sdpa"]
        ours, _ = attend(module, query, key, value, mask)
    whole, _ = attend(module, query, key, value, mask)
    assert torch.allclose(ours, whole, atol=1e-6)


@pytest.mark.parametrize("model", ["GPT-2", "Llama"])
def test_a_batch_in_groups_writes_the_same_texts(
    model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Parts are a GPU's; here a CPU has them, too."""
    random_model(model, tmp_path)
    causal = LanguageModel(model=str(tmp_path)).load(Runtime(device="cpu"))
    sampling = Sampling(decay=100.0, top_k=5, top_p=0.9, max_new_tokens=LONGEST)
    task = WritingTask(COUNTERLABELS, sampling, Amounts(samples=2, tries=3), seed=0)
    written = []
    for parts in (1, 4):
        monkeypatch.setitem(batch.PARTS, "cpu", parts)
        writer = Writer(causal, task, sequences=36, endings=ScriptedEndings(LONGEST))
        written.append({(one.job.key, one.label): one.attempts for one in writer.write(jobs(12))})
    assert written[0] == written[1]
