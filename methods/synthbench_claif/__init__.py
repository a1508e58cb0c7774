"""CLAIF: an LLM fills masked sentences and grades the pairs (Cheng et al. 2023)."""

from synthbench_claif.grading import CLAIF
from synthbench_claif.pairs import CLAIFPairs

__all__ = ["CLAIF", "CLAIFPairs"]
