"""Recommend a recipe by experiments: a pilot, a race on dev, and one comparison on the test set."""
