"""Faults in generation: too little memory, unsuitable models, texts that are too long."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from hub_cache import tiny_gpt2
from small_models import COUNTERLABELS, ScriptedEndings, jobs, prompts, random_model
from wording import refused

from synthbench.base.errors import UserError
from synthbench.base.runtime import Runtime
from synthbench.generation.batch import Batch
from synthbench.generation.jobs import Amounts, Job, WritingTask
from synthbench.generation.language_model import CausalModel, LanguageModel
from synthbench.generation.sampling import Sampling
from synthbench.generation.writer import Writer

LONGEST = 8
SEQUENCES = 24
Tokens = dict[tuple[str, str, int], tuple[int, ...]]


@pytest.fixture(scope="module")
def causal(tmp_path_factory: pytest.TempPathFactory) -> CausalModel:
    folder = tmp_path_factory.mktemp("model")
    random_model("Llama", folder)
    return LanguageModel(model=str(folder)).load(Runtime(device="cpu"))


@pytest.fixture(scope="module")
def undisturbed(causal: CausalModel) -> Tokens:
    return tokens(writer(causal), jobs(12))


@dataclass
class SmallDevice:
    """Has too little memory whenever `is_too_much` of the tokens to be read, shape (sequences, n)."""

    is_too_much: Callable[[int, tuple[int, ...]], bool]
    num_read: int = 0
    shapes: list[tuple[int, ...]] = field(default_factory=list)

    @contextmanager
    def holding(self, causal: CausalModel) -> Iterator[None]:
        """Let the model be on this device."""
        hook = causal.model.base_model.register_forward_pre_hook(self._before, with_kwargs=True)
        try:
            yield
        finally:
            hook.remove()

    def _before(self, module: torch.nn.Module, positional: Any, named: dict[str, Any]) -> None:
        shape = tuple(named["input_ids"].shape)
        self.num_read += 1
        self.shapes.append(shape)
        if self.is_too_much(self.num_read, shape):
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")


def writer(causal: CausalModel, *, sequences: int = SEQUENCES, **more: Any) -> Writer:
    sampling = Sampling(decay=100.0, top_k=5, top_p=0.9, max_new_tokens=LONGEST)
    task = WritingTask(COUNTERLABELS, sampling, Amounts(samples=2, tries=3), seed=0)
    return Writer(causal, task, sequences=sequences, endings=ScriptedEndings(LONGEST), **more)


def tokens(writing: Writer, work: list[Job]) -> Tokens:
    """Return the generated texts; each label of each input must occur once."""
    written = list(writing.write(work))
    assert len({(one.job.key, one.label) for one in written}) == len(written) == 3 * len(work)
    return {(one.job.key, each.label, each.number): each.tokens for one in written for each in one.attempts}


@pytest.mark.parametrize("at", [1, 2, 3, 4, 7, 20, 40])
def test_one_out_of_memory_error_halves_the_batch_and_changes_no_text(
    causal: CausalModel, undisturbed: Tokens, at: int
) -> None:
    said: list[str] = []
    writing = writer(causal, say=said.append)
    device = SmallDevice(lambda num_read, shape: num_read == at)
    with device.holding(causal):
        assert tokens(writing, jobs(12)) == undisturbed
    assert said == ["out of memory: continuing with 12 sequences at a time"]
    steps = [rows for rows, length in device.shapes[at:] if length == 1]
    assert max(steps) <= 12


def test_repeated_out_of_memory_errors_halve_the_batch_until_it_fits(
    causal: CausalModel, undisturbed: Tokens
) -> None:
    said: list[str] = []
    writing = writer(causal, say=said.append)
    with SmallDevice(lambda num_read, shape: num_read > 6 and shape[0] > 4).holding(causal):
        assert tokens(writing, jobs(12)) == undisturbed
    numbers = [int(line.split("continuing with ")[1].split()[0]) for line in said]
    assert numbers == [12, 6, 3]


def test_a_batch_that_memory_does_not_hold_is_halved_and_loses_no_input(
    causal: CausalModel, undisturbed: Tokens, monkeypatch: pytest.MonkeyPatch
) -> None:
    class LimitedBatch(Batch):
        def __init__(self, network: Any, sampler: Any, num_sequences: int, *more: Any) -> None:
            if num_sequences > 12:
                raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")
            super().__init__(network, sampler, num_sequences, *more)

    monkeypatch.setattr("synthbench.generation.writer.Batch", LimitedBatch)
    said: list[str] = []
    assert tokens(writer(causal, say=said.append), jobs(12)) == undisturbed
    assert said == ["out of memory: continuing with 12 sequences at a time"]


def test_too_little_memory_for_one_text_is_reported_in_one_line(causal: CausalModel) -> None:
    writing = writer(causal)
    with (
        SmallDevice(lambda num_read, shape: True).holding(causal),
        refused("text"),
    ):
        list(writing.write(jobs(3)))


def test_inputs_are_read_on_demand(causal: CausalModel) -> None:
    num_taken = 0

    def endless() -> Iterator[Job]:
        nonlocal num_taken
        for number in range(10_000):
            num_taken += 1
            yield Job(str(number), prompts("A man plays."))

    finished: set[str] = set()
    most_ahead = 0
    for written in writer(causal).write(endless()):
        finished |= {written.job.key}
        most_ahead = max(most_ahead, num_taken - len(finished))
        if len(finished) > 20:
            break
    # Two samples of an input take 12 sequences.
    assert most_ahead <= 2 + 3 * SEQUENCES // 12


@pytest.mark.parametrize("dtype", ["bf16", "fp16"])
def test_half_precision_also_works_on_a_cpu(tmp_path: Path, dtype: Any) -> None:
    random_model("GPT-2", tmp_path)
    half = LanguageModel(model=str(tmp_path), dtype=dtype).load(Runtime(device="cpu"))
    assert half.model.dtype == {"bf16": torch.bfloat16, "fp16": torch.float16}[dtype]
    written = tokens(writer(half), jobs(3))
    assert len(written) >= 18
    assert tokens(writer(half), jobs(3)) == written


def test_padding_rows_change_no_token(causal: CausalModel, undisturbed: Tokens) -> None:
    """On a GPU, steps are recorded for a few sizes, so some rows are padding."""
    writing = writer(causal)
    writing._network._is_recorded = True
    device = SmallDevice(lambda num_read, shape: False)
    with device.holding(causal):
        assert tokens(writing, jobs(12)) == undisturbed
    assert {rows for rows, length in device.shapes if length == 1} <= {24, 12, 6, 3}


@pytest.mark.parametrize(
    ("model_type", "settings", "why"),
    [
        ("bert", {"num_attention_heads": 2}, "its logits change when sequences are at different pos"),
        ("mamba", {"state_size": 4}, "its layers keep keys and values of different shapes"),
        ("bloom", {"n_head": 2}, "it rejects prepared keys and values: "),
    ],
)
def test_an_unsupported_type_of_model_is_refused(
    tmp_path: Path, model_type: str, settings: dict[str, int], why: str
) -> None:
    own_model(tmp_path, model_type, num_hidden_layers=2, **settings)
    unfit = LanguageModel(model=str(tmp_path)).load(Runtime(device="cpu"))
    with pytest.raises(UserError, match=f"^a model of type '{model_type}' is not supported: {why}") as raised:
        writer(unfit)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("model_type", "settings"),
    [
        ("opt", {"num_attention_heads": 2, "ffn_dim": 64, "word_embed_proj_dim": 32}),
        ("gptj", {"n_head": 2, "rotary_dim": 8}),
        ("gemma2", {"num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 16}),
        ("falcon", {"num_attention_heads": 2}),
    ],
)
def test_causal_models_of_many_kinds_can_generate(
    tmp_path: Path, model_type: str, settings: dict[str, int]
) -> None:
    own_model(tmp_path, model_type, num_hidden_layers=2, **settings)
    other = LanguageModel(model=str(tmp_path)).load(Runtime(device="cpu"))
    one, many = (tokens(writer(other, sequences=number), jobs(3)) for number in (3, SEQUENCES))
    assert one == many
    assert len(set(one.values())) > len(one) / 2


def test_weights_without_an_output_are_no_language_model(tmp_path: Path) -> None:
    random_model("Llama", tmp_path)
    bare = transformers.AutoModel.from_pretrained(tmp_path)
    (tmp_path / "model.safetensors").unlink()
    bare.save_pretrained(tmp_path)
    with refused("'lm_head.weight'"):
        LanguageModel(model=str(tmp_path)).load(Runtime(device="cpu"))


def test_texts_longer_than_the_attention_window_are_too_long(tmp_path: Path) -> None:
    shape = {"num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 2}
    own_model(tmp_path, "mistral", sliding_window=100, intermediate_size=64, **shape)
    windowed = LanguageModel(model=str(tmp_path)).load(Runtime(device="cpu"))
    assert windowed.max_length == 100
    short, long = (Job(text, prompts(text)) for text in ("A man.", "A man plays the guitar. " * 10))
    num_prompt = len(windowed.tokenizer(long.prompts["1"])["input_ids"])
    assert num_prompt + LONGEST > 100
    attempts = {(one.job.key, one.label): one.attempts for one in writer(windowed).write([long, short])}
    assert all(bool(made) == (key == short.key) for (key, _), made in attempts.items())
    assert len(attempts) == 6


def own_model(folder: Path, model_type: str, **settings: int) -> None:
    """Write a random model of this type, with a tokenizer."""
    tiny_gpt2(folder)
    size = len(transformers.AutoTokenizer.from_pretrained(folder))
    config = transformers.AutoConfig.for_model(
        model_type,
        vocab_size=size,
        hidden_size=32,
        bos_token_id=0,
        eos_token_id=0,
        pad_token_id=0,
        **settings,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = transformers.AutoModelForCausalLM.from_config(config)
        for parameter in model.parameters():
            parameter.data.mul_(10)
        model.save_pretrained(folder)
