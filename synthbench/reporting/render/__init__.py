"""Output formats of a report, one module per format."""
