"""AugSBERT, where a cross-encoder labels pairs for a bi-encoder, and its baseline (Thakur et al. 2021)."""

from synthbench_augsbert.methods import AugSBERT, AugSBERTDomain
from synthbench_augsbert.relabel import Relabel
from synthbench_augsbert.substitution import ContextualSubstitution

__all__ = ["AugSBERT", "AugSBERTDomain", "ContextualSubstitution", "Relabel"]
