"""From an experiment to stages, and from stages to artifacts in the store."""
