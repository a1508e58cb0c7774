"""Record results in MLflow."""
