from pathlib import Path

import pytest
import torch
from contrastive_processes import BATCH
from sentence_transformers import SentenceTransformer
from toy_training import context_in, largest_difference, toy_pairs
from wording import refused

from synthbench.data.records import RecordKind
from synthbench.models.building import build_language_model
from synthbench.models.pretrained import Pretrained
from synthbench.training.layers import MASKED_SHARE, WordHead
from synthbench.training.objectives import contrastive
from synthbench.training.simcse import SimCSE


def model_with_head(bert: Path, folder: Path) -> SentenceTransformer:
    """A model without dropout that ends in a head for words."""
    settings = SimCSE.model_validate({"base": {"model": str(bert)}, "mlm_weight": 1.0})
    return settings.build(context_in(folder)).eval()


def test_the_masking_head_reads_the_encoders_own_transformer(bert: Path, tmp_path: Path) -> None:
    model = model_with_head(bert, tmp_path)
    head = model[-1]
    assert isinstance(head, WordHead)
    assert head.language_model.base_model is model[0].auto_model
    words = model[0].auto_model.get_input_embeddings().weight
    assert head.language_model.get_output_embeddings().weight is words


def test_the_masking_loss_is_the_mean_over_the_masked_tokens_of_all_columns(
    bert: Path, tmp_path: Path
) -> None:
    model = model_with_head(bert, tmp_path)
    texts = [text for column in BATCH for text in column]
    losses = {}
    for weight in (0.0, 0.3):
        loss = contrastive(RecordKind.TRIPLET, 0.05, mlm_weight=weight).loss(model)
        torch.manual_seed(5)
        losses[weight] = loss([model.preprocess(column) for column in BATCH], None).item()
    torch.manual_seed(5)
    columns = [model[-1].masked(model.preprocess(column)) for column in BATCH]
    logits = [model[-1].language_model(**inputs).logits for inputs, _ in columns]
    guesses = [
        -torch.log_softmax(logit, -1)[row, place, token].item()
        for logit, (_, targets) in zip(logits, columns, strict=True)
        for row, place in (targets != -100).nonzero().tolist()
        for token in [targets[row, place]]
    ]
    assert 0 < len(guesses) < sum(len(text.split()) for text in texts)
    assert losses[0.3] - losses[0.0] == pytest.approx(0.3 * sum(guesses) / len(guesses), abs=1e-5)


def test_about_15_percent_of_words_are_masked_and_no_special_token(bert: Path, tmp_path: Path) -> None:
    model = model_with_head(bert, tmp_path)
    features = model.preprocess(["fish0 ship1 star2 bird3", "song4"] * 500)
    special = features["input_ids"] < 5
    torch.manual_seed(0)
    inputs, targets = model[-1].masked(features)
    hidden = targets != -100
    assert not (hidden & special).any()
    assert hidden.sum().item() / (~special).sum().item() == pytest.approx(MASKED_SHARE, abs=0.02)
    assert torch.equal(targets[hidden], features["input_ids"][hidden])
    assert torch.equal(inputs["input_ids"][~hidden], features["input_ids"][~hidden])


@pytest.mark.parametrize("chunk_size", [1, 3])
def test_chunks_give_the_same_gradients(bert: Path, tmp_path: Path, chunk_size: int) -> None:
    found = []
    for chunk in (None, chunk_size):
        model = model_with_head(bert, tmp_path)
        loss = contrastive(RecordKind.TRIPLET, 0.05, chunk_size=chunk, mlm_weight=0.5).loss(model)
        torch.manual_seed(5)
        loss([model.preprocess(column) for column in BATCH], None).backward()
        found.append({name: one.grad for name, one in model.named_parameters() if one.grad is not None})
    whole, chunked = found
    assert whole.keys() == chunked.keys()
    assert any("language_model" in name for name in whole)
    assert max(float((whole[name] - chunked[name]).abs().max()) for name in whole) < 1e-5


def test_the_masking_head_exists_only_in_training_and_changes_the_weights(bert: Path, tmp_path: Path) -> None:
    fields = {"base": {"model": str(bert)}, "learns_from": "pair", "max_steps": 3, "batch_size": 8}
    for name, weight in {"without": 0.0, "with": 0.5}.items():
        settings = SimCSE.model_validate({**fields, "learning_rate": 1e-3, "mlm_weight": weight})
        settings.train([toy_pairs(60)], context_in(tmp_path / name))
    assert largest_difference(tmp_path / "without", tmp_path / "with") > 1e-4


def test_a_base_without_a_mask_token_is_refused(bert: Path, tmp_path: Path) -> None:
    model = SentenceTransformer(modules=list(model_with_head(bert, tmp_path))[:-1], device="cpu")
    model.tokenizer.mask_token = None
    with refused("mlm_weight"):
        WordHead(build_language_model(Pretrained(model=str(bert)), 0), model)
