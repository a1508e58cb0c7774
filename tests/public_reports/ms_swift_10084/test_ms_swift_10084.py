"""modelscope/ms-swift #10084: the last, shorter part of a batch is divided by the size of a full one.

With gradients cached in chunks, loss and gradients are those of the whole batch, whatever the last chunk's
size.
"""

import pytest
import torch
from torch import Tensor, nn

from synthbench.training.losses import CachedContrastiveLoss, ContrastiveLoss

ROWS, DIMENSION, TEMPERATURE = 5, 4, 0.2
MODEL: nn.Module = nn.Sequential(nn.Identity())


def columns() -> list[Tensor]:
    generator = torch.Generator().manual_seed(0)
    return [torch.randn(ROWS, DIMENSION, generator=generator, requires_grad=True) for _ in range(3)]


@pytest.mark.parametrize("chunk_size", [1, 2, 3, 4, 5, 8])
def test_a_shorter_last_chunk_is_weighted_by_its_number_of_records(chunk_size: int) -> None:
    whole, parts = columns(), columns()
    loss = ContrastiveLoss(MODEL, TEMPERATURE).compute_loss_from_embeddings(whole, torch.zeros(0))
    loss.backward()
    cached = CachedContrastiveLoss(MODEL, TEMPERATURE, 0.0, chunk_size)
    chunks = [list(column.split(chunk_size)) for column in parts]
    found = cached.calculate_loss(chunks, with_backward=True)
    assert float(found) == pytest.approx(float(loss.detach()), abs=1e-6)
    for column, expected in zip(parts, whole, strict=True):
        assert column.grad is not None
        assert expected.grad is not None
        assert torch.allclose(column.grad, expected.grad, atol=1e-6)
