"""A checkpoint's configuration decides before loading: it is refused in one line, or adapted."""

import json
import shutil
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from hub_cache import SENTENCES, tiny_gpt2
from safetensors.torch import load_file, save_file
from transformers import AutoModelForMaskedLM, AutoModelForSequenceClassification, AutoTokenizer
from wording import refused

from synthbench.models.building import (
    build_cross_encoder,
    build_encoder,
    build_language_model,
    build_with_hidden_layer,
)
from synthbench.models.checks import check_files, check_pair_reader
from synthbench.models.facts import CheckpointFacts, facts_in
from synthbench.models.headers import tensors
from synthbench.models.pretrained import Pretrained

LONG = " ".join(SENTENCES[:40])
Edit = Callable[[Path], None]


@pytest.fixture
def copied(bert: Path, roberta: Path, tmp_path: Path) -> Callable[..., Path]:
    """Copy a checkpoint, then change it."""

    def copy(edit: Edit, kind: str = "bert") -> Path:
        folder = tmp_path / f"changed-{kind}"
        shutil.copytree({"bert": bert, "roberta": roberta}[kind], folder)
        edit(folder)
        return folder

    return copy


def configured(**settings: Any) -> Edit:
    def edit(folder: Path) -> None:
        file = folder / "config.json"
        file.write_text(json.dumps({**json.loads(file.read_text()), **settings}))

    return edit


def without_tensors(part: str) -> Edit:
    def edit(folder: Path) -> None:
        file = folder / "model.safetensors"
        kept = {name: tensor for name, tensor in load_file(file).items() if part not in name}
        save_file(kept, file, metadata={"format": "pt"})

    return edit


def with_tokens(*words: str, special: bool = False, pad: str = "") -> Edit:
    def edit(folder: Path) -> None:
        tokenizer = AutoTokenizer.from_pretrained(folder)
        tokenizer.add_tokens(list(words), special_tokens=special)
        if pad:
            tokenizer.add_special_tokens({"pad_token": pad})
        tokenizer.save_pretrained(folder)

    return edit


def without_limit(folder: Path) -> None:
    tokenizer = AutoTokenizer.from_pretrained(folder)
    tokenizer.model_max_length = 10**30
    tokenizer.save_pretrained(folder)


def with_labels(number: int) -> Edit:
    def edit(folder: Path) -> None:
        model = AutoModelForSequenceClassification.from_pretrained(folder, num_labels=number)
        model.save_pretrained(folder)

    return edit


def facts(folder: Path) -> CheckpointFacts:
    found = facts_in(folder)
    assert found is not None
    return found


@pytest.mark.parametrize("kind", ["bert", "roberta"])
def test_long_texts_have_positions_even_if_the_tokenizer_names_no_limit(
    copied: Callable[..., Path], kind: str
) -> None:
    folder = copied(without_limit, kind)
    base = Pretrained(model=str(folder))
    assert facts(folder).positions == 64
    built = build_encoder(base, 0, "cpu")
    assert built.max_seq_length == 64
    built.encode([LONG])
    build_cross_encoder(base, 0, "cpu").predict([(LONG, LONG)])
    build_with_hidden_layer(base, 4, 0, "cpu").predict([(LONG, LONG)])


def test_texts_are_truncated_to_the_number_of_positions(roberta: Path) -> None:
    base = Pretrained(model=str(roberta), max_length=500)
    build_encoder(base, 0, "cpu").encode([LONG])
    assert build_cross_encoder(base, 0, "cpu").max_seq_length == 64


def test_the_number_of_positions_is_known_without_reading_headers(roberta: Path) -> None:
    config = json.loads((roberta / "config.json").read_text())
    assert CheckpointFacts(roberta / "nowhere", config).positions == 64
    assert CheckpointFacts(roberta / "nowhere", {**config, "model_type": "modernbert"}).positions is None


def test_a_classification_head_is_no_base_of_a_cross_encoder(copied: Callable[..., Path]) -> None:
    folder = copied(with_labels(3))
    base = Pretrained(model=str(folder))
    with refused("3 outputs", "train.hidden_size"):
        check_pair_reader(base)
    with refused("3 outputs"):
        build_cross_encoder(base, 0, "cpu")
    build_with_hidden_layer(base, 4, 0, "cpu")
    build_encoder(base, 0, "cpu")


def test_a_checkpoint_scores_pairs_with_its_head_only_if_it_has_one_output(
    copied: Callable[..., Path], bert: Path
) -> None:
    folder = copied(with_labels(1))
    assert facts(folder).outputs == 1
    check_pair_reader(Pretrained(model=str(folder)), needs_head=True)
    check_pair_reader(Pretrained(model=str(bert)))
    with refused("no head that scores pairs"):
        check_pair_reader(Pretrained(model=str(bert)), needs_head=True)


def test_a_model_without_padding_can_not_read_pairs(tmp_path: Path) -> None:
    tiny_gpt2(tmp_path)
    with refused("pad_token_id"):
        check_pair_reader(Pretrained(model=str(tmp_path)))


