from pathlib import Path

import pytest
from toy_training import write_tiny_bert


@pytest.fixture(scope="session")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random two-layer BERT of 16 dimensions, saved as a checkpoint."""
    return write_tiny_bert(tmp_path_factory.mktemp("models") / "bert")
