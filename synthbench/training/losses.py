"""SimCSE's losses, built on sentence-transformers: contrastive (also with cached gradients) and masked words.

Gao et al. 2021 (arXiv 2104.08821); the log-weight of hard negatives follows the authors' released code.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.losses import (
    CachedMultipleNegativesRankingLoss,
    MultipleNegativesRankingLoss,
)
from sentence_transformers.util import all_gather_with_grad, cos_sim
from torch import Tensor, distributed, nn
from torch.nn.functional import cross_entropy, log_softmax
from torch.utils.checkpoint import checkpoint

from synthbench.training import joint
from synthbench.training.layers import UNMASKED, WordHead
from synthbench.training.teaching import TrainingRecords

Features = Iterable[dict[str, Any]]


class ContrastiveLoss(MultipleNegativesRankingLoss):
    """Cross-entropy of each anchor's positive among all positives and all hard negatives of the batch.

    Columns are anchor, positive and, optionally, hard negatives. With a single column, each sentence is its
    own positive, under another dropout mask. The batch spans all processes. Labels, of shape (anchors,), are
    the anchors' row numbers in `records`, which may hold temperatures, masks and soft labels. Without
    `records`, labels are not read.
    """

    def __init__(
        self,
        model: SentenceTransformer,
        temperature: float,
        hard_negative_weight: float = 0.0,
        records: TrainingRecords | None = None,
    ) -> None:
        super().__init__(model, scale=1 / temperature)
        self.hard_negative_weight = hard_negative_weight
        self.records = records

    def forward(self, sentence_features: Features, labels: Tensor) -> Tensor:
        """Return the mean loss over this process's anchors."""
        return super().forward(_with_positives(sentence_features), labels)

    def compute_loss_from_embeddings(self, embeddings: list[Tensor], labels: Tensor) -> Tensor:
        """Return the mean loss; each column of embeddings has the shape (anchors, dimension)."""
        candidates, first = _of_all_processes(embeddings[1:])
        facts = batch_facts(labels, len(candidates), self.scale, self.records)
        losses = contrastive_losses(embeddings[0], candidates, first, facts, self.hard_negative_weight)
        return losses.mean()


class OwnTemperatures(MultipleNegativesRankingLoss):
    """MultipleNegativesRankingLoss whose labels are the records' temperatures; NaN: the loss's own."""

    def compute_loss_from_embeddings(self, embeddings: list[Tensor], labels: Tensor) -> Tensor:
        """Return the mean loss; each anchor's cosines are divided by its record's temperature."""
        common = self.scale
        # The library multiplies this with a matrix that has one row per anchor.
        self.scale = torch.where(labels.isnan(), common, 1 / labels)[:, None]  # type: ignore[assignment]
        try:
            return super().compute_loss_from_embeddings(embeddings, labels)
        finally:
            self.scale = common


class CachedContrastiveLoss(CachedMultipleNegativesRankingLoss):
    """`ContrastiveLoss` with the activations of only `chunk_size` records in memory (arXiv 2101.06983).

    Gradient caching encodes everything twice: for the loss, and again, chunk by chunk, for the gradients.
    """

    def __init__(
        self,
        model: SentenceTransformer,
        temperature: float,
        hard_negative_weight: float,
        chunk_size: int,
        records: TrainingRecords | None = None,
    ) -> None:
        super().__init__(model, scale=1 / temperature, mini_batch_size=chunk_size)
        self.hard_negative_weight = hard_negative_weight
        self.records = records

    def forward(self, sentence_features: Features, labels: Tensor) -> Tensor:
        """Return the mean loss over this process's anchors."""
        return super().forward(_with_positives(sentence_features), labels)

    def calculate_loss(
        self, reps: list[list[Tensor]], labels: Tensor | None = None, *, with_backward: bool = False
    ) -> Tensor:
        """Return the mean loss of `reps`, embeddings by column and chunk; `with_backward`: backpropagate."""
        anchors, *columns = (torch.cat(chunks) for chunks in reps)
        candidates, first = _of_all_processes(columns)
        facts = batch_facts(labels, len(candidates), self.scale, self.records)
        total = anchors.new_zeros(())
        for begin in range(0, len(anchors), self.mini_batch_size):
            rows = slice(begin, begin + self.mini_batch_size)
            losses = contrastive_losses(
                anchors[rows], candidates, first + begin, facts.of(rows), self.hard_negative_weight
            )
            part = losses.sum() / len(anchors)
            if with_backward:
                torch.autograd.backward(part)
                part = part.detach()
            total = total + part
        return total


