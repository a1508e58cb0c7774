"""Registrations: what an experiment declared before its first test score, and earlier scores on its items."""
