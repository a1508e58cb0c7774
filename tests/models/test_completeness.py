"""Which weights a checkpoint may lack; tests/public_reports/transformers_8219 has those that it may not."""

from pathlib import Path

import pytest
import torch
from transformers import (
    BertConfig,
    BertForMaskedLM,
    BertForSequenceClassification,
    BertModel,
    PreTrainedModel,
)

from synthbench.models.completeness import weights_complete


class Counting(BertModel):  # type: ignore[no-untyped-call]
    """A model with a buffer that is saved with its weights."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__(config)
        self.register_buffer("seen", torch.zeros(1))
        self.post_init()  # type: ignore[no-untyped-call]


@pytest.mark.parametrize(
    "architecture", [BertModel, BertForMaskedLM, BertForSequenceClassification, Counting]
)
def test_poolers_heads_and_buffers_may_be_missing(
    bert: Path, tmp_path: Path, architecture: type[PreTrainedModel]
) -> None:
    BertModel.from_pretrained(bert, add_pooling_layer=False).save_pretrained(tmp_path)
    with weights_complete("a model"):
        assert architecture.from_pretrained(tmp_path)
