"""What computes a plan: stages, the store of their artifacts, the runner. It knows no concrete operation."""