def contrastive_losses(
    anchors: Tensor,
    candidates: Sequence[Tensor],
    first: int,
    facts: "BatchFacts",
    hard_negative_weight: float,
) -> Tensor:
    """Return the loss of each anchor, shape (anchors,).

    `candidates` are the column of positives and any columns of hard negatives, each of shape (batch,
    dimension). Row `first` + n of each column belongs to anchor n. `hard_negative_weight`, the logarithm of a
    weight, is added to the scaled cosine of an anchor and its own hard negatives.
    """
    # Equations 1 and 5: the denominator sums over every positive and every hard negative of the batch.
    logits = cos_sim(anchors, torch.cat(list(candidates))) * facts.scale
    rows = torch.arange(len(anchors), device=anchors.device)
    own = first + rows
    if hard_negative_weight:
        for column in range(1, len(candidates)):
            logits[rows, column * len(candidates[0]) + own] += hard_negative_weight
    if facts.zeroed is not None:
        logits = logits.masked_fill(facts.zeroed, 0.0)
    if facts.missing is not None:
        logits = logits.masked_fill(facts.missing, float("-inf"))
    if facts.is_binary:
        return _binary_losses(logits, own)
    if facts.scores is None:
        return cross_entropy(logits, own, reduction="none")
    return _soft_losses(logits, own, facts.scores, spreads=facts.spreads)


def _binary_losses(logits: Tensor, own: Tensor) -> Tensor:
    """Return each anchor's mean binary cross-entropy of softmax probabilities; the positive's label is 1.

    All other candidates have the label 0, as in MultiCSR's released code (Wang et al. 2023). Here,
    probabilities that round to 1 have a finite loss.
    """
    rows = torch.arange(len(logits), device=logits.device)
    log_shares = log_softmax(logits, dim=1)
    of_others = torch.log1p(-log_shares.exp().clamp(max=1 - torch.finfo(log_shares.dtype).eps))
    is_there = logits != float("-inf")
    total = of_others.sum(1) - of_others[rows, own] + log_shares[rows, own]
    return -total / is_there.sum(1)


def _soft_losses(logits: Tensor, own: Tensor, scores: Tensor, *, spreads: bool) -> Tensor:
    """Return the cross-entropy with soft labels: the label of an anchor's positive is its score s.

    The label of each other candidate is 0; with `spreads` it is (1 - s) / (n - 1), for n unmasked candidates
    (Cheng et al. 2023, section 3.3, and the authors' released code).
    """
    rows = torch.arange(len(logits), device=logits.device)
    log_shares = log_softmax(logits, dim=1)
    of_positives = log_shares[rows, own]
    losses = -scores * of_positives
    if spreads:
        is_there = logits != float("-inf")
        of_all = log_shares.masked_fill(~is_there, 0.0).sum(1)
        num_others = (is_there.sum(1) - 1).clamp(min=1)
        losses = losses - (1 - scores) / num_others * (of_all - of_positives)
    return losses


@dataclass(frozen=True)
class BatchFacts:
    """The scale, masks and labels that the loss of one batch needs besides the embeddings."""

    scale: float | Tensor  # 1 / temperature: one for all, or (anchors, 1)
    missing: Tensor | None = None  # True: left out. (candidates x batch,) or (anchors, candidates x batch)
    zeroed: Tensor | None = None  # True: the logit is 0. (anchors, candidates x batch)
    scores: Tensor | None = None  # (anchors,): the labels of the positives; None: 1
    spreads: bool = False
    """Whether 1 - score is spread over the other candidates."""
    is_binary: bool = False
    """Whether the loss is the binary cross-entropy of each candidate's softmax probability."""

    def of(self, rows: slice) -> "BatchFacts":
        """Return the same data for the anchors in `rows` only."""
        is_own = self.missing is not None and self.missing.dim() > 1
        return replace(
            self,
            scale=self.scale[rows] if isinstance(self.scale, Tensor) else self.scale,
            missing=self.missing[rows] if self.missing is not None and is_own else self.missing,
            zeroed=None if self.zeroed is None else self.zeroed[rows],
            scores=None if self.scores is None else self.scores[rows],
        )


