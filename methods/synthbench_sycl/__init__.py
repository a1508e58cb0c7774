"""Documents of several levels of relevance for a query (SyCL: Esfandiarpoor et al. 2025)."""

from synthbench_sycl.method import GradedDocuments

__all__ = ["GradedDocuments"]
