"""timoschick/dino #10: without debiasing DINO's second texts are copies of the first, or differ in case or full stop.

No pair of DINO holds the same text twice, copies are counted, and a step drops those that differ in case or a full
stop at the end.
"""

from pathlib import Path

import pytest
from small_models import COUNTERLABELS, INSTRUCTIONS, prompts, scripted_model

from synthbench.data.records import ScoredPair
from synthbench.generation.jobs import Job, WritingTask
from synthbench.generation.language_model import LanguageModel
from synthbench.generation.sampling import Sampling
from synthbench.generation.writer import Writer
from synthbench.preparing.drops import DropIdentical
from synthbench.runtime import Runtime

FOLLOWS = {'"': {"a": 0.8, "c": 0.2}, "a": {"b": 1.0}, "b": {'"': 1.0}, "c": {'"': 1.0}}
"""Writes "ab" four times of five, else "c"."""
