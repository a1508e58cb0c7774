"""Compare methods for making synthetic training data for sentence embeddings."""

__version__ = "0.1.0"
