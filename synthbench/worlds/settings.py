"""What can be set of the world's data sets and of its LLM."""

from synthbench.worlds.sandbox.llm import MODEL as LLM_MODEL
from synthbench.worlds.sandbox.llm import LLMSettings
from synthbench.worlds.sandbox.source import KINDS as SET_KINDS
from synthbench.worlds.sandbox.source import SetOptions

__all__ = ["LLM_MODEL", "SET_KINDS", "LLMSettings", "SetOptions"]
