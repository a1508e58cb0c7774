"""DINO: a language model writes data sets from instructions (Schick & Schütze 2021, arXiv 2104.07540)."""

from synthbench_dino.methods import DINO, DINOTexts

__all__ = ["DINO", "DINOTexts"]
