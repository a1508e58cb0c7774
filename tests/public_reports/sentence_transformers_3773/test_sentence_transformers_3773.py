"""huggingface/sentence-transformers #3773: a checkpoint trains in the dtype it is stored in.

So it is since transformers 5, and in half precision small updates round away. Here every model is loaded in
fp32 unless the file gives another `dtype`: what trains, what is compared and what is saved. A base that is
stored in fp32 keeps its identity.
"""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hub_cache import SENTENCES, HubCache, tiny_bert, tiny_gpt2
from small_models import random_t5
from transformers import AutoModel, AutoModelForCausalLM, AutoModelForMaskedLM, AutoModelForSeq2SeqLM

from synthbench.base.errors import UserError
from synthbench.base.runtime import Runtime
from synthbench.config.experiment import Candidate, RunConfig, Variant
from synthbench.config.permissions import what_is_rounded
from synthbench.data.dataset import SyntheticDataset
from synthbench.data.records import RecordKind, ScoredPair
from synthbench.engine.progress import PlainProgress
from synthbench.engine.stage import Stage
from synthbench.generation.language_model import LanguageModel
from synthbench.generation.masked_model import MaskedLanguageModel
from synthbench.generation.seq2seq import Seq2SeqLanguageModel
from synthbench.models.artifact import load
from synthbench.models.building import (
    build_cross_encoder,
    build_encoder,
    build_language_model,
    build_with_hidden_layer,
)
from synthbench.models.checks import default_dtype
from synthbench.models.headers import tensors
from synthbench.models.pretrained import Pretrained
from synthbench.plugins.model_contracts import Trainer, TrainingContext
from synthbench.stages.training import Train
from synthbench.training.bi_encoder import BiEncoder
from synthbench.training.cross_encoder import CrossEncoder
from synthbench.training.library_losses import LibraryLoss
from synthbench.training.simcse import SimCSE
from synthbench.training.untrained import Untrained

HALVES = {"bf16": torch.bfloat16, "fp16": torch.float16}
COMMIT = "a" * 40
Saved = Callable[..., Path]


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Saved:
    """Give a checkpoint of numbers that fp16 and bf16 hold both, stored in the dtype that is asked for."""
    root = tmp_path_factory.mktemp("stored")
    kinds: dict[str, Any] = {
        "bert": (tiny_bert, AutoModelForMaskedLM),
        "gpt2": (tiny_gpt2, AutoModelForCausalLM),
        "t5": (random_t5, AutoModelForSeq2SeqLM),
    }

    def stored(dtype: str, kind: str = "bert") -> Path:
        folder = root / f"{kind}-{dtype}"
        if not folder.is_dir():
            build, architecture = kinds[kind]
            folder.mkdir()
            build(folder)
            model = architecture.from_pretrained(folder, dtype=torch.float32)
            model.to(torch.bfloat16).to(torch.float16).to(HALVES.get(dtype, torch.float32))
            model.save_pretrained(folder)
        return folder

    return stored


def dtypes(model: torch.nn.Module) -> set[torch.dtype]:
    found = (*model.parameters(), *model.buffers())
    return {each.dtype for each in found if each.is_floating_point()}


BUILDERS: dict[str, Callable[[Pretrained], torch.nn.Module]] = {
    "encoder": lambda base: build_encoder(base, 0, "cpu"),
    "cross-encoder": lambda base: build_cross_encoder(base, 0, "cpu"),
    "hidden layer": lambda base: build_with_hidden_layer(base, 4, 0, "cpu"),
    "masked head": lambda base: build_language_model(base, 0),
}


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("build", BUILDERS.values(), ids=BUILDERS)
def test_every_builder_loads_fp32(
    saved: Saved, build: Callable[[Pretrained], torch.nn.Module], dtype: str
) -> None:
    built = build(Pretrained(model=str(saved(dtype))))
    assert dtypes(built) == {torch.float32}
    full = build(Pretrained(model=str(saved("fp32")))).state_dict()
    assert all(torch.equal(full[name], tensor) for name, tensor in built.state_dict().items())


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("build", BUILDERS.values(), ids=BUILDERS)
def test_the_file_may_ask_for_another_dtype(
    saved: Saved, build: Callable[[Pretrained], torch.nn.Module], dtype: Any
) -> None:
    assert dtypes(build(Pretrained(model=str(saved("fp32")), dtype=dtype))) == {HALVES[dtype]}


