"""Estimates of a stage's time, memory, tokens and cost before it runs."""
