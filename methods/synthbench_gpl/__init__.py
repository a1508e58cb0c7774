"""Queries for the passages of a corpus (GPL: Wang et al. 2022; InPars: Bonifacio et al. 2022)."""

from synthbench_gpl.method import GPLQueries

__all__ = ["GPLQueries"]
