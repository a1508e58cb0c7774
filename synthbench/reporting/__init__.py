"""From tracked results to tables."""
