"""The engine's use of a device: synchronisations with the host, and memory."""

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from small_models import COUNTERLABELS, ScriptedEndings, jobs, prompts, random_model
from torch import is_tensor
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_iter

from synthbench.base.errors import UserError
from synthbench.base.runtime import Runtime
from synthbench.generation import writer as writing
from synthbench.generation.batch import Batch
from synthbench.generation.jobs import PROMPT_TOKENS, Amounts, Job, WritingCost, WritingTask
from synthbench.generation.kv_cache import KeyValues
from synthbench.generation.language_model import CausalModel, LanguageModel
from synthbench.generation.memory import is_exhausted
from synthbench.generation.sampling import Sampling
from synthbench.generation.writer import Writer

LONGEST = 12
LAYERS, SEQUENCES, HEADS, LENGTH, SIZE = 6, 50, 4, 32, 8
OF_LAYER = 2 * SEQUENCES * HEADS * LENGTH * SIZE * 4


@pytest.fixture(scope="module")
def causal(tmp_path_factory: pytest.TempPathFactory) -> CausalModel:
    folder = tmp_path_factory.mktemp("model")
    random_model("GPT-2", folder)
    return LanguageModel(model=str(folder)).load(Runtime(device="cpu"))


def writer(causal: CausalModel, **more: Any) -> Writer:
    sampling = Sampling(decay=100.0, top_k=5, top_p=0.9, max_new_tokens=LONGEST)
    task = WritingTask(COUNTERLABELS, sampling, Amounts(samples=2, tries=3), seed=0)
    return Writer(causal, task, **{"sequences": 48, "endings": ScriptedEndings(LONGEST), **more})


class Peak(TorchDispatchMode):
    """Sums the bytes of storages made since it began, and remembers the most that were held at once."""

    def __init__(self, *before: torch.Tensor) -> None:
        super().__init__()
        self.most = 0
        self._held: dict[int, tuple[Any, int]] = {}
        self._keep(before)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given = {each.untyped_storage()._cdata for each in tree_iter((args, kwargs)) if is_tensor(each)}
        result = func(*args, **(kwargs or {}))
        made = [each for each in tree_iter(result) if is_tensor(each)]
        self._keep(each for each in made if each.untyped_storage()._cdata not in given)
        return result

    def _keep(self, made: Iterable[torch.Tensor]) -> None:
        storages = [each.untyped_storage() for each in made]
        self._held |= {each._cdata: (StorageWeakRef(each), each.nbytes()) for each in storages}
        self._held = {key: held for key, held in self._held.items() if not held[0].expired()}
        self.most = max(self.most, sum(size for _, size in self._held.values()))


def key_values(num_sequences: int = SEQUENCES, length: int = LENGTH) -> KeyValues:
    return KeyValues([torch.randn(2, num_sequences, HEADS, length, SIZE) for _ in range(LAYERS)])


def test_copying_keys_and_values_needs_memory_for_one_layer() -> None:
    ours, theirs = key_values(), key_values(10)
    targets, origins = torch.arange(10) * 3, torch.arange(10)
    with Peak() as copying:
        ours.copy_from(theirs, targets, origins, LENGTH)
    assert copying.most <= OF_LAYER * 10 / SEQUENCES * 1.1
    assert all(torch.equal(a[:, targets], b) for a, b in zip(ours.layers, theirs.layers, strict=True))


def test_growing_the_cache_preserves_its_content_and_pads_with_zeros() -> None:
    ours = key_values()
    before = [layer.clone() for layer in ours.layers]
    ours.grow(2 * LENGTH)
    assert ours.length == 2 * LENGTH
    for layer, old in zip(ours.layers, before, strict=True):
        assert torch.equal(layer[..., :LENGTH, :], old)
        assert not layer[..., LENGTH:, :].any()


def test_a_grown_layer_replaces_the_old_one_before_the_next_grows() -> None:
    ours = key_values()
    with Peak(*ours.layers) as growing:
        ours.grow(LENGTH + 16)
    grown = OF_LAYER * (LENGTH + 16) // LENGTH
    assert growing.most < LAYERS * grown + 1.01 * OF_LAYER


class Waits(TorchDispatchMode):
    """Counts what makes the host wait for a GPU, or sends numbers there."""

    def __init__(self) -> None:
        super().__init__()
        self.made: Counter[str] = Counter()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func.overloadpacket.__name__
        if name in ("_local_scalar_dense", "nonzero", "lift_fresh", "masked_select", "is_nonzero", "equal"):
            self.made[name] += 1
        return func(*args, **(kwargs or {}))


def test_the_host_waits_for_the_device_once_per_step(
    causal: CausalModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Counter[str]] = []
    plain_step, plain_list = Batch.step, torch.Tensor.tolist
    lists = Counter[str]()

    def listed(tensor: torch.Tensor) -> Any:
        lists["tolist"] += 1
        return plain_list(tensor)

    def step(batch: Batch) -> None:
        lists.clear()
        with Waits() as waits:
            plain_step(batch)
        made.append(lists + waits.made)

    monkeypatch.setattr(torch.Tensor, "tolist", listed)
    monkeypatch.setattr(Batch, "step", step)
    list(writer(causal).write(jobs(12)))
    # Tokens are read back once per step. Numbers are sent without waiting: once, and once for each move.
    assert all(each["tolist"] == 1 for each in made)
    # (A tensor made of a list or an array is "lift_fresh".)
    assert all(each["lift_fresh"] <= 3 for each in made[1:])
    assert {name for each in made for name in each} == {"tolist", "lift_fresh"}