def batch_facts(
    rows: Tensor | None, num_columns: int, scale: float, records: TrainingRecords | None
) -> BatchFacts:
    """Return scale, masks and labels for this process's anchors and the candidates of all processes.

    `rows`, of shape (anchors,), are the anchors' row numbers in `records`. `num_columns` is the number of
    candidate columns; the first has the positives. Without `rows` or `records`, only the scale is set.
    """
    if rows is None or records is None:
        return BatchFacts(scale)
    anchors, device = rows.cpu(), rows.device
    everyones, first = _rows_of_all_processes(rows)
    temperatures = records.temperatures[anchors].to(device)[:, None]
    scales = torch.where(temperatures.isnan(), scale, 1 / temperatures)
    missing = None
    if num_columns > 1:
        columns = torch.arange(num_columns, device=device)
        missing = (columns[:, None] > records.num_negatives[everyones].to(device)).flatten()
    zeroed = None
    if records.mask is not None:
        own = first + torch.arange(len(anchors))
        masked = records.mask.of(anchors, everyones, own).to(device)
        if records.mask.as_zero:
            zeroed = masked
        else:
            missing = masked if missing is None else masked | missing
    scores = None if records.scores is None else records.scores[anchors].to(device)
    return BatchFacts(scales, missing, zeroed, scores, records.spreads, records.is_binary)


def _rows_of_all_processes(rows: Tensor) -> tuple[Tensor, int]:
    """Return all processes' row numbers in `records`, and the index of this process's first row number."""
    if joint.num_processes() == 1:
        return rows.cpu(), 0
    gathered = [torch.empty_like(rows) for _ in range(joint.num_processes())]
    distributed.all_gather(gathered, rows.contiguous())
    return torch.cat(gathered).cpu(), distributed.get_rank() * len(rows)


def _with_positives(sentence_features: Features) -> list[dict[str, Any]]:
    """Return the features, with single sentences repeated as positives under other dropout (equation 4)."""
    features = list(sentence_features)
    # A model writes its outputs into its input, so the second pass needs its own dictionary.
    return features if len(features) > 1 else [features[0], dict(features[0])]


def _of_all_processes(columns: Sequence[Tensor]) -> tuple[list[Tensor], int]:
    """Return the columns joined over all processes, with gradients, and the index of our first row."""
    if joint.num_processes() == 1:
        return list(columns), 0
    return [all_gather_with_grad(column) for column in columns], distributed.get_rank() * len(columns[0])


class LossWithMasking(nn.Module):
    """A loss plus `weight` times the mean cross-entropy of the masked tokens of all columns (section 3, MLM).

    `chunk_size` rows are in memory at once; None: all.
    """

    def __init__(self, loss: nn.Module, head: WordHead, weight: float, chunk_size: int | None) -> None:
        super().__init__()
        self.loss = loss
        self.head = head
        self.weight = weight
        self.chunk_size = chunk_size

    def forward(self, sentence_features: Features, labels: Tensor) -> Tensor:
        """Return the weighted sum of both losses."""
        features = list(sentence_features)
        masked = [self.head.masked(column) for column in features]
        num_masked = sum(int((targets != UNMASKED).sum()) for _, targets in masked)
        word_loss = torch.stack([self._summed(*column) for column in masked]).sum() / max(1, num_masked)
        contrast: Tensor = self.loss(features, labels)
        return contrast + self.weight * word_loss

    def _summed(self, inputs: dict[str, Tensor], targets: Tensor) -> Tensor:
        if self.chunk_size is None:
            return self.head.summed_loss(inputs, targets)
        parts = []
        for begin in range(0, len(targets), self.chunk_size):
            rows = slice(begin, begin + self.chunk_size)
            chunk = {name: value[rows] for name, value in inputs.items()}
            parts.append(checkpoint(self.head.summed_loss, chunk, targets[rows], use_reentrant=False))
        return torch.stack(parts).sum()
