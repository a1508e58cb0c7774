"""MultiCSR: an LLM writes positives and hard negatives, and its grades curate them (Wang et al. 2023)."""

from synthbench_multicsr.curation import MultiCSR
from synthbench_multicsr.writing import MultiCSRTriplets

__all__ = ["MultiCSR", "MultiCSRTriplets"]
