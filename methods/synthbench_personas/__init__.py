"""Queries as a person of a chosen kind would ask them (Qwen3-Embedding: Zhang et al. 2025)."""

from synthbench_personas.configurations import PersonaConfigurations
from synthbench_personas.queries import PersonaQueries

__all__ = ["PersonaConfigurations", "PersonaQueries"]
