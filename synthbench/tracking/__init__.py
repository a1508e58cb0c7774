"""Where results are recorded."""
