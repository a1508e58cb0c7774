"""DINO: data sets written by a language model that is told what to write (Schick & Schütze 2021)."""

from synthbench_dino.methods import DINO, DINOTexts

__all__ = ["DINO", "DINOTexts"]
