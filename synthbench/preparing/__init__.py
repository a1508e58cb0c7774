"""Steps between generation and training."""
