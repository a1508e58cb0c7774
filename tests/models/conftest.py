from pathlib import Path

import pytest
from hub_cache import tiny_bert, tiny_roberta, tiny_sentence_transformer


@pytest.fixture(scope="session")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random three-layer BERT with tokenizer, as pretraining leaves it."""
    folder = tmp_path_factory.mktemp("bert")
    tiny_bert(folder)
    return folder


@pytest.fixture(scope="session")
def roberta(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random three-layer RoBERTa with tokenizer."""
    folder = tmp_path_factory.mktemp("roberta")
    tiny_roberta(folder)
    return folder


@pytest.fixture(scope="session")
def sentence_encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A mean-pooled, normalised encoder saved by sentence-transformers."""
    folder = tmp_path_factory.mktemp("sentence-encoder")
    tiny_sentence_transformer(folder)
    return folder
