"""Experiment files: reading, patching, validating."""
