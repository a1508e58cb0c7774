"""LLMs behind an API: many requests at once, with each answer cached and paid for once."""
