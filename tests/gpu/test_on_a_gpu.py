"""What holds on a GPU; `make gpu` runs these where there is one."""

from collections.abc import Sequence
from pathlib import Path

import pytest
import torch
from small_models import ARCHITECTURES, COUNTERLABELS, ScriptedEndings, jobs, random_model

from synthbench.base.runtime import Runtime
from synthbench.cli.gpu_diagnosis import save_random, unrelated_triplets
from synthbench.engine.progress import QuietProgress
from synthbench.generation.jobs import Amounts, WritingTask
from synthbench.generation.language_model import CausalModel, LanguageModel
from synthbench.generation.sampling import Sampling
from synthbench.generation.writer import Writer
from synthbench.plugins.model_contracts import TrainingContext
from synthbench.training.simcse import SimCSE

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
LONGEST = 12


def written(causal: CausalModel, sequences: int, said: list[str]) -> dict[tuple[str, str], Sequence[object]]:
    sampling = Sampling(decay=100.0, top_k=5, top_p=0.9, max_new_tokens=LONGEST)
    task = WritingTask(COUNTERLABELS, sampling, Amounts(samples=2, tries=3), seed=0)
    writer = Writer(causal, task, sequences=sequences, endings=ScriptedEndings(LONGEST), say=said.append)
    return {(one.job.key, one.label): one.attempts for one in writer.write(jobs(24))}


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_a_gpu_writes_the_texts_of_a_cpu_in_fp32(architecture: str, tmp_path: Path) -> None:
    random_model(architecture, tmp_path)
    said: list[str] = []
    on_cpu = written(LanguageModel(model=str(tmp_path)).load(Runtime(device="cpu")), 48, said)
    on_gpu = LanguageModel(model=str(tmp_path)).load(Runtime(device="cuda"))
    assert written(on_gpu, 48, said) == on_cpu
    assert written(on_gpu, 20, said) == on_cpu
    assert said == [], "steps were not recorded as CUDA graphs"


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
    weights = []
    for name in ("one", "other"):
        folder = tmp_path / name
        context = TrainingContext(
            0, folder / "steps", folder / "model", Runtime(device="cuda"), QuietProgress()
        )
        settings.train([data], context)
        weights.append([file.read_bytes() for file in sorted((folder / "model").rglob("*.safetensors"))])
    assert weights[0] == weights[1]
    assert weights[0]
