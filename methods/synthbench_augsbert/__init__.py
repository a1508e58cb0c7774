"""AugSBERT (Thakur et al. 2021): a cross-encoder labels new pairs of gold sentences."""

from synthbench_augsbert.method import AugSBERT

__all__ = ["AugSBERT"]
