"""Formats of a report, a module each."""
