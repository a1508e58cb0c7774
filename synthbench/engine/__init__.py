"""The engine that computes a plan: stages, artifact store, runner. It knows no concrete operation."""