@pytest.mark.parametrize("dtype", HALVES)
def test_language_models_are_loaded_in_fp32(saved: Saved, dtype: str) -> None:
    runtime = Runtime(device="cpu")
    causal = LanguageModel(model=str(saved(dtype, "gpt2"))).load(runtime)
    masked = MaskedLanguageModel(model=str(saved(dtype))).load(runtime)
    seq2seq = Seq2SeqLanguageModel(model=str(saved(dtype, "t5"))).load(runtime)
    for each in (causal, masked, seq2seq):
        assert dtypes(each.model) == {torch.float32}


@pytest.fixture(params=["static vectors", "layers behind the pooling"])
def of_modules(request: pytest.FixtureRequest, saved: Saved, tmp_path: Path) -> Path:
    """Write a model of sentence-transformers whose own modules are stored in half precision."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.base.modules import Dense, Transformer
    from sentence_transformers.sentence_transformer.modules import Pooling, StaticEmbedding
    from transformers import AutoTokenizer

    folder = str(saved("fp16"))
    modules: list[Any]
    if request.param == "static vectors":
        tokenizer: Any = AutoTokenizer.from_pretrained(folder)
        modules = [StaticEmbedding(tokenizer.backend_tokenizer, embedding_weights=torch.randn(200, 8))]
    else:
        modules = [Transformer(folder), Pooling(32, "mean"), Dense(32, 8)]
    SentenceTransformer(modules=modules, device="cpu").half().save(str(tmp_path), create_model_card=False)
    return tmp_path


def test_modules_beside_the_transformer_are_fp32_too(of_modules: Path) -> None:
    base = Pretrained(model=str(of_modules))
    assert dtypes(build_encoder(base, 0, "cpu")) == {torch.float32}
    assert default_dtype(base) == "fp16"


@pytest.mark.parametrize("dtype", HALVES)
def test_an_untrained_model_encodes_in_fp32(saved: Saved, dtype: str, tmp_path: Path) -> None:
    vectors = []
    for stored in (dtype, "fp32"):
        output = tmp_path / stored
        Untrained(base=Pretrained(model=str(saved(stored)))).train([], _context(output))
        encoder: Any = load(output, Runtime(device="cpu"))
        vectors.append(encoder.encode(SENTENCES[:8]))
    np.testing.assert_array_equal(*vectors)


def _context(folder: Path) -> TrainingContext:
    for name in ("", "checkpoints"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    runtime = Runtime(device="cpu", threads=1)
    return TrainingContext(0, folder / "checkpoints", folder, runtime, PlainProgress())


def _pairs() -> SyntheticDataset:
    pairs = zip(SENTENCES[:32], SENTENCES[100:132], strict=True)
    records = [ScoredPair(sentence1=a, sentence2=b, score=n % 3 / 2) for n, (a, b) in enumerate(pairs)]
    return SyntheticDataset.create(RecordKind.SCORED_PAIR, records)


def _trained(trainer: Trainer, folder: Path) -> Path:
    trainer.train([_pairs()], _context(folder))
    return folder / "model"


TRAINERS: dict[str, Callable[..., Trainer]] = {
    "bi-encoder": BiEncoder,
    "cross-encoder": CrossEncoder,
    "simcse": lambda **given: SimCSE(learns_from="sentence", mlm_weight=0.1, **given),
    "guided": lambda **given: BiEncoder(
        loss=LibraryLoss(name="gist", guide=Pretrained(model=given["base"].model)), **given
    ),
}


@pytest.mark.parametrize("make", TRAINERS.values(), ids=TRAINERS)
def test_training_on_a_half_precision_base_equals_training_on_its_fp32_copy(
    saved: Saved, make: Callable[..., Trainer], tmp_path: Path
) -> None:
    folders = [
        _trained(make(base=Pretrained(model=str(saved(stored))), max_steps=2), tmp_path / stored)
        for stored in ("bf16", "fp32")
    ]
    of_half, of_full = (_weights(folder) for folder in folders)
    assert all(np.array_equal(of_half[name], array) for name, array in of_full.items())
    for folder in folders:
        assert {each.dtype for each in tensors(folder).values() if each.is_floating} == {"fp32"}
        assert json.loads((folder / "config.json").read_text())["dtype"] == "float32"


def _weights(folder: Path) -> dict[str, Any]:
    from safetensors.numpy import load_file

    return {
        f"{file.name}/{n}": a for file in folder.rglob("*.safetensors") for n, a in load_file(file).items()
    }


def test_small_steps_change_all_weights_unless_the_file_requests_half_precision(
    saved: Saved, tmp_path: Path
) -> None:
    """At 2e-5 bf16 rounds most updates of weights about 0.02 away; the artifact says what it is."""

    def moved(dtype: Any) -> float:
        base = Pretrained(model=str(saved("bf16")), dtype=dtype)
        folder = _trained(BiEncoder(base=base, max_steps=10, batch_size=8), tmp_path / dtype)
        name = "encoder.layer.0.attention.self.query.weight"
        before, after = (
            AutoModel.from_pretrained(path, dtype=torch.float32).state_dict()[name]
            for path in (saved("bf16"), folder)
        )
        return float((before != after).float().mean())

    assert moved("fp32") > 0.99
    assert moved("bf16") < 0.5
    description = json.loads((tmp_path / "bf16" / "model.json").read_text())
    assert description["dtype"] == "bf16"
    loaded: Any = load(tmp_path / "bf16", Runtime(device="cpu"))
    assert dtypes(loaded.model) == {torch.bfloat16}


def _identity(base: Pretrained) -> str:
    return Stage(Train("bi-encoder", BiEncoder(base=base), 0)).identity


def test_only_a_base_formerly_computed_in_another_dtype_has_a_changed_identity(
    saved: Saved, tmp_path: Path
) -> None:
    full = Pretrained(model=str(saved("fp32")))
    config = Train("bi-encoder", BiEncoder(base=full), 0).config()
    assert config == {**BiEncoder(base=full).model_dump(mode="json"), "seed": 0}
    half = Pretrained(model=str(saved("bf16")))
    assert Train("bi-encoder", BiEncoder(base=half), 0).config()["stored_in"] == {half.model: "bf16"}
    # Its vectors were made fp32 as they were read.
    assert not default_dtype(half.model_copy(update={"static": True}))
    assert len({_identity(half), _identity(half.model_copy(update={"dtype": "bf16"}))}) == 2
    guided = LibraryLoss(name="gist", guide=half)
    assert Train("bi-encoder", BiEncoder(base=full, loss=guided), 0).config()["stored_in"] == {
        half.model: "bf16"
    }
    # transformers obeys the configuration before the weights.
    shutil.copytree(saved("bf16"), tmp_path / "copy")
    settings = json.loads((tmp_path / "copy/config.json").read_text())
    (tmp_path / "copy/config.json").write_text(json.dumps({**settings, "dtype": "float32"}))
    assert not default_dtype(Pretrained(model=str(tmp_path / "copy")))
    del settings["dtype"]
    (tmp_path / "copy/config.json").write_text(json.dumps(settings))
    assert default_dtype(Pretrained(model=str(tmp_path / "copy"))) == "bf16"


def test_a_hub_models_dtype_is_read_from_its_cached_description(hub_cache: HubCache, saved: Saved) -> None:
    def copied(folder: Path) -> None:
        shutil.copytree(saved("bf16"), folder, dirs_exist_ok=True)

    unknown = Pretrained(model="some/bert", revision=COMMIT)
    assert not default_dtype(unknown)
    hub_cache.add_model("some/bert", COMMIT, copied)
    assert default_dtype(unknown) == default_dtype(Pretrained(model="some/bert")) == "bf16"


def _variants(base: Pretrained) -> list[Variant]:
    config = RunConfig((), "bi-encoder", BiEncoder(base=base), None, (), (), {})
    return [Variant("mine", {}, (Candidate({}, config),), {})]


def test_the_table_names_dtypes_other_than_fp32(saved: Saved) -> None:
    base = Pretrained(model=str(saved("bf16")), dtype="bf16")
    assert list(what_is_rounded(_variants(base))) == [f"{base.model} has its weights in bf16: mine."]
    assert not list(what_is_rounded(_variants(base.model_copy(update={"dtype": "fp32"}))))


def test_static_vectors_and_word_vectors_have_no_dtype(saved: Saved) -> None:
    with pytest.raises(ValueError, match="dtype"):
        Pretrained(model=str(saved("fp32")), static=True, dtype="bf16")
    with pytest.raises(UserError, match="dtype"):
        Pretrained(model="vectors.txt", dtype="bf16").vectors()
