"""Letting language models write: many texts in one batch, self-debiased, the same however they are batched."""
