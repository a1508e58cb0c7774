"""Recommend a recipe by ordinary experiments: pilot, race, and one comparison on the test set."""
