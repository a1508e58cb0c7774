"""Record results in MLflow, and on request in Trackio."""
