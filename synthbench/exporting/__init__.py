"""Exports of results, models and data sets in the formats of other programs."""