@pytest.mark.parametrize(
    ("edit", "facts_of_message"),
    [
        (with_tokens("snowplough"), ("115 tokens", "114")),
        (configured(num_hidden_layers=5), ("encoder.layer.3", "config.json")),
        (without_tensors("layer.1.attention.self.query.weight"), ("layer.1.attention.self.query.weight",)),
        (without_tensors("encoder.layer.2"), ("encoder.layer.2",)),
        (configured(quantization_config={"quant_method": "gptq", "bits": 4}), ("quantised", "gptq")),
        (lambda folder: (folder / "config.json").write_text("[]"), ("config.json", "JSON object")),
        (lambda folder: (folder / "tokenizer.json").unlink(), ("tokenizer",)),
    ],
    ids=["tokens", "layers", "a tensor", "the last layer", "quantised", "no configuration", "no tokenizer"],
)
def test_an_unusable_checkpoint_is_refused_both_before_and_during_loading(
    copied: Callable[..., Path], edit: Edit, facts_of_message: tuple[str, ...]
) -> None:
    base = Pretrained(model=str(copied(edit)))
    with refused(*facts_of_message):
        check_files(base)
    with refused(*facts_of_message[:1]):
        build_encoder(base, 0, "cpu")


@pytest.mark.parametrize("kind", ["ByT5", "CANINE"])
def test_a_tokenizer_of_characters_needs_no_vocabulary(tmp_path: Path, kind: str) -> None:
    library: Any = transformers
    if kind == "ByT5":
        library.ByT5Tokenizer().save_pretrained(tmp_path)
        t5 = library.T5Config(vocab_size=384, d_model=32, d_kv=8, num_heads=4, num_layers=1, d_ff=64)
        library.T5EncoderModel(t5).save_pretrained(tmp_path)
    else:
        library.CanineTokenizer().save_pretrained(tmp_path)
        canine = library.CanineConfig(hidden_size=32, num_hidden_layers=1, num_attention_heads=2)
        library.CanineModel(canine).save_pretrained(tmp_path)
    base = Pretrained(model=str(tmp_path))
    check_files(base)
    assert build_encoder(base, 0, "cpu").encode("a man").shape == (32,)


def test_unused_layers_may_be_missing(copied: Callable[..., Path]) -> None:
    folder = copied(without_tensors("encoder.layer.2"))
    check_files(Pretrained(model=str(folder), num_layers=2))
    check_files(Pretrained(model=str(folder), static=True))


def test_a_padding_token_without_a_vector_is_refused(copied: Callable[..., Path]) -> None:
    with refused("115 tokens", "114"):
        build_encoder(Pretrained(model=str(copied(with_tokens(pad="<pad>")))), 0, "cpu")


def test_special_tokens_that_never_occur_need_no_vector(copied: Callable[..., Path]) -> None:
    base = Pretrained(model=str(copied(with_tokens("<entity>", special=True))))
    check_files(base)
    build_encoder(base, 0, "cpu").encode(SENTENCES[:2])


def test_a_decoder_without_a_padding_token_is_refused(tmp_path: Path) -> None:
    tiny_gpt2(tmp_path)
    file = tmp_path / "tokenizer_config.json"
    settings = json.loads(file.read_text())
    nothing = {key: value for key, value in settings.items() if not key.endswith("_token")}
    file.write_text(json.dumps({**nothing, "tokenizer_class": "PreTrainedTokenizerFast"}))
    with refused("padding token", "tokenizer_config.json"):
        build_encoder(Pretrained(model=str(tmp_path)), 0, "cpu")


@pytest.mark.parametrize(
    "build",
    [
        lambda base: build_encoder(base, 0, "cpu"),
        lambda base: build_cross_encoder(base, 0, "cpu"),
        lambda base: build_language_model(base, 0),
    ],
    ids=["encoder", "cross-encoder", "masked head"],
)
def test_weights_whose_shapes_differ_from_the_configuration_are_refused(
    copied: Callable[..., Path], build: Callable[[Pretrained], Any]
) -> None:
    with refused("shapes", "config.json"):
        build(Pretrained(model=str(copied(configured(intermediate_size=48)))))


@pytest.mark.parametrize(
    "header", [b"", struct.pack("<Q", 2**60), struct.pack("<Q", 5) + b"[1,2]", struct.pack("<Q", 9) + b"{"]
)
def test_an_invalid_header_is_left_to_the_loader(tmp_path: Path, header: bytes) -> None:
    (tmp_path / "model.safetensors").write_bytes(header)
    assert tensors(tmp_path) == {}


def test_the_header_alone_shows_half_precision(bert: Path, tmp_path: Path) -> None:
    AutoModelForMaskedLM.from_pretrained(bert, dtype=torch.bfloat16).save_pretrained(tmp_path)
    assert {each.dtype for each in tensors(tmp_path).values()} == {"bf16"}
    assert tensors(tmp_path)["bert.embeddings.position_embeddings.weight"].shape == (64, 32)


def test_reading_metadata_imports_nothing_heavy() -> None:
    code = "import sys, synthbench.models.checks; print({'torch', 'transformers'} & sys.modules.keys())"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert found.stdout == "set()\n"
