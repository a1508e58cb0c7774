"""Documents of several levels of relevance for a query (SyCL: Esfandiarpoor et al. 2025)."""

from synthbench_graded.method import GradedDocuments

__all__ = ["GradedDocuments"]
