"""A masked language model's candidates for blanks."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from hub_cache import tiny_bert, tiny_roberta
from wording import refused

from synthbench.api import Blank, MaskedLanguageModel, MaskedModel, Runtime, UserError

RUNTIME = Runtime(device="cpu", threads=1)
TEXT = "The girl plays the piano."
GIRL = Blank(TEXT, 4, 8)


@pytest.fixture(scope="module", params=[tiny_bert, tiny_roberta], ids=["BERT", "RoBERTa"])
def model(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> MaskedModel:
    """A random model with either kind of vocabulary."""
    folder = tmp_path_factory.mktemp("masked")
    request.param(folder)
    return MaskedLanguageModel(model=str(folder)).load(RUNTIME)


def test_guesses_are_the_likeliest_whole_words_with_their_probabilities(model: MaskedModel) -> None:
    (found,) = model.guesses([GIRL], 4)

    text = f"The {model.tokenizer.mask_token} plays the piano."
    tokens = model.tokenizer(text, return_tensors="pt")
    place = int((tokens["input_ids"][0] == model.tokenizer.mask_token_id).nonzero())
    with torch.inference_mode():
        probabilities = model.model(**tokens).logits[0, place].double().softmax(0)

    def probability(word: str) -> float:
        *_, token = model.tokenizer(f"a {word}", add_special_tokens=False)["input_ids"]
        return float(probabilities[token])

    words = [word for word, _ in found]
    assert all(word.isalpha() and "girl" not in word for word in words)
    assert len(set(words)) == 4
    expected = [probability(word) for word in words]
    assert expected == sorted(expected, reverse=True)
    others = (word for word in ("paints", "sees", "holds") if word not in words)
    assert min(expected) >= max(map(probability, others), default=0.0)
    shares = [each / sum(expected) for each in expected]
    assert [share for _, share in found] == pytest.approx(shares, rel=1e-4)


def test_a_masked_word_is_guessed_in_its_own_position_beside_other_masks(model: MaskedModel) -> None:
    mask = str(model.tokenizer.mask_token)
    text = f"{mask} girl plays {mask}"
    start = text.index("girl")

    (found,) = model.guesses([Blank(text, start, start + 4)], 3)

    assert len(found) == 3


def test_a_batch_gives_the_same_results_as_each_blank_alone(model: MaskedModel) -> None:
    blanks = [GIRL, Blank("a dog", 2, 5), Blank(TEXT, 9, 14)] * 12

    together = list(model.guesses(blanks, 3))

    for blank, found in zip(blanks[:3], together, strict=False):
        (alone,) = model.guesses([blank], 3)
        assert [word for word, _ in alone] == [word for word, _ in found]
        assert [share for _, share in alone] == pytest.approx([share for _, share in found], rel=1e-4)


def test_a_batch_is_copied_from_the_device_in_one_transfer(
    model: MaskedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    copied: list[tuple[int, ...]] = []
    plain = torch.Tensor.cpu

    def cpu(tensor: torch.Tensor) -> torch.Tensor:
        copied.append(tuple(tensor.shape))
        return plain(tensor)

    monkeypatch.setattr(torch.Tensor, "cpu", cpu)
    assert all(model.guesses([GIRL] * 40, 3))
    assert [rows for rows, _ in copied] == [32, 8]


def test_blanks_beyond_the_models_limit_get_no_guesses(model: MaskedModel) -> None:
    text = "the dog sees the dog " * 30

    assert list(model.guesses([Blank(text, len(text) - 4, len(text) - 1)], 3)) == [[]]


def test_in_the_sandbox_articles_are_guessed_for_an_article() -> None:
    sandbox = MaskedLanguageModel(model="sandbox/encoder").load(RUNTIME)

    (((word, _), *_),) = sandbox.guesses([Blank(TEXT, 15, 18)], 5)

    assert word in ("a", "some")


def headless(folder: Path) -> None:
    from transformers import BertModel

    tiny_bert(folder)
    BertModel.from_pretrained(folder).save_pretrained(folder)


@pytest.mark.parametrize(
    ("build", "message"),
    [(headless, "its weights lack 'cls.predictions.bias'; is it a masked language model?")],
)
def test_a_model_without_a_masked_language_head_is_a_user_error(
    build: Callable[[Path], None], message: str, tmp_path: Path
) -> None:
    build(tmp_path)

    with pytest.raises(UserError, match=message):
        MaskedLanguageModel(model=str(tmp_path)).load(RUNTIME)


def test_a_causal_model_is_a_user_error() -> None:
    with refused("sandbox/lm"):
        MaskedLanguageModel(model="sandbox/lm").load(RUNTIME)
