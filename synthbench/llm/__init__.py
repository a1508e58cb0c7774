"""Asking LLMs by their API: many requests at once, each answer cached and paid for once."""
