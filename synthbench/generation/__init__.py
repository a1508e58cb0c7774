"""Letting language models write: many texts in one batch, the same however they are batched."""
