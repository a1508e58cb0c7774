"""The command `synthbench sandbox`: serve the LLM, build the checkpoints."""
