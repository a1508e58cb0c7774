"""Queries for the passages of a corpus (GPL: Wang et al. 2022; InPars: Bonifacio et al. 2022)."""

from synthbench_gpl.method import GPLQueries
from synthbench_gpl.two_passages import TwoPassageQueries

__all__ = ["GPLQueries", "TwoPassageQueries"]