def test_prompts_are_only_in_memory_until_generation_begins(
    causal: CausalModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No step runs with free sequences while inputs wait, but for less than one input's."""
    free: list[int] = []
    plain = Batch.step

    def step(batch: Batch) -> None:
        free.append(batch.num_free)
        plain(batch)

    monkeypatch.setattr(Batch, "step", step)
    num_taken = 0

    def work() -> Iterator[Any]:
        nonlocal num_taken
        for job in jobs(40):
            num_taken += 1
            yield job

    for _ in writer(causal).write(work()):
        if num_taken < 40:
            # A label takes up to three sequences.
            assert max(free) < 3


def test_the_batch_fits_into_free_memory(causal: CausalModel, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = list(writer(causal).write(jobs(6)))
    said: list[str] = []
    limited = writer(causal, sequences=1000, say=said.append)
    length = max(len(causal.tokenizer(text)["input_ids"]) for text in jobs(1)[0].prompts.values()) + LONGEST
    each = limited._network.bytes_per_sequence(int(writing.SPARE_LENGTH * length))
    free = int(20.5 * each / writing.USED_SHARE)
    monkeypatch.setattr(writing, "free_bytes", lambda device: free)
    found = list(limited.write(jobs(6)))
    assert said == ["free memory holds 20 sequences at a time, not 1,000"]
    assert {(one.job.key, one.label): one.attempts for one in found} == {
        (one.job.key, one.label): one.attempts for one in expected
    }


def test_the_planned_bytes_suffice(causal: CausalModel, monkeypatch: pytest.MonkeyPatch) -> None:
    """The plan holds against the bytes that are allocated while a batch is filled for the first time."""
    limited = writer(causal)
    work = jobs(12)
    list(limited.write(work[:1]))
    length = max(len(causal.tokenizer(text)["input_ids"]) for job in work for text in job.prompts.values())
    planned = 48 * limited._network.bytes_per_sequence(int(length + LONGEST))
    with Peak() as held:
        list(limited.write(work))
    assert held.most <= planned * 1.05


@pytest.mark.parametrize(
    ("error", "is_memory"),
    [
        (torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB"), True),
        (RuntimeError("CUDA error: out of memory"), True),
        (RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"), True),
        (RuntimeError("MPS backend out of memory (MPS allocated: 9 GB)"), True),
        (
            RuntimeError("[enforce fail at alloc_cpu.cpp:119] DefaultCPUAllocator: can't allocate memory"),
            True,
        ),
        (RuntimeError("The size of tensor a (3) must match the size of tensor b (4)"), False),
        (UserError("a model of type 'x' is not supported"), False),
    ],
    ids=["torch", "cuda", "cublas", "mps", "cpu", "shapes", "user"],
)
def test_out_of_memory_errors_are_recognised(error: Exception, is_memory: bool) -> None:
    assert is_exhausted(error) == is_memory
    later = RuntimeError("the recording failed")
    later.__context__ = error
    assert is_exhausted(later) == is_memory


@pytest.mark.parametrize("message", ["CUDA error: CUBLAS_STATUS_ALLOC_FAILED", "CUDA error: out of memory"])
def test_any_out_of_memory_error_halves_the_batch(causal: CausalModel, message: str) -> None:
    expected = {(one.job.key, one.label): one.attempts for one in writer(causal).write(jobs(6))}
    said: list[str] = []
    failing = writer(causal, say=said.append)
    num_read = 0

    def fail(module: Any, positional: Any) -> None:
        nonlocal num_read
        num_read += 1
        if num_read == 9:
            raise RuntimeError(message)

    hook = causal.model.base_model.register_forward_pre_hook(fail)
    try:
        found = {(one.job.key, one.label): one.attempts for one in failing.write(jobs(6))}
    finally:
        hook.remove()
    assert said == ["out of memory: continuing with 24 sequences at a time"]
    assert found == expected


def test_much_longer_inputs_shrink_the_batch_before_memory_is_exhausted(
    causal: CausalModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Running texts end first; the longer input is planned for before its prompts are read."""
    work = jobs(6)
    long = " ".join([work[0].key] * 12)
    work.insert(3, Job(key=long, prompts=prompts(long), unwanted=frozenset({long})))
    expected = {(one.job.key, one.label): one.attempts for one in writer(causal).write(work)}
    said: list[str] = []
    limited = writer(causal, sequences=30, say=said.append)
    first, longest = (
        max(len(causal.tokenizer(text)["input_ids"]) for text in prompts(key).values()) + LONGEST
        for key in (work[0].key, long)
    )
    assert longest > writing.SPARE_LENGTH * first
    free = int(30.5 * limited._network.bytes_per_sequence(int(writing.SPARE_LENGTH * first)))
    monkeypatch.setattr(writing, "free_bytes", lambda device: int(free / writing.USED_SHARE))
    found = {(one.job.key, one.label): one.attempts for one in limited.write(work)}
    assert found == expected
    fitting = free // limited._network.bytes_per_sequence(int(writing.SPARE_LENGTH * longest))
    assert said == [f"free memory holds {fitting} sequences at a time, not 30"]


def test_the_plan_and_the_engine_count_the_same_bytes_for_a_sequence(tmp_path: Path) -> None:
    random_model("GPT-2", tmp_path)
    named = LanguageModel(model=str(tmp_path), dtype="bf16")
    sampling = Sampling(decay=100.0, top_k=5, top_p=0.9, max_new_tokens=LONGEST)
    task = WritingTask(COUNTERLABELS, sampling, Amounts(samples=2, tries=3), seed=0)
    work = WritingCost(named, task, 10, tuple(COUNTERLABELS)).expected().work
    engine = Writer(named.load(Runtime(device="cpu")), task, sequences=3)._network
    length = int(writing.SPARE_LENGTH * (PROMPT_TOKENS + LONGEST))
    assert work is not None
    assert work.kept == Runtime().num_sequences("cuda") * engine.bytes_per_sequence(length)
