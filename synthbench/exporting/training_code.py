"""Python code for a data card that trains a model on the data set with sentence-transformers."""

from collections.abc import Sequence

from synthbench.data.exchange import USUAL_CLASS
from synthbench.data.records import RecordKind

USUAL_BASE = "microsoft/mpnet-base"
"""The base in the code if the row's own is not on the hub."""
_ENCODER = """\
from datasets import load_dataset
from sentence_transformers import SentenceTransformer, SentenceTransformerTrainer
from sentence_transformers import SentenceTransformerTrainingArguments
from sentence_transformers.sentence_transformer.losses import {loss}

data = load_dataset("{address}")
model = SentenceTransformer("{base}")
loss = {loss}(model)
args = SentenceTransformerTrainingArguments(output_dir="trained"{batches})
trainer = SentenceTransformerTrainer(model=model, args=args, train_dataset={train}, loss=loss)
trainer.train()
"""
_DISTINCT = ', batch_sampler="no_duplicates"'
"""Keeps repeated texts out of a batch, where a text would be a negative of its own positive."""
_CROSS_ENCODER = """\
from datasets import load_dataset
from sentence_transformers.cross_encoder import (
    CrossEncoder,
    CrossEncoderTrainer,
    CrossEncoderTrainingArguments,
)
from sentence_transformers.cross_encoder.losses import LambdaLoss

data = load_dataset("{address}")
model = CrossEncoder("{base}", num_labels=1)
args = CrossEncoderTrainingArguments(output_dir="trained")
trainer = CrossEncoderTrainer(model=model, args=args, train_dataset={train}, loss=LambdaLoss(model))
trainer.train()
"""
_DOUBLED = """\
# A sentence is its own positive, from which it differs by dropout (unsupervised SimCSE).
pairs = {train}.map(lambda row: {{"positive": row["sentence"]}})
"""


def training_code(kind: RecordKind, base: str, address: str, splits: Sequence[str]) -> str:
    """Return Python code that trains `base` on the data set at `address`.

    "" for retrieval texts and for a data set without splits.
    """
    if kind is RecordKind.RETRIEVAL or not splits:
        return ""
    train = f'data["{"train" if "train" in splits else splits[0]}"]'
    if kind is RecordKind.RANKING:
        return _CROSS_ENCODER.format(address=address, base=base, train=train)
    batches = "" if kind is RecordKind.SCORED_PAIR else _DISTINCT
    names = {"address": address, "base": base, "loss": USUAL_CLASS[kind], "batches": batches}
    if kind is RecordKind.SENTENCE:
        code = _ENCODER.format(train="pairs", **names)
        return code.replace("\nmodel =", f"\n{_DOUBLED.format(train=train)}model =", 1)
    return _ENCODER.format(train=train, **names)
