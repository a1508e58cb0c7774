"""SynCSE: sentences, positives and hard negatives written by an LLM (Zhang, Lan & He 2023)."""

from synthbench_syncse.methods import SynCSENaive, SynCSEPartial, SynCSEScratch
from synthbench_syncse.sentences import SynCSESentences

__all__ = ["SynCSENaive", "SynCSEPartial", "SynCSEScratch", "SynCSESentences"]
