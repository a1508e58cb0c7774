"""Scores over seeds and items: their intervals, their differences, and what could have been seen at all."""
