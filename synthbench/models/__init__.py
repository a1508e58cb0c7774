"""Encoders and pair scorers: finding, loading and running them."""
