"""The steps between generating data and training on it."""
