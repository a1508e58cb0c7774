"""Encoders and pair scorers: how to find, load and run them."""
