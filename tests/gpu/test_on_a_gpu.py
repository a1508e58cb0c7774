"""What holds on a GPU; `make gpu` runs these where there is one."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hub_cache import tiny_bert
from small_models import ARCHITECTURES, COUNTERLABELS, ScriptedEndings, jobs, random_model

from synthbench.base.runtime import Runtime
from synthbench.cli.gpu_diagnosis import save_random, unrelated_triplets
from synthbench.data.dataset import SyntheticDataset
from synthbench.engine.progress import QuietProgress
from synthbench.generation.jobs import Amounts, WritingTask
from synthbench.generation.language_model import CausalModel, LanguageModel
from synthbench.generation.sampling import Sampling
from synthbench.generation.writer import Writer
from synthbench.models.pretrained import Pretrained
from synthbench.models.search_encoders import build_search_encoder, search_encoder
from synthbench.plugins.model_contracts import TrainingContext
from synthbench.training.bi_encoder import BiEncoder
from synthbench.training.simcse import SimCSE

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
LONGEST = 12


NEGATIVES = {"name": "multiple-negatives", "temperature": 1.0}
SEARCHING: dict[str, dict[str, Any]] = {
    "sparse": {**NEGATIVES, "sparsity": {"queries": 0.02, "passages": 0.01}},
    "late-interaction": NEGATIVES,
}


def written(causal: CausalModel, sequences: int, said: list[str]) -> dict[tuple[str, str], Sequence[object]]:
    sampling = Sampling(decay=100.0, top_k=5, top_p=0.9, max_new_tokens=LONGEST)
    task = WritingTask(COUNTERLABELS, sampling, Amounts(samples=2, tries=3), seed=0)
    writer = Writer(causal, task, sequences=sequences, endings=ScriptedEndings(LONGEST), say=said.append)
    return {(one.job.key, one.label): one.attempts for one in writer.write(jobs(24))}


def same_bytes(settings: SimCSE | BiEncoder, data: SyntheticDataset, folder: Path) -> bool:
    """Train twice on the GPU, and return whether all weights are equal."""
    weights = []
    for name in ("one", "other"):
        output = folder / name
        runtime = Runtime(device="cuda")
        settings.train(
            [data], TrainingContext(0, output / "steps", output / "model", runtime, QuietProgress())
        )
        weights.append([file.read_bytes() for file in sorted((output / "model").rglob("*.safetensors"))])
    assert weights[0]
    return weights[0] == weights[1]


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_a_gpu_writes_the_texts_of_a_cpu_in_fp32(architecture: str, tmp_path: Path) -> None:
    random_model(architecture, tmp_path)
    said: list[str] = []
    on_cpu = written(LanguageModel(model=str(tmp_path)).load(Runtime(device="cpu")), 48, said)
    on_gpu = LanguageModel(model=str(tmp_path)).load(Runtime(device="cuda"))
    assert written(on_gpu, 48, said) == on_cpu
    assert written(on_gpu, 20, said) == on_cpu
    assert said == [], "steps were not recorded as CUDA graphs"


@pytest.mark.parametrize("kind", SEARCHING)
def test_sparse_and_late_interaction_encoders_compare_texts_as_on_a_cpu(kind: str, tmp_path: Path) -> None:
    tiny_bert(tmp_path, weights=0.2)
    queries, passages = ["the cat", "a dog sleeps"], ["a cat sleeps", "the dog", "a dog and the cat", "mat"]
    base = Pretrained.model_validate({"model": str(tmp_path), "encoder": kind})
    found = [
        np.concatenate(
            list(search_encoder(build_search_encoder(base, 0, device)).similarities(queries, passages, 3)),
            axis=1,
        )
        for device in ("cpu", "cuda")
    ]
    assert found[1] == pytest.approx(found[0], abs=1e-4)
    assert found[0].std() > 0.01


@pytest.mark.parametrize("kind", SEARCHING)
def test_two_trainings_of_a_sparse_or_late_interaction_encoder_have_the_same_bytes(
    kind: str, tmp_path: Path
) -> None:
    tiny_bert(tmp_path / "base", weights=0.2)
    settings = BiEncoder.model_validate(
        {
            "base": {"model": str(tmp_path / "base"), "encoder": kind},
            "loss": {**SEARCHING[kind], "learns_from": "triplet"},
            "batch_size": 8,
            "max_steps": 10,
        }
    )
    assert same_bytes(settings, unrelated_triplets(80), tmp_path)


@pytest.mark.parametrize("precision", ["fp32", "tf32", "bf16", "fp16"])
def test_two_trainings_of_a_seed_have_the_same_bytes(precision: str, tmp_path: Path) -> None:
    save_random(
        "bert",
        tmp_path / "base",
        num_hidden_layers=6,
        hidden_size=384,
        num_attention_heads=6,
        intermediate_size=1536,
        vocab_size=30522,
    )
    data = unrelated_triplets(64 * 10)
    settings = SimCSE.model_validate(
        {"base": {"model": str(tmp_path / "base")}, "precision": precision, "batch_size": 64, "epochs": 1.0}
    )
    assert same_bytes(settings, data, tmp_path)
