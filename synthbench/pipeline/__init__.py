"""Plan an experiment's stages, run them, and track and report the results."""
