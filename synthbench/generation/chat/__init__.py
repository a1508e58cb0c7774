"""Asking chat models: many requests at once, each paid for once."""
