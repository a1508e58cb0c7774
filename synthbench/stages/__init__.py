"""What stages do: read, prepare, generate, train, evaluate, audit."""
