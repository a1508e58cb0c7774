"""Suites: named groups of test sets, and scoring one model on them without an experiment."""
