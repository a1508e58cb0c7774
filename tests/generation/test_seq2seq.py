"""An encoder-decoder model writes a text for each key of each input, by top-k and top-p."""

import json
import shutil
from pathlib import Path

import pytest
import torch
from small_models import random_model, random_t5
from wording import refused

from synthbench.base.runtime import Runtime
from synthbench.generation.sampling import uniforms
from synthbench.generation.seq2seq import Seq2SeqLanguageModel, Seq2SeqModel

INPUTS = ("The Danube rises in the Black Forest.", "Honey keeps.", "A dog runs on the beach at noon.")
CPU = Runtime(device="cpu", threads=1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("t5")
    random_t5(made)
    return made


def model(folder: Path, **options: object) -> Seq2SeqModel:
    settings = {"model": str(folder), "max_new_tokens": 12, **options}
    return Seq2SeqLanguageModel.model_validate(settings).load(CPU)


def written(
    writer: Seq2SeqModel, inputs: tuple[str, ...] = INPUTS, number: int = 2, seed: int = 0
) -> list[list[str]]:
    keys = [[f"{text}|{index}" for index in range(number)] for text in inputs]
    return list(writer.texts(inputs, keys, seed))


def one_by_one(writer: Seq2SeqModel, text: str, key: str, seed: int) -> str:
    """Write a text token by token without a cache, sorting the whole vocabulary."""
    ids = writer.tokenizer(text, return_tensors="pt")["input_ids"]
    tokens = [0]
    top_k, top_p = writer.settings.top_k, writer.settings.top_p
    for number in uniforms(writer.settings.max_new_tokens, seed, key).tolist():
        with torch.inference_mode():
            logits = writer.model(input_ids=ids, decoder_input_ids=torch.tensor([tokens])).logits[0, -1]
        shares, order = logits.softmax(-1).double().sort(descending=True)
        shares, order = shares[: top_k or None], order[: top_k or None]
        shares = shares / shares.sum()
        needed = int((shares.cumsum(0) < top_p).sum()) + 1
        shares, order = shares[:needed] / shares[:needed].sum(), order[:needed]
        drawn = int((shares.cumsum(0) <= number).sum())
        tokens.append(int(order[min(drawn, len(order) - 1)]))
        if tokens[-1] == 0:
            break
    return str(writer.tokenizer.decode(tokens, skip_special_tokens=True)).strip()


@pytest.mark.parametrize(("top_k", "top_p"), [(25, 0.95), (3, 1.0), (0, 0.5), (0, 1.0), (1, 1.0)])
def test_texts_equal_plain_sampling_token_by_token(folder: Path, top_k: int, top_p: float) -> None:
    writer = model(folder, top_k=top_k, top_p=top_p)

    found = written(writer, seed=5)

    assert found == [
        [one_by_one(writer, text, f"{text}|{index}", 5) for index in range(2)] for text in INPUTS
    ]


def test_a_text_depends_on_its_input_key_and_seed_and_not_on_other_texts(folder: Path) -> None:
    writer = model(folder)
    together = written(writer, number=3)

    assert [written(writer, (text,), 3)[0] for text in INPUTS] == together
    assert [texts[:1] for texts in together] == written(writer, number=1)
    assert written(writer, number=3, seed=1) != together
    assert len({text for texts in together for text in texts}) > len(INPUTS)


def test_the_models_own_generation_settings_are_ignored(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    own = json.loads((folder / "generation_config.json").read_text())
    habits = {**own, "num_beams": 4, "repetition_penalty": 9.0, "min_new_tokens": 11, "top_k": 2}
    (tmp_path / "generation_config.json").write_text(json.dumps(habits))

    assert written(model(tmp_path)) == written(model(folder))


def test_longer_inputs_are_truncated(folder: Path) -> None:
    short = model(folder, max_length=4)
    assert written(short, (INPUTS[0],)) != written(model(folder), (INPUTS[0],))
    longer = (INPUTS[0] + " And on.",)
    keys = [["same"]]
    assert list(short.texts(longer, keys, 0)) == list(short.texts((INPUTS[0],), keys, 0))


def test_a_decoder_only_model_is_refused(tmp_path: Path) -> None:
    random_model("GPT-2", tmp_path)
    with refused(str(tmp_path)):
        model(tmp_path)


def test_work_counts_each_input_once_and_every_generated_text(folder: Path) -> None:
    settings = Seq2SeqLanguageModel(model=str(folder))
    none, one, two = (settings.work(10, 60, number, 14).operations or 0.0 for number in (0, 1, 2))
    assert 0 < none < one
    assert two - one == pytest.approx(one - none)
    assert Seq2SeqLanguageModel(model="org/unknown").work(10, 60, 1, 14).operations is None
