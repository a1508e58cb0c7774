"""What the command `synthbench sandbox` does: serve the LLM, build the checkpoints."""
