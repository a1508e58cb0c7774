"""The operations of stages: read, prepare, generate, train, evaluate, audit."""
