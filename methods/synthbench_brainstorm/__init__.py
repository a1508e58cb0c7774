"""Tasks invented by an LLM, and records for each (Wang et al. 2024)."""

from synthbench_brainstorm.methods import Brainstorm
from synthbench_brainstorm.tasks import BrainstormTasks

__all__ = ["Brainstorm", "BrainstormTasks"]
