"""Collect results for tracking and reports from a plan's artifacts."""
