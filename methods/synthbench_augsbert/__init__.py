"""AugSBERT (Thakur et al. 2021): a cross-encoder labels new pairs of gold sentences; and a baseline."""

from synthbench_augsbert.method import AugSBERT
from synthbench_augsbert.substitution import ContextualSubstitution

__all__ = ["AugSBERT", "ContextualSubstitution"]
