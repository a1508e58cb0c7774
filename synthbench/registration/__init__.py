"""Registrations: what an experiment declared before its first test score, and what had been seen by then."""
