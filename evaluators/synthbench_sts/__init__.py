"""Semantic textual similarity: correlation of model scores with human judgements."""
